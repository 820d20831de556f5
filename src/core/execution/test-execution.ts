import assert from "node:assert/strict";
import { node as nodeSpec, workflow as workflowSpec } from "../../../test/support/workflows.ts";
import type { Dependency, Workflow, WorkflowNode } from "../../definition/workflow.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import type { Answer, BlobDraft, Context, DeadLetterDraft, Decision, ListingDraft, TaskDraft } from "../machine.ts";
import type { BudgetStanding, ErrorValue, Message, MessageBody, Parent, Start } from "../message.ts";
import { formatToken } from "../token.ts";
import type { Value } from "../value.ts";
import type { ExecutionEvent } from "./events.ts";
import { explain } from "./explain.ts";
import { instanceOf } from "./instance.ts";
import { executionMachine } from "./machine.ts";
import { buildPlan } from "./plan.ts";
import type { TaskText } from "./prepare.ts";
import { type ExecutionState, WORKFLOW_TIMER } from "./state.ts";
import { sweep } from "./sweep.ts";
import { awaitedGate } from "./asks.ts";
import { type ExecutionSummary, viewExecution } from "./test-summary.ts";
import { type NodeSummary, viewNode } from "./view.ts";

export const node = nodeSpec;
export const workflow = workflowSpec;

/** A node that the engine runs itself. */
export function engineNode(
  id: string,
  handler: string,
  config: JsonObject = {},
  dependencies: readonly Dependency[] = [],
  more: Partial<WorkflowNode> = {},
): WorkflowNode {
  return nodeSpec(id, dependencies, { handler, config, timeout_seconds: null, ...more });
}

/** A map as the loader writes it down: what is not said has its default. */
export function mapNode(
  id: string,
  config: JsonObject,
  dependencies: readonly Dependency[] = [],
  more: Partial<WorkflowNode> = {},
): WorkflowNode {
  const whole = { max_concurrency: 10, tolerated_failures: 0, ...config };
  return nodeSpec(id, dependencies, { handler: "map", config: whole, queue: "step", ...more });
}

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
  readonly parent?: Parent;
  readonly id?: string;
  readonly definition?: string;
  /** Looking at every node and edge after every step is too much for a large graph. */
  readonly large?: boolean;
}

/**
 * One execution under test: the core alone, with a clock that the test moves. After every decision it checks that
 * nothing but `evolve` has changed the state, that the state does not contradict itself, and that every open node can
 * say what it waits for.
 */
export class Trial {
  readonly id: string;
  readonly state: ExecutionState;
  readonly events: ExecutionEvent[] = [];
  readonly tasks: TaskDraft[] = [];
  readonly mail: Message[] = [];
  readonly letters: DeadLetterDraft[] = [];
  readonly listings: ListingDraft[] = [];
  readonly blobs: BlobDraft[] = [];
  readonly fetched: Map<string, Json>;
  nowMs = START_MS;
  /** Set while messages wait to be read. */
  deadlineMs: number | null = null;
  /** How far the store's clock is ahead of partition time. */
  calendarAheadMs = 0;
  nonce: string;
  maxEvents: number;
  room: (queue: string) => number;
  /** The last decision, with its reply and its effects. */
  last: Decision<ExecutionEvent> = { events: [] };
  private readonly random: () => number;
  private readonly large: boolean;
  private requests = 0;

  constructor(definition: Workflow, options: TrialOptions = {}) {
    this.id = options.id ?? "x";
    this.state = executionMachine.create(this.id, buildPlan(options.definition ?? "hash", definition));
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
      calendarMs: this.nowMs + this.calendarAheadMs,
      nonce: this.nonce,
      maxEvents: this.maxEvents,
      random: this.random,
      room: (queue) => this.room(queue),
      fetched: (key) => this.fetched.get(key),
    };
  }

  /** Accepts and starts the execution, and lets it go on until it waits for somebody. */
  begin(input: Value = { json: null }, parent?: Parent): this {
    this.send(startBody(input, parent));
    return this.settle();
  }

  /** Accepts it, and does not start it. */
  hold(input: Value = { json: null }): this {
    this.send({ ...startBody(input), hold: true });
    return this.settle();
  }

  send(body: MessageBody, by = "test"): readonly ExecutionEvent[] {
    return this.take(() => executionMachine.decide(this.state, this.message(body, by), this.context));
  }

  /** Asks for something, with a request id of its own unless it has one; gives the answer. */
  ask(body: Command, by = "test"): Answer {
    this.send({ request: `request-${++this.requests}`, ...body }, by);
    return this.last.reply!;
  }

  /** As `ask`, of what must not be refused; then it goes on until it waits for somebody. */
  does(body: Command, by = "test"): this {
    const answer = this.ask(body, by);
    if ("refused" in answer) throw new Error(`${body.kind} was refused: ${answer.refused}`);
    return this.settle();
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

  /** The name of a dispatch: the newest, unless something else is said. */
  token(
    id: string,
    of: Partial<{ attempt: number; delivery: number; nonce: string; generation: number; round: number }> = {},
  ): string {
    const unit = this.state.unitOf(id);
    const run = unit === undefined ? undefined : this.state.runs[unit];
    const delivery = of.delivery ?? run?.delivery ?? 1;
    const nonce = of.nonce ?? run?.nonces[delivery - 1] ?? this.nonce;
    const { attempt = run?.attempt ?? 1, generation = run?.generation ?? 1 } = of;
    const instance = unit === undefined ? id : instanceOf(this.state, unit, of.round);
    return formatToken({ nonce, execution: this.id, generation, instance, attempt, delivery });
  }

  /** The newest delivery reports its start. */
  starts(id: string, runningMs = 0): readonly ExecutionEvent[] {
    return this.send({ kind: "taskStarted", token: this.token(id), runningMs });
  }

  completes(id: string, output: Json = null, usage?: Json): this {
    const used = usage === undefined ? {} : { usage };
    this.send({ kind: "taskCompleted", token: this.token(id), output: { json: output }, runningMs: 5, ...used });
    return this.settle();
  }

  fails(id: string, error: Partial<ErrorValue> = {}, usage?: Json): this {
    const used = usage === undefined ? {} : { usage };
    this.send({ kind: "taskFailed", token: this.token(id), error: failure(error), runningMs: 5, ...used });
    return this.settle();
  }

  loses(id: string): this {
    this.send({ kind: "deliveryLost", token: this.token(id) });
    return this.settle();
  }

  /** The child that a node waits for is over. */
  childEnds(id: string, end: Partial<Extract<MessageBody, { kind: "childEnded" }>> = {}): this {
    const wait = this.state.runs[this.state.unitOf(id)!]?.wait;
    if (wait?.for !== "child") throw new Error(`${id} waits for no child`);
    const { execution, call } = wait.child;
    const body = { child: `execution/${execution}`, generation: 1, instance: id, status: "completed", call };
    this.send({ kind: "childEnded", ...body, ...end });
    return this.settle();
  }

  /** The gate that a unit waits at lets it through. */
  passes(id: string): this {
    const { gate, ask } = awaitedGate(this.state, this.unit(id))!;
    this.send({ kind: "gateAnswered", gate, granted: [{ ask, node: id }] });
    return this.settle();
  }

  /** The cache has the result of a unit. */
  finds(id: string, output: Json, from: string): this {
    const { gate, ask } = awaitedGate(this.state, this.unit(id))!;
    this.send({ kind: "cacheAnswered", cache: gate, ask, node: id, found: { output: { json: output }, from } });
    return this.settle();
  }

  /** The execution gets its place among those of its workflow. */
  enters(): this {
    const { gate, ask } = this.state.entry!;
    this.send({ kind: "gateAnswered", gate, granted: [{ ask, node: "" }] });
    return this.settle();
  }

  /** It sends it away. */
  refuses(id: string, budget?: BudgetStanding): this {
    const { gate, ask } = awaitedGate(this.state, this.unit(id))!;
    this.send({ kind: "gateAnswered", gate, refused: [{ ask, node: id }], ...(budget && { budget }) });
    return this.settle();
  }

  /** A budget has too little left for it, and waits for a person. */
  stalls(id: string, budget: BudgetStanding = { limits: { tokens: 50 }, spent: { tokens: 40 } }): this {
    const { gate, ask } = awaitedGate(this.state, this.unit(id))!;
    this.send({ kind: "gateAnswered", gate, stalled: [{ ask, node: id }], budget });
    return this.settle();
  }

  apply(...events: readonly ExecutionEvent[]): this {
    for (const event of events) executionMachine.evolve(this.state, event);
    this.events.push(...events);
    return this;
  }

  status(id: string): string {
    return this.state.statusOf(this.unit(id));
  }

  view(id: string): NodeSummary {
    return viewNode(this.state, this.unit(id));
  }

  /** How each node reads, with its reason if it has one: `{a: "COMPLETED", b: "SKIPPED condition"}`. */
  get shown(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(this.summary.nodes).map(([id, { status, reason }]) => [
        id,
        reason === null ? status : `${status} ${reason}`,
      ]),
    );
  }

  get summary(): ExecutionSummary {
    return viewExecution(this.state);
  }

  /** The newest task of a node, as a worker reads it. */
  task(id: string): TaskText {
    return JSON.parse(this.tasks.findLast(isTaskOf(id))!.text) as TaskText;
  }

  /** All tasks of a node; of an item by its name `id[3]`. */
  taskTexts(id: string): TaskText[] {
    return this.tasks.filter(isTaskOf(id)).map(({ text }) => JSON.parse(text) as TaskText);
  }

  /** What is out now, by name and in order. */
  get out(): string[] {
    return Array.from(this.state.live, (unit) => this.state.nameOf(unit));
  }

  kinds(): string[] {
    return this.events.map((event) => event.kind);
  }

  index(id: string): number {
    return this.state.plan.graph.indexOf.get(id)!;
  }

  /** A node or an item of a map. */
  unit(name: string): number {
    return this.state.unitOf(name)!;
  }

  private message(body: MessageBody, by: string): Message {
    return { ...message(body, by), to: `execution/${this.id}` };
  }

  private take(decide: () => Decision<ExecutionEvent>): readonly ExecutionEvent[] {
    const before = this.large ? "" : imprint(this.state);
    const decision = decide();
    if (!this.large && imprint(this.state) !== before) throw new Error("a decision has changed the state");
    for (const event of decision.events) executionMachine.evolve(this.state, event);
    if (decision.events.length > 0) {
      executionMachine.check(this.state, !this.large);
      if (!this.large) this.checkWaits();
    }
    this.events.push(...decision.events);
    this.tasks.push(...(decision.tasks ?? []));
    // Whatever is sent out: who has it in the same process is told what others read.
    for (const task of decision.tasks ?? []) assert.deepEqual(written(task.value()), JSON.parse(task.text));
    this.mail.push(...(decision.mail ?? []));
    this.letters.push(...(decision.deadLetters ?? []));
    this.listings.push(...(decision.listings ?? []));
    this.blobs.push(...(decision.blobs ?? []));
    this.last = decision;
    return decision.events;
  }

  /** Every open node tells what it waits for, and the sweep has nothing to mend. */
  private checkWaits(): void {
    const { state } = this;
    const explained = explain(state);
    const open = state.isEnded ? [] : state.plan.graph.ids.filter((_, node) => !state.isNodeEnded(node));
    if (String(explained.map(({ node }) => node)) !== String(open)) throw new Error("an open node is not explained");
    const [stuck] = explained.filter(({ reason, sentence }) => reason === "stuck" || sentence === "");
    if (stuck !== undefined) throw new Error(`${stuck.node} is stuck`);
    if (sweep(state, this.context).events.length > 0) throw new Error("the sweep has found something");
  }
}

/** Of a node, whatever its round: the fourth part of a token is the node instance. */
function isTaskOf(id: string): (task: TaskDraft) => boolean {
  return ({ token }) => token.split(":")[3]!.replace(/@\d+$/, "") === id;
}

/** What people ask of an execution; the request id may be left out. */
export type Command = MessageBody extends infer Body
  ? Body extends { readonly request: string }
    ? Omit<Body, "request"> & { readonly request?: string }
    : never
  : never;

/**
 * Everything a state holds, derived parts included, as a text to compare. Units are told by name: their numbers are not
 * the same in a state that was restored.
 */
export function imprint(state: ExecutionState): string {
  const { edges, undecided, okEdges, badEdges, joined, readersLeft, openCount, completedCount, plan } = state;
  const { nodeCount } = plan.graph;
  const name = (unit: number): string => (unit === WORKFLOW_TIMER ? "workflow" : state.nameOf(unit));
  const names = (units: Iterable<number>): string[] => Array.from(units, name);
  const inLine: number[] = [];
  for (let unit = 0; unit < state.runs.length; unit++) if (state.inLine[unit] === 1) inLine.push(unit);
  const heap = state.timers.due(Number.MAX_SAFE_INTEGER, 1_000_000);
  const dates = state.calendar.due(Number.MAX_SAFE_INTEGER, 1_000_000);
  return JSON.stringify([
    snapshotByName(state),
    [edges, undecided, okEdges, badEdges, readersLeft].map((array) => Array.from(array)),
    // Once it is over, joins that have spoken mean nothing any more.
    state.isEnded ? [] : Array.from(joined),
    [openCount, completedCount, state.closing, state.timedCount, nodeCount],
    [...state.liveByQueue].filter(([, count]) => count > 0).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    [state.timers.peekMs(), names(heap).toSorted(), state.calendar.peekMs(), names(dates).toSorted()],
    names(inLine).toSorted(),
    [names(state.reviews), names(state.children), names(state.orphans)],
    [...state.signalWaits].map(([signal, units]) => `${signal}: ${String(names(units))}`).toSorted(),
    [...state.skipReasons].map(([node, reason]) => `${name(node)}: ${reason}`).toSorted(),
    [...state.edits].map(([node, { spec }]) => [name(node), spec.config]),
    [[...state.asks].map(([unit, asks]) => [name(unit), asks]), state.askCount, state.returns],
  ]);
}

/** A snapshot, with its units in the order of their names. */
function snapshotByName(state: ExecutionState): unknown {
  const body = JSON.parse(executionMachine.snapshot(state)) as { nodes: [string, ...unknown[]][] };
  return { ...body, nodes: body.nodes.toSorted(([a], [b]) => (a < b ? -1 : 1)) };
}

export function message(body: MessageBody, by = "test"): Message {
  return { id: "message", to: "execution/x", by, trace: "", tenant: "default", body };
}

export function startBody(input: Value = { json: null }, parent?: Parent): Start {
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

function written(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
