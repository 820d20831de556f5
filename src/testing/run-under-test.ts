import { showEvent } from "../api/service/event-view.ts";
import { executionKey } from "../api/service/ids.ts";
import type { ExecutionEvent } from "../core/execution/events.ts";
import { executionMachine } from "../core/execution/machine.ts";
import { buildPlan } from "../core/execution/plan.ts";
import type { ExecutionState } from "../core/execution/state.ts";
import { viewNode } from "../core/execution/view.ts";
import type { KeptValue } from "../core/value.ts";
import type { Workflow as Definition } from "../definition/workflow.ts";
import { nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import type { Json } from "../json/json.ts";
import type { EventView, RunStatus } from "../sdk/backend.ts";
import { type Duration, durationMs } from "../sdk/duration.ts";
import type { NodeError } from "../sdk/handle.ts";
import type { ThrownErrors } from "../sdk/thrown-errors.ts";
import { WorkflowFailed } from "../sdk/workflow-failed.ts";
import type { NodeName, RetryRequest, RunHandle } from "../sdk/run-handle.ts";
import type { VirtualWorld } from "./virtual-world.ts";

/** A node of a run under test. */
export interface TestNode {
  readonly status: string;
  /** How often it was tried. */
  readonly attempts: number;
  readonly output: Json;
  readonly error: NodeError | null;
  /** Why it waits, was skipped or cancelled. */
  readonly reason: string | null;
}

/** What a function said by `ctx.log`. */
export interface TestLog {
  readonly node: string;
  readonly attempt: number;
  readonly message: string;
  readonly fields?: { readonly [key: string]: Json };
}

/** What the functions of a run have said and thrown. */
interface Heard {
  readonly logs: readonly TestLog[];
  readonly thrown: ThrownErrors;
}

/** A run in a world of its own, whose time stands still unless it is told to pass. */
export class TestRun<out Out> implements AsyncDisposable {
  readonly id: string;
  readonly logs: readonly TestLog[];
  readonly #world: VirtualWorld;
  readonly #handle: () => RunHandle<Out>;
  readonly #thrown: ThrownErrors;
  #events: readonly ExecutionEvent[] = [];
  #state: ExecutionState | undefined;
  #output: Out | undefined;

  private constructor(id: string, world: VirtualWorld, handle: () => RunHandle<Out>, { logs, thrown }: Heard) {
    this.id = id;
    this.#world = world;
    this.#handle = handle;
    this.#thrown = thrown;
    this.logs = logs;
  }

  static async begin<Out>(
    id: string,
    world: VirtualWorld,
    handle: () => RunHandle<Out>,
    heard: Heard,
  ): Promise<TestRun<Out>> {
    const run = new TestRun(id, world, handle, heard);
    await run.#settled();
    return run;
  }

  get status(): RunStatus {
    return this.#seen.status.toUpperCase() as RunStatus;
  }

  /** The result, if there is one. */
  get output(): Out | undefined {
    return this.#output;
  }

  /** Why there is no result, once the run is over without one. */
  get error(): WorkflowFailed | undefined {
    const { status } = this;
    const { end, plan, id } = this.#seen;
    const hasResult = status === "COMPLETED" || (status === "PARTIAL" && this.#output !== undefined);
    if (end === null || hasResult) return undefined;
    const { node, ...error } = end.error ?? {};
    const shown = end.error === null ? null : { ...(error as NodeError), ...(node !== undefined && { node_id: node }) };
    const ended = { execution_id: id, workflow: plan.workflow.name, status, error: shown };
    return new WorkflowFailed(ended, this.#thrown.causeOf(ended));
  }

  /** The nodes in the order in which they completed. */
  get order(): readonly string[] {
    return this.#events.flatMap((event) => {
      const isCompleted = event.kind === "taskCompleted" || event.kind === "nodeCompleted";
      return isCompleted && !event.node.includes("#") && !event.node.includes("[") ? [event.node] : [];
    });
  }

  /** Everything that has happened. */
  get events(): readonly EventView[] {
    return this.#events.map((event, i) => showEvent(i + 1, event, this.id));
  }

  /** A node, or an item of a map as `ocr[3]`. */
  node(name: NodeName): TestNode {
    const state = this.#seen;
    const id = typeof name === "string" ? name : name.id;
    const unit = state.unitOf(id);
    if (unit === undefined) {
      const nearest = nearestName(id, state.plan.graph.ids);
      throw new TypeError(
        `There is no node ${quote(id)}.${nearest === undefined ? "" : ` Did you mean ${quote(nearest)}?`}`,
      );
    }
    const { status, attempt, output, error, reason } = viewNode(state, unit);
    return { status, attempts: attempt, output: this.#value(output), error, reason };
  }

  /** Lets time pass at once: waits, backoffs, timeouts and expiries that are due by then happen in their order. */
  async advance(duration: Duration): Promise<void> {
    await this.#world.advance(durationMs(duration, "duration"));
    await this.#settled();
  }

  /** The process dies, as by `kill -9`, and starts again with what its store holds. */
  async crash(): Promise<void> {
    await this.#world.crash();
    await this.#settled();
  }

  approve(node: NodeName, data: Json = null, options: { readonly comment?: string } = {}): Promise<void> {
    return this.#ask((handle) => handle.approve(node, data, options));
  }

  reject(node: NodeName, options: { readonly data?: Json; readonly comment?: string } = {}): Promise<void> {
    return this.#ask((handle) => handle.reject(node, options));
  }

  signal(name: NodeName, data: Json = null): Promise<void> {
    return this.#ask((handle) => handle.signal(name, data));
  }

  cancel(): Promise<void> {
    return this.#ask((handle) => handle.cancel());
  }

  pause(): Promise<void> {
    return this.#ask((handle) => handle.pause());
  }

  resume(): Promise<void> {
    return this.#ask((handle) => handle.resume());
  }

  retry(request: RetryRequest = {}): Promise<void> {
    return this.#ask(async (handle) => void (await handle.retry(request)));
  }

  close(): Promise<void> {
    return this.#world.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #ask(request: (handle: RunHandle<Out>) => Promise<void>): Promise<void> {
    await this.#world.until(request(this.#handle()));
    await this.#settled();
  }

  /** Lets happen what can happen now, and looks what has become of the run. */
  async #settled(): Promise<void> {
    await this.#world.settle();
    const { memory, service } = this.#world;
    const entity = executionKey(this.id);
    const records = memory.data.entities.get(entity)?.records ?? [];
    this.#events = records.flatMap(({ text }) => JSON.parse(text) as ExecutionEvent[]);
    const accepted = this.#events[0];
    if (accepted?.kind !== "accepted") throw new Error(`the execution ${this.id} is not in the store`);
    const text = memory.data.records.get("definition")!.get(accepted.definition)!;
    const state = executionMachine.create(this.id, buildPlan(accepted.definition, JSON.parse(text) as Definition));
    for (const event of this.#events) executionMachine.evolve(state, event);
    this.#state = state;
    const output = state.isEnded ? await this.#world.until(service.executions.output(this.id)) : "null";
    this.#output = output === "null" ? undefined : (JSON.parse(output) as Out);
  }

  get #seen(): ExecutionState {
    return this.#state!;
  }

  #value(value: KeptValue | null): Json {
    if (value === null) return null;
    if ("json" in value) return value.json;
    if ("past" in value) return executionMachine.pastValue!(this.#events[value.past.version - 1]!) ?? null;
    const text = this.#world.memory.data.records.get(executionKey(this.id))!.get(value.blob.hash)!;
    return JSON.parse(text) as Json;
  }
}
