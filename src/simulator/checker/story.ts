import type {
  Accepted,
  ChildCall,
  ExecutionEnded,
  ExecutionEvent,
  GenerationOpened,
  MapOpened,
  NodeCompleted,
  TaskDispatched,
  TaskFailedEvent,
} from "../../core/execution/events.ts";
import { isJsonObject } from "../../json/json.ts";
import type { Value } from "../../core/value.ts";
import type { World } from "../history.ts";
import { type Commit, executionOf, tokenOf } from "./evidence.ts";
import { newNode, type NodeStory, reopen } from "./node-story.ts";
import { edge, isDefinite, join, type NodeEnd, reopened } from "./reference-rules.ts";
import { itemOf, type Shape, shapeOf } from "./shape.ts";

/** How a generation ended. */
export interface Ending {
  readonly event: ExecutionEnded;
  readonly commit: Commit;
  readonly generation: number;
  /** The call of its parent that was open then. */
  readonly call: number;
}

/** A child that nobody waits for any more: it has to be called off. */
export interface Orphan {
  readonly instance: string;
  readonly child: ChildCall;
  readonly commit: Commit;
}

/** A request that was decided. */
export interface Decided {
  readonly applied: boolean;
  readonly command: string;
  readonly code: string | undefined;
  readonly commit: Commit;
  readonly version: number;
}

/**
 * One execution, folded from its surviving events by rules of our own. It believes what it is told: an event that
 * cannot be is applied as far as it makes sense, for saying so is the business of the invariants.
 */
export class Story {
  readonly id: string;
  readonly entity: string;
  version = 0;
  generation = 1;
  accepted: Accepted | null = null;
  acceptedIn: Commit | null = null;
  input: Value = { json: null };
  shape: Shape | null = null;
  nodes: readonly NodeStory[] = [];
  isStarted = false;
  isPaused = false;
  /** Its place among the executions of its workflow, if that has a limit. */
  entry: "asked" | "granted" | null = null;
  deadlineAtMs: number | null = null;
  /** The end of this generation; null while it is open. */
  ended: ExecutionEnded | null = null;
  endedIn: Commit | null = null;
  readonly endings: Ending[] = [];
  /** What opened this generation; null in the first. */
  openedBy: GenerationOpened | null = null;
  openedIn: Commit | null = null;
  /** The nodes that this generation runs; in the first one all. */
  reopened: ReadonlySet<number> = new Set();
  /** The newest call of its parent, and those that it has answered. */
  call = 1;
  isQuarantined = false;
  /** Tokens of results that came while it was in quarantine: they are there, and are read when it is released. */
  readonly parkedResults: Set<string> = new Set();
  /** Why it was quarantined last. */
  quarantineMessage = "";
  wasQuarantined = false;
  /** The wake time that the store holds. */
  wakeAtMs: number | null = null;
  openCount = 0;
  outCount = 0;
  completedCount = 0;
  failed: NodeStory[] = [];
  readonly requests: Map<string, Decided> = new Map();
  /** Set by a cancel of this generation. */
  cancelledIn: Commit | null = null;
  /** `generation:instance:attempt:delivery` of every dispatch. */
  readonly dispatched: Set<string> = new Set();
  /** Undelivered dispatches that ended all the same, and how. */
  readonly closed: Map<string, string> = new Map();
  /** Signals that nobody has taken yet, oldest first. */
  readonly signals: Map<string, Value[]> = new Map();
  /** Who waits for somebody to raise a budget. */
  readonly stalled: Set<string> = new Set();
  signalsReceived = 0;
  /** Dead letters that were replayed. */
  readonly replayed: Set<string> = new Set();
  /** Attempts, as `generation:instance:attempt`, of which a result was taken, kept or refused after their end. */
  readonly heard: Set<string> = new Set();
  /** By instance, the child that was called last. */
  readonly children: Map<string, ChildCall> = new Map();
  /** Calls of the parent for what was there already. */
  readonly answered: { readonly call: number; readonly generation: number; readonly commit: Commit }[] = [];
  readonly orphans: Orphan[] = [];
  /** Tasks that were out when their map or the execution ended. */
  readonly calledBack: { readonly token: string; readonly commit: Commit }[] = [];
  /** Per map, the items that are out or in the middle of something. */
  readonly mapped: Map<NodeStory, Set<NodeStory>> = new Map();

  constructor(entity: string) {
    this.entity = entity;
    this.id = executionOf(entity);
  }

  get isOpen(): boolean {
    return this.isStarted && this.ended === null;
  }

  /** A node by id, or an item of a map by `id[3]`; a round may be named too. */
  node(name: string): NodeStory | undefined {
    const index = this.shape?.indexOf.get(name);
    if (index !== undefined) return this.nodes[index];
    const [, id = "", place, round] = INSTANCE.exec(name) ?? [];
    const map = this.shape?.indexOf.get(id);
    if (map === undefined) return undefined;
    const node = this.nodes[map]!;
    if (place !== undefined) return node.items[Number(place)];
    return round === undefined ? undefined : node;
  }

  /** Every node and every item. */
  *units(): Iterable<NodeStory> {
    for (const node of this.nodes) {
      yield node;
      yield* node.items;
    }
  }

  isHandled(node: NodeStory): boolean {
    return node.shape.children.some((edge) => edge.on === "failed" && this.nodes[edge.node]!.status === "completed");
  }

  /** What runs inside the place of somebody above needs none of its own. */
  get needsEntry(): boolean {
    return this.shape?.workflow.concurrency !== undefined && this.accepted?.parent?.within !== true;
  }

  /** Whatever happens to it, it does not wait for that any more. */
  private stall(event: ExecutionEvent): void {
    if (event.kind === "gateStalled") this.stalled.add(event.node);
    else if (event.kind === "paused" || event.kind === "executionEnded") this.stalled.clear();
    else if (this.stalled.size > 0 && "node" in event && event.kind !== "gateAsked") {
      const { node } = event;
      for (const name of this.stalled) if (name === node || name.startsWith(`${node}[`)) this.stalled.delete(name);
    }
  }

  fold(event: ExecutionEvent, commit: Commit, world: World): void {
    this.version++;
    this.stall(event);
    switch (event.kind) {
      case "accepted":
        return this.accept(event, commit, world);
      case "started":
        this.isStarted = true;
        this.deadlineAtMs = event.deadlineAtMs;
        this.input = event.input ?? this.input;
        for (const node of this.nodes) this.ask(node, event.atMs);
        return;
      case "paused":
      case "resumed":
        this.isPaused = event.kind === "paused";
        if (this.isPaused) this.leaveGates();
        if (this.isPaused && this.entry === "asked") this.entry = null;
        return;
      case "entryAsked":
        this.entry = "asked";
        return;
      case "entryGranted":
        this.entry = "granted";
        return;
      case "entryLeft":
        this.entry = null;
        return;
      case "executionEnded":
        return this.close(event, commit);
      case "generationOpened":
        return this.reopen(event, commit);
      case "parentCalled":
        this.call = event.call;
        return;
      case "signalReceived":
        this.signalsReceived++;
        this.signals.set(event.name, [...(this.signals.get(event.name) ?? []), event.data]);
        return;
      case "commandApplied":
      case "commandRefused":
        return this.decide(event, commit);
      case "quarantined":
        this.isQuarantined = true;
        this.quarantineMessage = event.error.message;
        this.wasQuarantined = true;
        return;
      case "released":
        this.isQuarantined = false;
        return;
      case "lateResult": {
        const node = this.node(event.node);
        if (node === undefined) return;
        const instance = instanceOf(event.node, node.round === 0 ? undefined : node.round);
        this.heard.add(`${this.generation}:${instance}:${event.attempt}`);
        node.late = { output: event.output, inputHash: node.inputHash, generation: this.generation };
        return;
      }
      case "resultIgnored":
        this.heard.add(event.token.split(":").slice(2, 5).join(":"));
        return;
      case "parentAnswered":
        this.answered.push({ call: event.call, generation: this.generation, commit });
        return;
      case "parked": {
        const { body } = event.message;
        if (body.kind === "taskCompleted" || body.kind === "taskFailed") this.parkedResults.add(body.token);
        return;
      }
      case "childrenCancelled":
      case "letterDiscarded":
      case "repaired":
      case "gatesReturned":
      case "gateStalled":
        return;
      case "gateAsked":
      case "gateGranted":
      case "gateRefused":
      case "taskDispatched":
      case "taskStarted":
      case "taskCompleted":
      case "taskFailed":
      case "deliveryLost":
      case "retryDue":
      case "nodeCompleted":
      case "nodeFailed":
      case "nodeSkipped":
      case "nodeWaiting":
      case "reviewDue":
      case "reviewEscalated":
      case "reviewChanged":
      case "roundEnded":
      case "roundDue":
      case "mapOpened": {
        const node = this.node(event.node);
        if (node !== undefined) this.foldNode(node, event, commit);
      }
    }
  }

  private accept(event: Accepted, commit: Commit, world: World): void {
    if (this.accepted !== null) return;
    this.accepted = event;
    this.acceptedIn = commit;
    this.input = event.input;
    this.call = event.parent?.call ?? 1;
    const workflow = Object.hasOwn(world.definitions, event.definition) && world.definitions[event.definition];
    if (!workflow) return;
    this.shape = shapeOf(workflow);
    this.nodes = this.shape.nodes.map((shape) => newNode(shape, null, 1));
    this.reopened = new Set(this.nodes.keys());
    this.openCount = this.nodes.length;
  }

  private decide(
    event: Extract<ExecutionEvent, { readonly kind: "commandApplied" | "commandRefused" }>,
    commit: Commit,
  ): void {
    const applied = event.kind === "commandApplied";
    const { command, request } = event;
    const code = event.kind === "commandRefused" ? event.code : undefined;
    if (!this.requests.has(request)) {
      this.requests.set(request, { applied, command, code, commit, version: this.version });
    }
    if (applied && command === "cancel") this.cancelledIn ??= commit;
  }

  private close(event: ExecutionEnded, commit: Commit): void {
    if (this.ended !== null) return;
    this.ended = event;
    this.endedIn = commit;
    this.isPaused = false;
    this.entry = null;
    const out: string[] = [];
    for (const node of this.units()) {
      if (node.out) out.push(node.tokens.at(-1)!);
      this.abandon(node, commit);
    }
    for (const token of out) this.closed.set(token, "end");
    this.calledBack.push(...out.map((token) => ({ token, commit })));
    this.endings.push({ event, commit, generation: this.generation, call: this.call });
  }

  private abandon({ instance, end, wait }: NodeStory, commit: Commit): void {
    if (end === null && wait?.for === "child") this.orphans.push({ instance, child: wait.child, commit });
  }

  /** How a node stands once its execution is over. */
  endOf(node: NodeStory): NodeEnd {
    if (node.end !== null) return node.end;
    const { reason, cause, error } = this.ended ?? {};
    const culprit = reason === "fail_fast" ? this.node(cause ?? error?.node ?? "") : undefined;
    return culprit?.shape.descendants.has(node.shape.index) ? "skippedUpstream" : "cancelled";
  }

  /** The nodes that a retry in this scope opens again, if the execution is over. */
  wouldReopen(scope: GenerationOpened["scope"], names: readonly string[]): ReadonlySet<number> {
    const ends = this.nodes.map((node) => this.endOf(node));
    const open = new Set(this.nodes.filter((node) => node.end === null).map((node) => node.shape.index));
    const begin = names.flatMap((name) => this.node(name)?.shape.index ?? []);
    // In a part of a large map the items that were tolerated failed all the same.
    if (scope === "failed" && this.shape!.isPart) {
      const hasFailed = (node: NodeStory): boolean => node.items.some((item) => item.status === "failed");
      begin.push(...this.nodes.filter(hasFailed).map((node) => node.shape.index));
    }
    const { reason, status, cause, error } = this.ended ?? {};
    const isCaused = reason === "fail_fast" || (reason === "end" && status === "failed");
    const culprit = isCaused ? this.shape!.indexOf.get(cause ?? error?.node ?? "") : undefined;
    return reopened(this.shape!, { ends, open, culprit }, scope, begin);
  }

  private reopen(event: GenerationOpened, commit: Commit): void {
    if (this.shape === null) return;
    const { from } = event;
    this.reopened = this.wouldReopen(event.scope, event.instances ?? (from === undefined ? [] : [from]));
    for (const node of this.nodes) this.settle(node);
    this.generation = event.generation;
    this.isStarted = true;
    this.openedBy = event;
    this.openedIn = commit;
    this.ended = null;
    this.endedIn = null;
    this.cancelledIn = null;
    this.deadlineAtMs = event.deadlineAtMs;
    this.input = event.input ?? this.input;
    this.call = event.call ?? this.call;
    for (const letter of event.letters ?? []) this.replayed.add(letter);
    for (const index of this.reopened) {
      const node = this.nodes[index]!;
      const isEdited = event.config !== undefined && node.shape.id === from;
      if (isEdited) node.spec = { ...node.spec, config: event.config };
      if (isEdited) node.areItemsEdited = true;
      const isAnew = event.scope === "descendants" || event.scope === "node";
      reopen(node, event.generation, isEdited, isAnew);
    }
    this.openCount = this.reopened.size;
    this.outCount = 0;
    this.mapped.clear();
    this.failed = this.failed.filter((node) => node.status === "failed");
    this.completedCount = this.nodes.filter((node) => node.status === "completed").length;
    for (const index of this.reopened) this.ask(this.hear(this.nodes[index]!, event.atMs), event.atMs);
  }

  /** Whatever was open ends with the execution. */
  private settle(node: NodeStory): void {
    for (const item of node.items) this.settle(item);
    node.out = false;
    node.again = null;
    node.dueAtMs = null;
    if (node.end !== null) return;
    node.end = node.item === null ? this.endOf(node) : "cancelled";
    node.endedVersion = this.version;
    node.endedIn = this.endedIn;
    node.endedBy = "executionEnded";
    node.status = node.end === "cancelled" ? "cancelled" : "skipped";
  }

  /** Hears again from the parents that stay as they are. */
  private hear(node: NodeStory, atMs: number): NodeStory {
    for (const { node: index, on } of node.shape.parents) {
      if (this.reopened.has(index)) continue;
      const parent = this.nodes[index]!;
      node.edges.undecided--;
      node.edges[edge(parent.end!, on)]++;
      node.firstDecidedAtMs ??= atMs;
      if (parent.end === "completed") this.route(parent, node);
    }
    return node;
  }

  private foldNode(node: NodeStory, event: NodeEvent, commit: Commit): void {
    switch (event.kind) {
      case "gateAsked":
        node.atGate = true;
        this.busy(node, true);
        return;
      case "gateStalled":
        return;
      case "gateGranted":
      case "gateRefused":
        node.atGate = false;
        return;
      case "taskDispatched":
        return this.dispatch(node, event);
      case "taskStarted":
        node.status = "running";
        node.dueAtMs = event.runDeadlineAtMs;
        return;
      case "taskCompleted":
        node.output = event.output;
        node.answered = true;
        if (node.spec.repeat === undefined || node.item !== null) {
          return this.endNode(node, "completed", event, commit);
        }
        this.takeBack(node, event.kind);
        node.status = "waiting";
        node.dueAtMs = null;
        node.unjudged = true;
        return;
      case "nodeCompleted":
        node.output = event.output;
        node.failures = event.failures ?? 0;
        if (event.reason === "late_result") node.late = null;
        if (event.signal !== undefined) this.takeSignal(event);
        return this.endNode(node, "completed", event, commit);
      case "taskFailed":
        return this.failTask(node, event, commit);
      case "nodeFailed":
        node.error = event.error;
        node.failures = event.failures ?? 0;
        return this.endNode(node, this.failure(node), event, commit);
      case "nodeSkipped":
        return this.endNode(node, event.reason === "upstream_failed" ? "skippedUpstream" : "skipped", event, commit);
      case "deliveryLost":
        node.status = "queued";
        if (!event.handedBack) node.lost++;
        node.again = "delivery";
        node.dueAtMs = null;
        this.takeBack(node, "loss");
        return;
      case "retryDue":
        node.status = "pending";
        node.again = "attempt";
        node.dueAtMs = null;
        return;
      case "roundEnded":
        node.unjudged = false;
        if (event.nextAtMs === null) return this.endNode(node, "completed", event, commit);
        node.roundAtMs = event.nextAtMs;
        node.dueAtMs = event.nextAtMs;
        return;
      case "roundDue":
        node.status = "pending";
        node.again = "round";
        node.dueAtMs = null;
        return;
      case "nodeWaiting":
        node.status = "waiting";
        node.wait = event.wait;
        node.waitVersion = this.version;
        node.waitIn = commit;
        if (event.wait.for === "child") {
          this.children.set(node.instance, event.wait.child);
          node.isRenewed = false;
        }
        node.dueAtMs = event.dueAtMs;
        this.busy(node, true);
        return;
      case "mapOpened":
        return this.openMap(node, event);
      case "reviewDue":
        return;
      case "reviewEscalated":
        if (node.wait?.for === "review" && node.wait.review.escalate !== undefined) {
          const { escalate, ...review } = node.wait.review;
          node.wait = { ...node.wait, calendarAtMs: escalate.dueAtMs, review };
        }
        return;
      case "reviewChanged":
        if (node.wait?.for === "review" && event.first !== undefined) node.wait = { ...node.wait, first: event.first };
        return;
    }
  }

  /** Whoever has not begun is in line again. */
  private leaveGates(): void {
    for (const node of this.units()) {
      if (!node.atGate) continue;
      node.atGate = false;
      if (!hasBegun(node)) this.busy(node, false);
    }
  }

  private takeSignal({ signal }: NodeCompleted): void {
    this.signals.set(signal!, (this.signals.get(signal!) ?? []).slice(1));
  }

  private dispatch(node: NodeStory, event: TaskDispatched): void {
    const round = event.round ?? 0;
    if (event.attempt !== node.attempt || round !== node.round) {
      node.attempt = event.attempt;
      node.tokens = [];
      node.lost = 0;
    }
    if (round !== node.round) node.seen = null;
    node.round = round;
    node.answered = false;
    // Whatever came late is of work that is now done anew.
    node.late = null;
    node.delivery = event.delivery;
    node.seen ??= event.seen;
    node.inputHash = event.inputHash;
    node.tokens[event.delivery - 1] = tokenOf(event, this.id, this.generation);
    node.status = "queued";
    node.again = null;
    node.dueAtMs = event.queueDeadlineAtMs;
    if (!node.out) this.outCount++;
    node.out = true;
    this.busy(node, true);
    this.dispatched.add(dispatchName(this.generation, event));
  }

  private failTask(node: NodeStory, event: TaskFailedEvent, commit: Commit): void {
    node.error = event.error;
    node.answered = isDefinite(event.error, event.deadline !== undefined);
    if (event.retryAtMs === null) return this.endNode(node, this.failure(node), event, commit);
    node.status = "waiting";
    node.retryAtMs = event.retryAtMs;
    node.dueAtMs = event.retryAtMs;
    this.takeBack(node, "failure");
  }

  /** Items that are kept stay as they were; the others begin anew, each under the key that is its own. */
  private openMap(node: NodeStory, event: MapOpened): void {
    const { items, total, chunked, seen, kept, count } = event;
    node.status = "running";
    node.opened = { items, total, chunked, seen, concurrency: event.concurrency };
    const shape = itemOf(node.shape, node.spec);
    const isEdited = node.areItemsEdited;
    node.areItemsEdited = false;
    for (const item of node.items) node.known[item.item!.index] = item;
    const isHere = (item: NodeStory): boolean => node.items.includes(item);
    node.items = Array.from({ length: count }, (_, index) => {
      const old = node.known[index];
      if (old === undefined) return newNode(shape, { map: node, index }, this.generation);
      if (kept && isHere(old) && this.keepsItem(old)) return old;
      // One that was not there in between may have any key that it has not had.
      if (!isHere(old)) old.isKeyFree = true;
      if (old.generation < this.generation) reopen(old, this.generation, isEdited, !kept || !isHere(old));
      if (!kept || !isHere(old)) old.late = null;
      old.spec = shape.spec;
      return old;
    });
    for (const item of node.items) if (item.end === null) item.joined = "run";
  }

  /**
   * Of a map that goes on with the same items: whether this one stays as it is. If dead letters name some of its items,
   * other failed ones stay so.
   */
  private keepsItem({ status, instance, failures, shape }: NodeStory): boolean {
    if (status === "completed" && failures === 0) return true;
    const named = (this.openedBy?.instances ?? []).filter((name) => name.startsWith(`${shape.id}[`));
    return (status === "completed" || status === "failed") && named.length > 0 && !named.includes(instance);
  }

  failure(node: NodeStory): NodeEnd {
    // Caught, it counts as fail_branch.
    return node.spec.on_error === "continue" && !node.shape.caught ? "tolerated" : "failed";
  }

  private takeBack(node: NodeStory, how: string): void {
    if (!node.out) return;
    node.out = false;
    this.outCount--;
    this.closed.set(node.tokens.at(-1)!, how);
  }

  private busy(node: NodeStory, isBusy: boolean): void {
    if (node.item === null) return;
    const { map } = node.item;
    let items = this.mapped.get(map);
    if (items === undefined) this.mapped.set(map, (items = new Set()));
    if (isBusy) items.add(node);
    else items.delete(node);
  }

  private endNode(node: NodeStory, end: NodeEnd, event: NodeEvent, commit: Commit): void {
    this.takeBack(node, event.kind);
    this.busy(node, false);
    node.again = null;
    node.dueAtMs = null;
    if (node.end !== null) return;
    node.end = end;
    node.endedBy = event.kind;
    node.endedIn = commit;
    node.endedVersion = this.version;
    node.status = end === "completed" ? "completed" : end.startsWith("skipped") ? "skipped" : "failed";
    if (node.item !== null) return;
    // What is left of a map ends with it.
    for (const item of node.items) if (item.end === null) this.withdraw(item, commit);
    this.openCount--;
    if (end === "completed") this.completedCount++;
    if (node.status === "failed") this.failed.push(node);
    for (const { node: index, on } of node.shape.children) {
      const child = this.nodes[index]!;
      if (child.end !== null && child.generation < this.generation) continue;
      child.edges.undecided--;
      child.edges[edge(end, on)]++;
      child.firstDecidedAtMs ??= event.atMs;
      if (end === "completed") this.route(node, child);
      this.ask(child, event.atMs);
    }
  }

  private withdraw(item: NodeStory, commit: Commit): void {
    this.abandon(item, commit);
    if (item.out) this.calledBack.push({ token: item.tokens.at(-1)!, commit });
    this.takeBack(item, "map");
    this.busy(item, false);
    item.end = "cancelled";
    item.status = "cancelled";
    item.endedIn = commit;
    item.endedVersion = this.version;
    item.again = null;
    item.dueAtMs = null;
  }

  /** A dependant that some route names runs only if it was chosen, whatever its other parents say. */
  private route(router: NodeStory, child: NodeStory): void {
    const { routes } = router.shape;
    if (!routes.some(({ to }) => to.includes(child.shape.id))) return;
    const output = router.output !== null && "json" in router.output ? router.output.json : null;
    const chosen = isJsonObject(output) && Array.isArray(output["chosen"]) ? output["chosen"] : [];
    if (!chosen.includes(child.shape.id) && !hasBegun(child)) child.routedAway = true;
  }

  private ask(node: NodeStory, atMs: number): void {
    const isRouted = node.routedAway && (node.joined === "wait" || node.joined === "run") && !hasBegun(node);
    if (!isRouted && (node.joined !== "wait" || node.end !== null)) return;
    node.joined = isRouted ? "skipRoute" : join(node.spec.join, node.edges);
    node.joinedVersion = this.version;
    if (node.joined !== "wait") node.joinedAtMs = atMs;
  }
}

const INSTANCE = /^(.+?)(?:\[(\d+)\])?(?:@(\d+))?$/;

export function hasBegun(node: NodeStory): boolean {
  return node.attempt > 0 || node.wait !== null || node.opened !== null || node.end !== null;
}

export function dispatchName(
  generation: number,
  { node, round, attempt, delivery }: Pick<TaskDispatched, "node" | "round" | "attempt" | "delivery">,
): string {
  return `${generation}:${instanceOf(node, round)}:${attempt}:${delivery}`;
}

export function instanceOf(node: string, round: number | undefined): string {
  return round === undefined || round === 0 ? node : `${node}@${round}`;
}

type NodeEvent = Exclude<
  Extract<ExecutionEvent, { readonly node: string }>,
  { readonly kind: "lateResult" | "repaired" }
>;

/** What has left this dead letter was opened again in a later generation, or is an item that its map has no more. */
export function isReopened(story: Story, letter: string): boolean {
  const [, generation, ...name] = letter.split(":");
  const node = story.node(name.join(":"));
  return node === undefined || node.generation > Number(generation);
}
