import type { HandlerEntry } from "../definition/handlers.ts";
import type { Host } from "../host/host.ts";
import { TaskLogs } from "../process/task-logs.ts";
import { WorkerRegistration } from "../process/registration.ts";
import type { JsonObject } from "../json/json.ts";
import type { Store } from "../store/contract.ts";
import type { Handler } from "../worker/handler.ts";
import { Worker, type WorkerSettings } from "../worker/worker.ts";
import { LiveQueues } from "./live-queues.ts";
import { ThrownErrors } from "./thrown-errors.ts";
import type { WorkflowParts } from "./workflow.ts";

export interface LiveWorkerOptions {
  readonly store: Store;
  readonly host: Host;
  readonly settings: Partial<WorkerSettings>;
  readonly secret: (name: string) => string | undefined;
  /** What it serves is noted here, for whoever checks definitions. */
  readonly entries: Map<string, HandlerEntry>;
}

const ALIVE = { heartbeatMs: 5_000, aliveMs: 15_000 };

/** The worker of an engine in the same process. It learns what it serves as workflows are met. */
export class LiveWorker {
  readonly thrown = new ThrownErrors();
  readonly #entries: Map<string, HandlerEntry>;
  readonly #handlers = new Map<string, Handler>();
  readonly #queues = new LiveQueues();
  readonly #worker: Worker;
  readonly #logs: TaskLogs;
  readonly #registration: WorkerRegistration;

  constructor({ store, host, settings, secret, entries }: LiveWorkerOptions) {
    this.#entries = entries;
    this.#logs = new TaskLogs(store, host);
    this.#worker = new Worker({
      store: this.#queues.over(store),
      host,
      handlers: this.#handlers,
      queues: this.#queues.names,
      settings,
      secret,
      leases: { kind: "process" },
      observer: this.#logs.observer,
    });
    this.#registration = new WorkerRegistration(store, host, this.#worker.name, () => this.#told(), ALIVE);
  }

  /** Serves the functions of a workflow, and of those it calls. */
  meet(parts: WorkflowParts): void {
    const handlers = new Map<string, Handler>();
    const queues = new Set<string>();
    const visit = ({ functions, queues: own, children }: WorkflowParts): void => {
      for (const [name, { handler }] of functions) handlers.set(name, handler);
      for (const queue of own) queues.add(queue);
      for (const child of children) visit(child);
    };
    visit(parts);
    this.add(handlers, queues);
  }

  add(
    handlers: ReadonlyMap<string, Handler>,
    queues: Iterable<string> = [],
    entries: ReadonlyMap<string, HandlerEntry> = new Map(),
  ): void {
    const isNews = [...handlers.keys()].some((name) => !this.#handlers.has(name));
    for (const [name, handler] of handlers) {
      this.#handlers.set(name, this.thrown.of(handler));
      this.#entries.set(name, entries.get(name) ?? { engine: false });
    }
    this.#queues.add([...handlers.keys(), ...queues]);
    // Others may hear of it a moment later.
    if (isNews) void this.#registration.tell().catch(() => undefined);
  }

  async start(): Promise<void> {
    this.#worker.start();
    await this.#registration.start();
  }

  /** Waits for what runs, and hands back the rest. */
  async stop(): Promise<void> {
    await this.#registration.stop();
    const stopping = this.#worker.stop();
    this.#queues.lookAgain();
    await stopping;
    await this.#logs.close();
  }

  #told(): JsonObject {
    const handlers = [...this.#handlers.keys()].map((name) => ({ name }));
    return { handlers, queues: [...this.#queues.names], pid: process.pid };
  }
}
