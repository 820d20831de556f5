import { entityKey } from "../../src/core/entity.ts";
import { type ExecutionSummary, viewExecution } from "../../src/core/execution/test-summary.ts";
import { readDefinition } from "../../src/definition/read.ts";
import type { Workflow } from "../../src/definition/workflow.ts";
import type { Json } from "../../src/json/json.ts";
import type { Handler } from "../../src/worker/handler.ts";
import { type MemoryEngine, memoryEngine } from "../support/memory-engine.ts";

/** Looks often, so that nothing waits for a poll. */
const QUICK = {
  engine: { idleMs: 10, renewMs: 20, checkWhole: true },
  worker: { pollMs: 10, heartbeatMs: 50, startReportMs: 20, graceMs: 50 },
};

interface StepConfig {
  /** Runs until the test lets it go on, under this name. */
  readonly hold?: string;
  /** What it gives; its own id otherwise. */
  readonly gives?: Json;
  /** Gives how often it has begun. */
  readonly counts?: boolean;
}

/**
 * Definitions as people write them, on the production engine with a real worker. Its one handler, `step`, writes down
 * when it begins and ends, and holds on for as long as the test wants: nothing here depends on how long things take.
 */
export class Bench {
  /** `a begins`, `a ends`, in the order in which they happened. */
  readonly log: string[] = [];
  /** The most steps that ran at a time. */
  most = 0;
  private running = 0;
  private readonly gates = new Map<string, { readonly open: Promise<void>; readonly let: () => void }>();
  private engine: MemoryEngine | undefined;

  async open(): Promise<this> {
    this.engine = await memoryEngine({ step: this.step }, QUICK);
    return this;
  }

  async close(): Promise<void> {
    for (const { let: go } of this.gates.values()) go();
    await this.engine?.stop();
  }

  /** Publishes a workflow that others call by its name. */
  async publish(text: string): Promise<void> {
    await this.millrace.publish(read(text));
  }

  async start(text: string, input: Json = null): Promise<string> {
    return this.millrace.start(read(text), input);
  }

  async run(text: string, input: Json = null): Promise<ExecutionSummary> {
    return this.millrace.ended(await this.start(text, input));
  }

  async ended(id: string): Promise<ExecutionSummary> {
    return this.millrace.ended(id);
  }

  /** Asks for something, and expects not to be refused. */
  async send(id: string, body: Parameters<MemoryEngine["send"]>[1]): Promise<void> {
    const answer = await this.ask(id, body);
    if ("refused" in answer) throw new Error(`${body.kind} was refused: ${answer.refused}`);
  }

  async ask(id: string, body: Parameters<MemoryEngine["send"]>[1]): ReturnType<MemoryEngine["send"]> {
    return this.millrace.send(id, body);
  }

  async view(id: string): Promise<ExecutionSummary> {
    return viewExecution(await this.millrace.read(id));
  }

  /** The execution as it is once this holds. */
  async until(id: string, holds: (view: ExecutionSummary) => boolean): Promise<ExecutionSummary> {
    for (;;) {
      const view = await this.view(id);
      if (holds(view)) return view;
      if (view.endedAtMs !== null) throw new Error(`it has ended first: ${JSON.stringify(shown(view))}`);
      await this.millrace.store.journal.watch(0, entityKey("execution", id), view.version, 1000);
    }
  }

  /** The execution once these nodes read so. */
  async shows(id: string, expected: Readonly<Record<string, string>>): Promise<ExecutionSummary> {
    return this.until(id, (view) =>
      Object.entries(expected).every(([node, status]) => view.nodes[node]?.status === status),
    );
  }

  /** The execution that a node has called. */
  async childOf(id: string, node: string): Promise<string> {
    const view = await this.until(id, ({ nodes }) => nodes[node]?.child !== undefined);
    const child = view.nodes[node]!.child!;
    // It was mailed: it is there when its own journal begins.
    await this.millrace.store.journal.watch(0, entityKey("execution", child), 0, 5000);
    return child;
  }

  /** Lets steps go on that hold under this name, now or later. */
  let(...names: readonly string[]): void {
    for (const name of names) this.gate(name).let();
  }

  /** Waits until these steps have begun. */
  async begun(...nodes: readonly string[]): Promise<void> {
    while (!nodes.every((node) => this.log.includes(`${node} begins`))) await tick();
  }

  count(entry: string): number {
    return this.log.filter((one) => one === entry).length;
  }

  private get millrace(): MemoryEngine {
    return this.engine!;
  }

  private readonly step: Handler = async ({ nodeId, config, signal }) => {
    const { hold, gives, counts = false } = config as StepConfig;
    this.log.push(`${nodeId} begins`);
    this.most = Math.max(this.most, ++this.running);
    const stopped = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
    });
    stopped.catch(() => {});
    try {
      // Long enough for another one to begin meanwhile, if it may.
      await tick();
      if (hold !== undefined) await Promise.race([this.gate(hold).open, stopped]);
      this.log.push(`${nodeId} ends`);
      return counts ? { n: this.count(`${nodeId} begins`) } : (gives ?? nodeId);
    } finally {
      this.running--;
    }
  };

  private gate(name: string): { readonly open: Promise<void>; readonly let: () => void } {
    const known = this.gates.get(name);
    if (known !== undefined) return known;
    const { promise, resolve } = Promise.withResolvers<void>();
    const gate = { open: promise, let: resolve };
    this.gates.set(name, gate);
    return gate;
  }
}

/** How each node reads, with its reason if it has one. */
export function shown({ nodes }: ExecutionSummary): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(nodes).map(([id, { status, reason }]) => [id, reason === null ? status : `${status} ${reason}`]),
  );
}

function read(text: string): Workflow {
  const handlers = {
    get: (name: string) => (name === "step" ? { engine: false } : undefined),
    names: () => ["step"],
    allowMissing: false,
  };
  const { workflow, errors } = readDefinition(text, { format: "yaml", handlers });
  if (workflow === undefined) throw new Error(errors.map(({ message }) => message).join("\n"));
  return workflow;
}

function tick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
