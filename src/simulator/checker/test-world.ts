import { expect, it } from "vitest";
import type { Accepted, ExecutionEvent, Wait } from "../../core/execution/events.ts";
import type { ErrorValue, RetryScope } from "../../core/message.ts";
import type { Workflow, WorkflowNode } from "../../definition/workflow.ts";
import { contentHash } from "../../json/hash.ts";
import type { Json } from "../../json/json.ts";
import type { Command, HistoryEntry, JournalEntry, Remains, World } from "../history.ts";
import type { WithoutRequest } from "../people.ts";
import { check } from "./check.ts";

export type Kind<Union, K> = Extract<Union, { readonly kind: K }>;
type CommitEntry = Kind<JournalEntry, "commit">;

export function node(id: string, more: Partial<WorkflowNode> = {}): WorkflowNode {
  return {
    id,
    handler: "step",
    config: {},
    dependencies: [],
    timeout_seconds: 30,
    queue_timeout_seconds: 60,
    retry: { max_attempts: 3, base_delay_seconds: 1, max_delay_seconds: 4, exponential_base: 2, jitter: 0 },
    condition_on_error: "fail",
    join: "none_failed",
    on_error: "fail_branch",
    inputs: false,
    queue: "default",
    priority: 0,
    dlq: "all",
    ...more,
  };
}

export const FLAKY: ErrorValue = { code: "FLAKY", message: "try again", retryable: true };
export const FATAL: ErrorValue = { code: "FATAL", message: "never", retryable: false };

/**
 * Writes a history as a correct engine with one partition would leave it. A test either damages a finished one, or
 * writes one with a step that must not be.
 */
export class TestWorld {
  readonly history: HistoryEntry[] = [];
  readonly workflow: Workflow;
  execution = "e1";
  now = 1_000;
  nonce = "";
  generation = 1;
  /** Other definitions, and the names they were published under. */
  readonly others: Record<string, Workflow> = {};
  readonly published: Record<string, string[]> = {};
  private epoch = 0;
  private seq = 0;
  private readonly versions = new Map<string, number>();
  private readonly firstSeen = new Map<string, number>();

  constructor(nodes: readonly WorkflowNode[], workflow: Partial<Workflow> = {}) {
    this.workflow = {
      name: "w",
      on_error: "fail_branch",
      timeout_seconds: 600,
      max_parallel_nodes: null,
      dlq: "all",
      priority: 0,
      nodes,
      ...workflow,
    };
  }

  get entity(): string {
    return `execution/${this.execution}`;
  }

  pass(ms: number): this {
    this.now += ms;
    return this;
  }

  add(entry: HistoryEntry extends infer Each ? (Each extends unknown ? Omit<Each, "at"> : never) : never): this {
    this.history.push({ at: this.now, ...entry });
    return this;
  }

  acquire(owner = "engine-1"): this {
    this.epoch++;
    this.nonce = `nonce-${this.history.length}`;
    const { epoch, nonce } = this;
    return this.add({ log: "journal", kind: "acquired", partition: 0, epoch, nonce, owner });
  }

  /** Commits events of the execution at hand, with the tasks that they dispatch and a wake time that hurts nobody. */
  commit(said: readonly ExecutionEvent[], more: Partial<CommitEntry> = {}): this {
    const { entity, epoch, nonce, now } = this;
    const version = (this.versions.get(entity) ?? 0) + 1;
    const events = said.map((event, i) => this.withSeen(event, version + i - 1));
    this.versions.set(entity, version + events.length - 1);
    const isOver = events.some((event) => event.kind === "executionEnded");
    const dispatches = events.filter((event) => event.kind === "taskDispatched");
    const tasks = dispatches.map(({ node, round, attempt, delivery }) => ({
      token: this.token(round === undefined ? node : `${node}@${round}`, attempt, delivery),
      queue: "default",
      priority: this.workflow.nodes.find(({ id }) => id === node)?.priority ?? 0,
      entity,
    }));
    this.add({
      log: "journal",
      kind: "commit",
      partition: 0,
      epoch,
      nonce,
      seq: this.seq,
      batch: `batch-${this.seq}`,
      owner: "engine-1",
      timeMs: now,
      records: events.length === 0 ? [] : [{ entity, version, events }],
      tasks,
      revoke: [],
      mail: [],
      wakes: [{ entity, atMs: isOver ? null : now }],
      deadLetters: [],
      discard: [],
      listings: [],
      replies: [],
      snapshots: [],
      suspect: null,
      ...more,
    });
    const batch = `batch-${this.seq}`;
    this.add({ log: "journal", kind: "acknowledged", partition: 0, nonce, seq: this.seq, owner: "engine-1", batch });
    this.seq++;
    return this;
  }

  /** A first dispatch sees everything before it, later ones what the first saw. */
  private withSeen(event: ExecutionEvent, version: number): ExecutionEvent {
    if (event.kind === "generationOpened") {
      this.generation = event.generation;
      this.firstSeen.clear();
    }
    if (event.kind !== "taskDispatched" && event.kind !== "mapOpened") return event;
    const map = event.node.replace(/\[\d+\]$/, "");
    const name = event.kind === "taskDispatched" ? `${map}@${event.round ?? 0}` : `${map}@0`;
    const seen = this.firstSeen.get(name) ?? version;
    this.firstSeen.set(name, seen);
    return { ...event, seen };
  }

  /** The store forgets everything from this entry on. */
  rollBack(toOrder: number, seq: number, version: number): this {
    this.add({ log: "nemesis", kind: "rolledBack", toOrder });
    this.seq = seq;
    this.versions.set(this.entity, version);
    this.firstSeen.clear();
    return this;
  }

  submit(input: Json = { n: 1 }): this {
    const { execution } = this;
    return this.add({ log: "client", kind: "submit", execution, definition: "d1", bodyHash: bodyHash(input), input });
  }

  submitted(outcome: "ok" | "refused" | "unknown" = "ok", input: Json = { n: 1 }): this {
    return this.add({
      log: "client",
      kind: "submitted",
      execution: this.execution,
      bodyHash: bodyHash(input),
      outcome,
    });
  }

  /** Somebody asks for something; `answered` is what he hears. */
  ask(request: string, command: WithoutRequest<Command>): this {
    const { execution } = this;
    return this.add({
      log: "client",
      kind: "command",
      execution,
      request,
      command: { ...command, request } as Command,
    });
  }

  answered(request: string, command: Command["kind"], code?: string): this {
    const answer = code === undefined ? { outcome: "ok" as const } : { outcome: "refused" as const, code };
    return this.add({ log: "client", kind: "answered", execution: this.execution, request, command, ...answer });
  }

  cancel(request: string): this {
    return this.ask(request, { kind: "cancel" });
  }

  cancelled(request: string, code?: string): this {
    return this.answered(request, "cancel", code);
  }

  read(version: number, status: string, sentAfter: number = this.history.length): this {
    const { execution } = this;
    const found = version > 0;
    return this.add({ log: "client", kind: "read", reader: "reader", execution, found, version, status, sentAfter });
  }

  token(node: string, attempt = 1, delivery = 1): string {
    return `${this.nonce}:${this.execution}:${this.generation}:${node}:${attempt}:${delivery}`;
  }

  /** A worker gets a task and runs its handler, which fails without an output. */
  work(
    node: string,
    output?: Json,
    config: Json = {},
    [attempt, delivery, rerun = 1]: readonly [number, number, number?] = [1, 1],
  ): this {
    const { execution } = this;
    const entry = { log: "worker" as const, worker: "worker-1", token: this.token(node, attempt, delivery) };
    const idempotencyKey = `${execution}/${node}/${rerun}`;
    this.add({ ...entry, kind: "delivered", execution, node, attempt, delivery, idempotencyKey });
    this.add({ ...entry, kind: "handlerStart", config, inputs: undefined });
    this.add({ ...entry, kind: "handlerEnd", output, failed: output === undefined });
    // Without an output nobody hears of it: it fails by a deadline, or is lost.
    return output === undefined ? this : this.add({ ...entry, kind: "settled", outcome: "settled" });
  }

  accepted(more: Partial<Accepted> = {}): Accepted {
    const input = { json: { n: 1 } };
    const by = { by: "local", tenant: "default", trace: "" };
    const known = { workflow: "w", definition: "d1", input, bodyHash: bodyHash(input.json), ...by };
    return { kind: "accepted", atMs: this.now, ...known, ...more };
  }

  started(): ExecutionEvent {
    return { kind: "started", atMs: this.now, deadlineAtMs: this.now + this.workflow.timeout_seconds * 1000 };
  }

  dispatched(
    node: string,
    config: Json = {},
    [attempt, delivery]: readonly [number, number] = [1, 1],
    holes: Json = [],
  ): ExecutionEvent {
    const spec = this.workflow.nodes.find(({ id }) => id === node);
    return {
      kind: "taskDispatched",
      seen: 0, // Known when it is committed.
      atMs: this.now,
      node,
      attempt,
      delivery,
      nonce: this.nonce,
      inputHash: contentHash(JSON.stringify({ config, holes })).slice(0, 32),
      queueDeadlineAtMs: this.now + (spec?.queue_timeout_seconds ?? 60) * 1000,
    };
  }

  taskStarted(node: string): ExecutionEvent {
    const startedAtMs = this.now;
    const runDeadlineAtMs = startedAtMs + 40_000;
    return { kind: "taskStarted", atMs: this.now, node, attempt: 1, delivery: 1, startedAtMs, runDeadlineAtMs };
  }

  completed(node: string, json: Json, [attempt, delivery]: readonly [number, number] = [1, 1]): ExecutionEvent {
    const output = { json };
    return { kind: "taskCompleted", atMs: this.now, node, attempt, delivery, startedAtMs: this.now, output };
  }

  failed(node: string, error: ErrorValue, more: Partial<Kind<ExecutionEvent, "taskFailed">> = {}): ExecutionEvent {
    return { kind: "taskFailed", atMs: this.now, node, attempt: 1, delivery: 1, error, retryAtMs: null, ...more };
  }

  lost(node: string, [attempt, delivery]: readonly [number, number] = [1, 1], handedBack = false): ExecutionEvent {
    return { kind: "deliveryLost", atMs: this.now, node, attempt, delivery, handedBack };
  }

  retryDue(node: string): ExecutionEvent {
    return { kind: "retryDue", atMs: this.now, node };
  }

  nodeCompleted(node: string, json: Json): ExecutionEvent {
    return { kind: "nodeCompleted", atMs: this.now, node, output: { json } };
  }

  nodeFailed(node: string, code: string): ExecutionEvent {
    return { kind: "nodeFailed", atMs: this.now, node, error: { code, message: "", retryable: false } };
  }

  skipped(node: string, reason: "condition" | "route" | "upstream_failed"): ExecutionEvent {
    return { kind: "nodeSkipped", atMs: this.now, node, reason };
  }

  applied(request: string, command: Command["kind"] = "cancel"): ExecutionEvent {
    return { kind: "commandApplied", atMs: this.now, command, request, by: "local" };
  }

  refused(request: string, command: Command["kind"] = "cancel", code = "ALREADY_TERMINAL"): ExecutionEvent {
    return { kind: "commandRefused", atMs: this.now, command, request, by: "local", code };
  }

  opened(scope: RetryScope, more: Partial<Kind<ExecutionEvent, "generationOpened">> = {}): ExecutionEvent {
    const generation = this.generation + 1;
    const deadlineAtMs = this.now + this.workflow.timeout_seconds * 1000;
    return { kind: "generationOpened", atMs: this.now, generation, scope, deadlineAtMs, ...more };
  }

  waits(node: string, wait: Wait, dueAtMs: number | null = null): ExecutionEvent {
    return { kind: "nodeWaiting", atMs: this.now, node, wait, dueAtMs };
  }

  mapOpened(
    node: string,
    items: readonly Json[],
    more: Partial<Kind<ExecutionEvent, "mapOpened">> = {},
  ): ExecutionEvent {
    const count = items.length;
    const known = {
      count,
      total: count,
      chunked: false,
      concurrency: 10,
      tolerated: 0,
      itemsHash: "",
      kept: false,
      seen: 0,
    };
    return { kind: "mapOpened", atMs: this.now, node, items: { json: items }, ...known, ...more };
  }

  roundEnded(node: string, round: number, nextAtMs: number | null): ExecutionEvent {
    return { kind: "roundEnded", atMs: this.now, node, round, nextAtMs };
  }

  signalled(name: string, json: Json): ExecutionEvent {
    return { kind: "signalReceived", atMs: this.now, name, data: { json }, by: "local" };
  }

  ended(
    status: Kind<ExecutionEvent, "executionEnded">["status"] = "completed",
    reason: Kind<ExecutionEvent, "executionEnded">["reason"] = "done",
    error?: Kind<ExecutionEvent, "executionEnded">["error"],
  ): ExecutionEvent {
    return { kind: "executionEnded", atMs: this.now, status, reason, ...(error !== undefined && { error }) };
  }

  letter(node: string, kind = "poison"): CommitEntry["deadLetters"] {
    const id = `${this.execution}:${this.generation}:${node}`;
    return [{ id, class: kind, entity: this.entity, status: "open" }];
  }

  /** The first commit of an execution, as its client sees it. */
  begin(...events: ExecutionEvent[]): this {
    this.submit();
    if (this.nonce === "") this.acquire();
    const first = events.map((event) => ("nonce" in event ? { ...event, nonce: this.nonce } : event));
    this.commit([this.accepted(), this.started(), ...first]);
    return this.submitted();
  }

  world(more: Partial<World> = {}): World {
    const world = {
      seed: 1,
      definitions: { d1: this.workflow, ...this.others },
      published: this.published,
      history: this.history,
      liveness: true,
      lossy: false,
      poisoned: [],
      secrets: { CANARY: "s3cret" },
      volatileTasks: false,
    };
    return { ...world, remains: remainsOf(this.history), ...more };
  }
}

function bodyHash(input: Json): string {
  return `body ${JSON.stringify(input)}`;
}

function remainsOf(history: readonly HistoryEntry[]): Remains {
  let commits: { entry: CommitEntry; order: number }[] = [];
  for (const [order, entry] of history.entries()) {
    if (entry.kind === "commit") commits.push({ entry, order });
    if (entry.kind === "rolledBack") commits = commits.filter((commit) => commit.order < entry.toOrder);
  }
  const headers = new Map<string, Remains["headers"][number]>();
  for (const { entry } of commits) {
    for (const { entity, version, events } of entry.records) {
      const last = events.findLast(({ kind }) => kind === "executionEnded" || kind === "generationOpened");
      const ended = last?.kind === "executionEnded" ? last : undefined;
      const kind = ended === undefined ? "open" : ended.status === "completed" ? "endedWell" : "endedBadly";
      if (last === undefined && headers.has(entity)) continue;
      const status = ended?.status.toUpperCase() ?? "RUNNING";
      headers.set(entity, { entity, class: kind, status, version: version + events.length - 1 });
    }
  }
  const folds = [...headers.keys()].map((entity) => ({ entity, whole: "h", fromSnapshot: "h", again: "h" }));
  const letters = new Map<string, Remains["deadLetters"][number]>();
  for (const { entry } of commits) {
    for (const letter of entry.deadLetters) letters.set(letter.id, letter);
    for (const id of entry.discard) letters.delete(id);
  }
  const deadLetters = [...letters.values()];
  return { tasks: [], inbox: 0, wakes: [], deadLetters, listed: [], headers: [...headers.values()], folds };
}

const NOTHING: HistoryEntry = { log: "nemesis", kind: "fault", at: 0, fault: "none", target: "" };
const NO_EVENT: ExecutionEvent = { kind: "resultIgnored", atMs: 0, token: "", reason: "unknownDispatch" };

/** The nth entry of a kind, changed. */
export function change<K extends HistoryEntry["kind"]>(
  world: World,
  kind: K,
  nth: number,
  patch: Partial<Kind<HistoryEntry, K>>,
): World {
  return replaced(world, kind, nth, (entry) => ({ ...entry, ...patch }));
}

/** The nth entry of a kind, gone; others keep their numbers. */
export function drop(world: World, kind: HistoryEntry["kind"], nth: number): World {
  return replaced(world, kind, nth, () => NOTHING);
}

function replaced(world: World, kind: string, nth: number, by: (entry: HistoryEntry) => HistoryEntry): World {
  const order = orderOf(world, kind, nth);
  return { ...world, history: world.history.with(order, by(world.history[order]!)) };
}

export function orderOf(world: World, kind: string, nth: number): number {
  let left = nth;
  const order = world.history.findIndex((entry) => entry.kind === kind && left-- === 0);
  if (order === -1) throw new Error(`the history has no ${kind} number ${nth}`);
  return order;
}

/** The nth event of a kind, changed. */
export function changeEvent<K extends ExecutionEvent["kind"]>(
  world: World,
  kind: K,
  nth: number,
  patch: Partial<Kind<ExecutionEvent, K>>,
): World {
  return replacedEvent(world, kind, nth, (event) => ({ ...event, ...patch }));
}

/** The nth event of a kind, gone; others keep their versions. */
export function dropEvent(world: World, kind: ExecutionEvent["kind"], nth: number): World {
  return replacedEvent(world, kind, nth, ({ atMs }) => ({ ...NO_EVENT, atMs }));
}

function replacedEvent(world: World, kind: string, nth: number, by: (event: ExecutionEvent) => ExecutionEvent): World {
  let left = nth;
  const change = (event: ExecutionEvent): ExecutionEvent => (event.kind === kind && left-- === 0 ? by(event) : event);
  const history = world.history.map((entry) =>
    entry.kind === "commit"
      ? { ...entry, records: entry.records.map((record) => ({ ...record, events: record.events.map(change) })) }
      : entry,
  );
  if (left >= 0) throw new Error(`the history has no ${kind} event number ${nth}`);
  return { ...world, history };
}

export function remain(world: World, patch: Partial<Remains>): World {
  return { ...world, remains: { ...world.remains, ...patch } };
}

/** One broken world: the invariant that must report it first, what is wrong in it, and what else that breaks. */
export type Broken = readonly [invariant: string, what: string, world: () => World, also?: readonly string[]];

/** Runs the checker over broken worlds: each is reported by the invariant it breaks, and by no other than is said. */
export function itReports(cases: readonly Broken[]): void {
  for (const [invariant, what, world, also = []] of cases) {
    it(`${invariant}: ${what}`, () => {
      const reported = [...new Set(check(world()).map((violation) => violation.invariant))];
      expect(reported[0]).toBe(invariant);
      expect(reported.toSorted()).toEqual([invariant, ...also].toSorted());
    });
  }
}
