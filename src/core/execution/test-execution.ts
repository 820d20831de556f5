import { node as nodeSpec, workflow as workflowSpec } from "../../../test/support/workflows.ts";
import type { Workflow } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import type { Context, Decision, TaskDraft } from "../machine.ts";
import type { ErrorValue, Message, MessageBody } from "../message.ts";
import { formatToken } from "../token.ts";
import type { Value } from "../value.ts";
import type { ExecutionEvent } from "./events.ts";
import { executionMachine } from "./machine.ts";
import { buildPlan } from "./plan.ts";
import type { TaskText } from "./prepare.ts";
import type { ExecutionState } from "./state.ts";
import { type NodeSummary, viewExecution } from "./view.ts";

export const node = nodeSpec;
export const workflow = workflowSpec;

/** Where the clock of every trial starts. */
export const START_MS = 1_000_000;

export const NONCE = "nonce";

export interface TrialOptions {
  readonly input?: Value;
  readonly nonce?: string;
  readonly maxEvents?: number;
  readonly room?: (queue: string) => number;
  readonly fetched?: ReadonlyMap<string, Json>;
  readonly random?: () => number;
  readonly parent?: { readonly entity: string; readonly instance: string };
  /** Looking at every node and edge after every step is too much for a large graph. */
  readonly large?: boolean;
}

/**
 * One execution under test: the core alone, with a clock that the test moves. After every decision it checks that
 * nothing but `evolve` has changed the state, and that the state does not contradict itself.
 */
export class Trial {
  readonly state: ExecutionState;
  readonly events: ExecutionEvent[] = [];
  readonly tasks: TaskDraft[] = [];
  readonly fetched: Map<string, Json>;
  nowMs = START_MS;
  /** Set while messages wait to be read. */
  deadlineMs: number | null = null;
  nonce: string;
  maxEvents: number;
  room: (queue: string) => number;
  /** The last decision, with its reply and its effects. */
  last: Decision<ExecutionEvent> = { events: [] };
  private readonly random: () => number;
  private readonly large: boolean;

  constructor(definition: Workflow, options: TrialOptions = {}) {
    this.state = executionMachine.create("x", buildPlan("hash", definition));
    this.nonce = options.nonce ?? NONCE;
    this.maxEvents = options.maxEvents ?? 256;
    this.room = options.room ?? (() => 1000);
    this.fetched = new Map(options.fetched ?? []);
    this.random = options.random ?? (() => 0);
    this.large = options.large ?? false;
  }

  get context(): Context {
    return {
      nowMs: this.nowMs,
      deadlineMs: this.deadlineMs ?? this.nowMs,
      calendarMs: this.nowMs,
      nonce: this.nonce,
      maxEvents: this.maxEvents,
      random: this.random,
      room: (queue) => this.room(queue),
      fetched: (key) => this.fetched.get(key),
    };
  }

  /** Accepts and starts the execution, and lets it go on until it waits for somebody. */
  begin(input: Value = { json: null }, parent?: TrialOptions["parent"]): this {
    this.send(startBody(input, parent));
    return this.settle();
  }

  send(body: MessageBody, by = "test"): readonly ExecutionEvent[] {
    return this.take(() => executionMachine.decide(this.state, message(body, by), this.context));
  }

  /** One call of `advance`. */
  step(): readonly ExecutionEvent[] {
    return this.take(() => executionMachine.advance(this.state, this.context));
  }

  /** Calls `advance` until it gives nothing, as the shell does. */
  settle(): this {
    while (this.step().length > 0);
    return this;
  }

  at(afterStartMs: number): this {
    this.nowMs = START_MS + afterStartMs;
    return this;
  }

  token(
    id: string,
    of: Partial<{ attempt: number; delivery: number; nonce: string; generation: number }> = {},
  ): string {
    const run = this.state.runs[this.index(id)];
    const delivery = of.delivery ?? run?.delivery ?? 1;
    const nonce = of.nonce ?? run?.nonces[delivery - 1] ?? this.nonce;
    const { attempt = run?.attempt ?? 1, generation = 1 } = of;
    return formatToken({ nonce, execution: "x", generation, instance: id, attempt, delivery });
  }

  /** The newest delivery reports its start. */
  starts(id: string, runningMs = 0): readonly ExecutionEvent[] {
    return this.send({ kind: "taskStarted", token: this.token(id), runningMs });
  }

  completes(id: string, output: Json = null): this {
    this.send({ kind: "taskCompleted", token: this.token(id), output: { json: output }, runningMs: 5 });
    return this.settle();
  }

  fails(id: string, error: Partial<ErrorValue> = {}): this {
    this.send({ kind: "taskFailed", token: this.token(id), error: failure(error), runningMs: 5 });
    return this.settle();
  }

  loses(id: string): this {
    this.send({ kind: "deliveryLost", token: this.token(id) });
    return this.settle();
  }

  apply(...events: readonly ExecutionEvent[]): this {
    for (const event of events) executionMachine.evolve(this.state, event);
    this.events.push(...events);
    return this;
  }

  status(id: string): string {
    return this.state.statusOf(this.index(id));
  }

  view(id: string): NodeSummary {
    return viewExecution(this.state).nodes[id]!;
  }

  /** How each node reads, with its reason if it has one: `{a: "COMPLETED", b: "SKIPPED condition"}`. */
  get shown(): Readonly<Record<string, string>> {
    const { nodes } = viewExecution(this.state);
    return Object.fromEntries(
      Object.entries(nodes).map(([id, { status, reason }]) => [id, reason === null ? status : `${status} ${reason}`]),
    );
  }

  /** The newest task of a node, as a worker reads it. */
  task(id: string): TaskText {
    return this.taskTexts(id).at(-1)!;
  }

  taskTexts(id: string): TaskText[] {
    return this.tasks.map(({ text }) => JSON.parse(text) as TaskText).filter((task) => task.node === id);
  }

  kinds(): string[] {
    return this.events.map((event) => event.kind);
  }

  index(id: string): number {
    return this.state.plan.graph.indexOf.get(id)!;
  }

  private take(decide: () => Decision<ExecutionEvent>): readonly ExecutionEvent[] {
    const before = this.large ? "" : imprint(this.state);
    const decision = decide();
    if (!this.large && imprint(this.state) !== before) throw new Error("a decision has changed the state");
    for (const event of decision.events) executionMachine.evolve(this.state, event);
    if (decision.events.length > 0) executionMachine.check(this.state, !this.large);
    this.events.push(...decision.events);
    this.tasks.push(...(decision.tasks ?? []));
    this.last = decision;
    return decision.events;
  }
}

/** Everything a state holds, derived parts included, as a text to compare. */
export function imprint(state: ExecutionState): string {
  const { edges, undecided, okEdges, badEdges, joined, inLine, readersLeft, openCount, completedCount } = state;
  return JSON.stringify([
    executionMachine.snapshot(state),
    [edges, undecided, okEdges, badEdges, joined, inLine, readersLeft].map((array) => Array.from(array)),
    [openCount, completedCount, state.timers.peekMs(), [...state.liveByQueue].toSorted(([a], [b]) => (a < b ? -1 : 1))],
    state.timers.due(Number.MAX_SAFE_INTEGER, 1_000_000),
  ]);
}

export function message(body: MessageBody, by = "test"): Message {
  return { id: "message", to: "execution/x", by, trace: "", tenant: "default", body };
}

export function startBody(
  input: Value = { json: null },
  parent?: TrialOptions["parent"],
): MessageBody & { kind: "start" } {
  return {
    kind: "start",
    workflow: "test",
    definition: "hash",
    input,
    bodyHash: "body",
    ...(parent !== undefined && { parent }),
  };
}

export function failure(error: Partial<ErrorValue> = {}): ErrorValue {
  return { code: "HANDLER_ERROR", message: "broke", retryable: false, ...error };
}

export const RETRYABLE: Partial<ErrorValue> = { retryable: true };
