import type { Accepted, ExecutionEnded, ExecutionEvent, TaskDispatched } from "../../core/execution/events.ts";
import type { ErrorValue } from "../../core/message.ts";
import type { Value } from "../../core/value.ts";
import type { World } from "../history.ts";
import { type Commit, executionOf, tokenOf } from "./evidence.ts";
import { edge, type EdgeCounts, join, type Joined, type NodeEnd } from "./reference-rules.ts";
import { type Shape, type ShapeNode, shapeOf } from "./shape.ts";

/** One node, as the events so far tell it. */
export interface NodeStory {
  readonly shape: ShapeNode;
  status: "pending" | "queued" | "running" | "waiting" | "completed" | "failed" | "skipped";
  /** 0 before the first dispatch. */
  attempt: number;
  delivery: number;
  /** Deliveries of this attempt that were lost with their worker. */
  lost: number;
  /** The dispatches of this attempt, by delivery. */
  tokens: string[];
  /** Its newest dispatch is with the queue or a worker. */
  out: boolean;
  /** It is to be dispatched again: the next attempt after a retry, or the next delivery of this one. */
  again: "attempt" | "delivery" | null;
  /** The deadline it is under: for its start, its end, or its next attempt. */
  dueAtMs: number | null;
  /** The version its input was made from at its first dispatch; null before. */
  seen: number | null;
  /** When the attempt to come may begin at the earliest. */
  retryAtMs: number | null;
  output: Value | null;
  error: ErrorValue | null;
  end: NodeEnd | null;
  endedBy: ExecutionEvent["kind"] | null;
  endedIn: Commit | null;
  /** The event that ended it. */
  endedVersion: number | null;
  readonly edges: EdgeCounts;
  /** What its join said when it first said anything but wait: that stands, whatever becomes of other parents. */
  joined: Joined;
  /** The event after which it said so. */
  joinedVersion: number;
}

/**
 * One execution, folded from its surviving events by rules of our own. It believes what it is told: an event that
 * cannot be is applied as far as it makes sense, for saying so is the business of the invariants.
 */
export class Story {
  readonly id: string;
  readonly entity: string;
  version = 0;
  accepted: Accepted | null = null;
  acceptedIn: Commit | null = null;
  shape: Shape | null = null;
  nodes: readonly NodeStory[] = [];
  isStarted = false;
  deadlineAtMs: number | null = null;
  ended: ExecutionEnded | null = null;
  endedIn: Commit | null = null;
  /** The tasks that were out when it ended. */
  outAtEnd: readonly string[] = [];
  isQuarantined = false;
  /** Why it was quarantined last. */
  quarantineMessage = "";
  wasQuarantined = false;
  /** The wake time that the store holds. */
  wakeAtMs: number | null = null;
  openCount = 0;
  outCount = 0;
  completedCount = 0;
  readonly failed: NodeStory[] = [];
  readonly requests: Map<string, { applied: boolean; command: string; commit: Commit; version: number }> = new Map();
  cancelledIn: Commit | null = null;
  /** `node:attempt:delivery` of every dispatch. */
  readonly dispatched: Set<string> = new Set();
  /** Undelivered dispatches that ended all the same, and how. */
  readonly closed: Map<string, string> = new Map();

  constructor(entity: string) {
    this.entity = entity;
    this.id = executionOf(entity);
  }

  get isOpen(): boolean {
    return this.isStarted && this.ended === null;
  }

  node(id: string): NodeStory | undefined {
    const index = this.shape?.indexOf.get(id);
    return index === undefined ? undefined : this.nodes[index];
  }

  isHandled(node: NodeStory): boolean {
    return node.shape.children.some((edge) => edge.on === "failed" && this.nodes[edge.node]!.status === "completed");
  }

  fold(event: ExecutionEvent, commit: Commit, world: World): void {
    this.version++;
    switch (event.kind) {
      case "accepted":
        return this.accept(event, commit, world);
      case "started":
        this.isStarted = true;
        this.deadlineAtMs = event.deadlineAtMs;
        for (const node of this.nodes) this.ask(node);
        return;
      case "executionEnded":
        return this.close(event, commit);
      case "commandApplied":
      case "commandRefused": {
        const applied = event.kind === "commandApplied";
        const { command, request } = event;
        if (!this.requests.has(request))
          this.requests.set(request, { applied, command, commit, version: this.version });
        if (applied && command === "cancel") this.cancelledIn ??= commit;
        return;
      }
      case "quarantined":
        this.isQuarantined = true;
        this.quarantineMessage = event.error.message;
        this.wasQuarantined = true;
        return;
      case "released":
        this.isQuarantined = false;
        return;
      case "parked":
      case "resultIgnored":
      case "lateResult":
        return;
      case "taskDispatched":
      case "taskStarted":
      case "taskCompleted":
      case "taskFailed":
      case "deliveryLost":
      case "retryDue":
      case "nodeCompleted":
      case "nodeFailed":
      case "nodeSkipped": {
        const node = this.node(event.node);
        if (node !== undefined) this.foldNode(node, event, commit);
      }
    }
  }

  private accept(event: Accepted, commit: Commit, world: World): void {
    if (this.accepted !== null) return;
    this.accepted = event;
    this.acceptedIn = commit;
    const workflow = Object.hasOwn(world.definitions, event.definition) && world.definitions[event.definition];
    if (!workflow) return;
    this.shape = shapeOf(workflow);
    this.nodes = this.shape.nodes.map(newNode);
    this.openCount = this.nodes.length;
  }

  private close(event: ExecutionEnded, commit: Commit): void {
    if (this.ended !== null) return;
    this.ended = event;
    this.endedIn = commit;
    this.outAtEnd = this.nodes.filter((node) => node.out).map((node) => node.tokens.at(-1)!);
    for (const token of this.outAtEnd) this.closed.set(token, "end");
  }

  private foldNode(node: NodeStory, event: NodeEvent, commit: Commit): void {
    switch (event.kind) {
      case "taskDispatched":
        return this.dispatch(node, event);
      case "taskStarted":
        node.status = "running";
        node.dueAtMs = event.runDeadlineAtMs;
        return;
      case "taskCompleted":
      case "nodeCompleted":
        node.output = event.output;
        return this.endNode(node, "completed", event.kind, commit);
      case "taskFailed":
        node.error = event.error;
        if (event.retryAtMs === null) return this.endNode(node, this.failure(node), event.kind, commit);
        node.status = "waiting";
        node.retryAtMs = event.retryAtMs;
        node.dueAtMs = event.retryAtMs;
        this.takeBack(node, "failure");
        return;
      case "nodeFailed":
        node.error = event.error;
        return this.endNode(node, this.failure(node), event.kind, commit);
      case "nodeSkipped":
        return this.endNode(
          node,
          event.reason === "upstream_failed" ? "skippedUpstream" : "skipped",
          event.kind,
          commit,
        );
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
    }
  }

  private dispatch(node: NodeStory, event: TaskDispatched): void {
    if (event.attempt !== node.attempt) {
      node.attempt = event.attempt;
      node.tokens = [];
      node.lost = 0;
    }
    node.delivery = event.delivery;
    node.seen ??= event.seen;
    node.tokens[event.delivery - 1] = tokenOf(event.nonce, this.id, event.node, event.attempt, event.delivery);
    node.status = "queued";
    node.again = null;
    node.dueAtMs = event.queueDeadlineAtMs;
    if (!node.out) this.outCount++;
    node.out = true;
    this.dispatched.add(`${event.node}:${event.attempt}:${event.delivery}`);
  }

  private failure(node: NodeStory): NodeEnd {
    // Caught, it counts as fail_branch.
    return node.shape.spec.on_error === "continue" && !node.shape.caught ? "tolerated" : "failed";
  }

  private takeBack(node: NodeStory, how: string): void {
    if (!node.out) return;
    node.out = false;
    this.outCount--;
    this.closed.set(node.tokens.at(-1)!, how);
  }

  private endNode(node: NodeStory, end: NodeEnd, by: ExecutionEvent["kind"], commit: Commit): void {
    this.takeBack(node, by);
    node.again = null;
    node.dueAtMs = null;
    if (node.end !== null) return;
    node.end = end;
    node.endedBy = by;
    node.endedIn = commit;
    node.endedVersion = this.version;
    node.status = end === "completed" ? "completed" : end.startsWith("skipped") ? "skipped" : "failed";
    this.openCount--;
    if (end === "completed") this.completedCount++;
    if (node.status === "failed") this.failed.push(node);
    for (const { node: index, on } of node.shape.children) {
      const child = this.nodes[index]!;
      child.edges.undecided--;
      child.edges[edge(end, on)]++;
      this.ask(child);
    }
  }

  private ask(node: NodeStory): void {
    if (node.joined !== "wait") return;
    node.joined = join(node.shape.spec.join, node.edges);
    node.joinedVersion = this.version;
  }
}

type NodeEvent = Exclude<Extract<ExecutionEvent, { readonly node: string }>, { readonly kind: "lateResult" }>;

function newNode(shape: ShapeNode): NodeStory {
  return {
    shape,
    status: "pending",
    attempt: 0,
    delivery: 0,
    lost: 0,
    tokens: [],
    out: false,
    again: null,
    dueAtMs: null,
    seen: null,
    retryAtMs: null,
    output: null,
    error: null,
    end: null,
    endedBy: null,
    endedIn: null,
    endedVersion: null,
    edges: { undecided: shape.parents.length, ok: 0, void: 0, bad: 0 },
    joined: "wait",
    joinedVersion: 0,
  };
}
