import { entityKey, partitionOf } from "../core/entity.ts";
import type { ExecutionEvent } from "../core/execution/events.ts";
import { executionMachine } from "../core/execution/machine.ts";
import { type ExecutionSummary, viewExecution } from "../core/execution/test-summary.ts";
import type { Answer, Machine } from "../core/machine.ts";
import { type MessageBody, messageText } from "../core/message.ts";
import type { Workflow } from "../definition/workflow.ts";
import { type MemoryStore, openMemory } from "../drivers/memory/memory-store.ts";
import type { Host } from "../host/host.ts";
import { nodeHost } from "../host/node-host.ts";
import { Requests } from "../inbox/requests.ts";
import { contentHash } from "../json/hash.ts";
import type { Json } from "../json/json.ts";
import type { Store } from "../store/contract.ts";
import type { Handler } from "../worker/handler.ts";
import { Worker, type WorkerSettings } from "../worker/worker.ts";
import { readExecution } from "../../test/support/memory-engine.ts";
import { Engine } from "./engine.ts";
import type { EngineObserver } from "./observer.ts";
import type { EngineSettings } from "./settings.ts";

/** Looks often, so that nobody waits for a poll. */
const QUICK: Partial<EngineSettings> = { renewMs: 20, idleMs: 20, checkWhole: true };
const QUICK_WORKER: Partial<WorkerSettings> = {
  slots: 64,
  startReportMs: 10,
  heartbeatMs: 20,
  pollMs: 20,
  graceMs: 200,
};

/**
 * One world in real time over one memory store, whose parts a test takes apart and puts together as it likes: an
 * execution is decided by whatever engine runs at the moment.
 */
export class TestWorld {
  readonly memory: MemoryStore;
  readonly store: Store;
  readonly host: Host;
  private readonly requests: Requests;
  private closed = false;
  private readonly running = new Set<{ stop(): Promise<void> }>();

  constructor(
    options: { host?: Host; memory?: MemoryStore; volatileTasks?: boolean; wrap?: (store: MemoryStore) => Store } = {},
  ) {
    this.host = options.host ?? nodeHost;
    const { volatileTasks = false } = options;
    this.memory = options.memory ?? openMemory({ host: this.host, volatileTasks });
    this.store = options.wrap?.(this.memory) ?? this.memory;
    this.requests = new Requests(this.memory, this.host);
    this.requests.start();
  }

  /** Starts an engine; it runs until it is stopped, or the world is closed. */
  engine(
    settings: Partial<EngineSettings> = {},
    machine: Machine | readonly Machine[] = executionMachine,
    observer: EngineObserver = {},
  ): Engine {
    const { store, host } = this;
    const engine = new Engine({
      store,
      host,
      machines: [machine].flat(),
      settings: { ...QUICK, ...settings },
      observer,
    });
    engine.start();
    this.running.add(engine);
    return engine;
  }

  worker(
    handlers: Readonly<Record<string, Handler>>,
    settings: Partial<WorkerSettings> = {},
    secret?: (name: string) => string | undefined,
    ownSlots?: ReadonlyMap<string, number>,
  ): Worker {
    const worker = new Worker({
      store: this.store,
      host: this.host,
      handlers: new Map(Object.entries(handlers)),
      queues: Object.keys(handlers),
      settings: { ...QUICK_WORKER, ...settings },
      ...(secret !== undefined && { secret }),
      ...(ownSlots !== undefined && { ownSlots }),
    });
    worker.start();
    this.running.add(worker);
    return worker;
  }

  async stop(part: Engine | Worker): Promise<void> {
    this.running.delete(part);
    await part.stop();
  }

  async close(): Promise<void> {
    this.closed = true;
    this.requests.stop();
    for (const part of [...this.running].reverse()) await part.stop();
    await this.memory.close();
  }

  async start(workflow: Workflow, input: Json = null, id: string = this.host.id()): Promise<string> {
    const answer = await this.submit(workflow, input, id);
    if (!("ok" in answer)) throw new Error(`not started: ${JSON.stringify(answer)}`);
    return id;
  }

  async submit(workflow: Workflow, input: Json, id: string): Promise<Answer> {
    const text = JSON.stringify(workflow);
    const definition = contentHash(text);
    await this.memory.records.put([{ scope: "definition", hash: definition, text }]);
    const body = { kind: "start" as const, workflow: workflow.name, definition, input: { json: input }, bodyHash: "b" };
    return this.send(id, body);
  }

  /** For executions that call it by this name. */
  async publish(name: string, workflow: Workflow): Promise<void> {
    const text = JSON.stringify(workflow);
    await this.memory.records.put([{ scope: "definition", hash: contentHash(text), text }]);
    await this.memory.records.publish(name, contentHash(text));
  }

  /** How many executions there are; with `over` only those that have ended. */
  async count(which: "all" | "over" = "all"): Promise<number> {
    const { items } = await this.memory.queries.headers({ limit: 1000 });
    return which === "all" ? items.length : items.filter((item) => item.class !== "open").length;
  }

  /** Sends without waiting for an answer: to a quarantined execution there is none until it is released. */
  async post(id: string, body: MessageBody): Promise<void> {
    const to = entityKey("execution", id);
    const message = { id: this.host.id(), to, by: "test", trace: "", tenant: "default", body };
    await this.memory.inbox.append([{ partition: this.place(id), start: false, text: messageText(message) }]);
  }

  async send(id: string, body: MessageBody): Promise<Answer> {
    const outcome = await this.requests.send({ to: entityKey("execution", id), by: "test", id: this.host.id(), body });
    if (outcome.kind !== "answered") throw new Error(`no answer to ${body.kind}: ${outcome.kind}`);
    return outcome.answer;
  }

  /** Resolves once the journal of an execution fits; fails the test by its timeout otherwise. */
  async until(id: string, fits: (events: readonly ExecutionEvent[]) => boolean): Promise<readonly ExecutionEvent[]> {
    while (!this.closed) {
      const events = await this.events(id);
      if (fits(events)) return events;
      await this.memory.journal.watch(this.place(id), entityKey("execution", id), events.length, 200);
    }
    throw new Error(`the world ended before ${id} was as expected`);
  }

  /** The execution once it has ended. */
  async ended(id: string): Promise<ExecutionSummary> {
    await this.until(id, (events) => events.some((event) => event.kind === "executionEnded"));
    return viewExecution(await readExecution(this.memory, id));
  }

  async events(id: string): Promise<readonly ExecutionEvent[]> {
    const entity = entityKey("execution", id);
    const [loaded] = await this.memory.journal.load([{ partition: this.place(id), entity, aboveVersion: 0 }]);
    return loaded!.records.flatMap((record) => JSON.parse(record.text) as ExecutionEvent[]);
  }

  async kinds(id: string): Promise<string[]> {
    return (await this.events(id)).map((event) => event.kind);
  }

  private place(id: string): number {
    return partitionOf(entityKey("execution", id), this.memory.capabilities.partitionCount);
  }
}

/** The store with another journal in places, for a test that counts, delays or refuses. */
export function withJournal(memory: MemoryStore, instead: Partial<Store["journal"]>): Store {
  const { capabilities, partitions, inbox, tasks, records, queries, journal } = memory;
  const plain: Store["journal"] = {
    load: (requests) => journal.load(requests),
    commit: (batches) => journal.commit(batches),
    due: (...asked) => journal.due(...asked),
    watch: (...asked) => journal.watch(...asked),
  };
  return {
    capabilities,
    partitions,
    inbox,
    tasks,
    records,
    queries,
    journal: { ...plain, ...instead },
    close: () => memory.close(),
  };
}

/** A handler whose calls wait until they are let go, by node; a node that is open gives its output at once. */
export function gate(): { readonly handler: Handler; readonly open: (nodeId: string, output?: Json) => void } {
  const waiting = new Map<string, ((output: Json) => void)[]>();
  const opened = new Map<string, Json>();
  return {
    handler: ({ nodeId }) => {
      const output = opened.get(nodeId);
      if (output !== undefined) return output;
      return new Promise((resolve) => waiting.set(nodeId, [...(waiting.get(nodeId) ?? []), resolve]));
    },
    open: (nodeId, output = null) => {
      opened.set(nodeId, output);
      for (const resolve of waiting.get(nodeId) ?? []) resolve(output);
    },
  };
}
