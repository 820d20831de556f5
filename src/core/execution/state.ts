import { Line } from "../line.ts";
import type { ErrorValue, Message } from "../message.ts";
import { TimerHeap } from "../timer-heap.ts";
import type { KeptValue } from "../value.ts";
import { NULL_VALUE } from "../value.ts";
import type { EndReason, EndStatus, SkipReason } from "./events.ts";
import { type ExecutionStatus, NODE_STATUSES, type NodeStatus } from "./moves.ts";
import type { Plan } from "./plan.ts";

/** The line of ready nodes that the engine runs itself. No queue can have this name. */
export const ENGINE_LINE = "";

/** Stands for the whole execution in the heap of deadlines. */
export const WORKFLOW_TIMER = -1;

/** How many request ids an execution remembers. */
export const REMEMBERED_REQUESTS = 1000;

export const EDGE = { undecided: 0, ok: 1, void: 2, bad: 3 } as const;

/** What became of a node; there is one once it has been touched. */
export interface NodeRun {
  /** 0 before the first dispatch. */
  attempt: number;
  /** Dispatches within this attempt. */
  delivery: number;
  /** Deliveries of this attempt that were lost with their worker. */
  lost: number;
  /** The nonce each delivery of this attempt was dispatched under; a result is checked against it. */
  nonces: string[];
  inputHash: string | null;
  /** The version its input was made from; null before the first dispatch. */
  seen: number | null;
  queuedAtMs: number | null;
  startedAtMs: number | null;
  endedAtMs: number | null;
  /** The event that ended it. */
  endedVersion: number | null;
  /** The deadline it is under now: for its start, its end, or its next attempt. */
  dueAtMs: number | null;
  error: ErrorValue | null;
  output: KeptValue | null;
  /** The event that brought the output, for when it leaves memory. */
  outputVersion: number;
  skipReason: SkipReason | null;
  /** A completion that came after the end of the generation. */
  late: KeptValue | null;
}

export type CommandAnswer = { readonly applied: true } | { readonly applied: false; readonly code: string };

/**
 * The state of one execution: the fold of its events. Only `evolve` writes to it.
 *
 * Per node and edge it holds typed arrays; what follows from the events (ready, to be skipped, remaining parents) is
 * kept up to date by `evolve` and never stored.
 */
export class ExecutionState {
  readonly id: string;
  readonly plan: Plan;
  /** Number of events folded. */
  version = 0;
  generation = 1;
  status: ExecutionStatus = "new";
  input: KeptValue = NULL_VALUE;
  bodyHash = "";
  by = "";
  tenant = "default";
  trace = "";
  parent: { readonly entity: string; readonly instance: string } | null = null;
  createdAtMs = 0;
  startedAtMs: number | null = null;
  endedAtMs: number | null = null;
  deadlineAtMs: number | null = null;
  end: { status: EndStatus; reason: EndReason; error: (ErrorValue & { node?: string }) | null } | null = null;
  quarantined: ErrorValue | null = null;
  parked: Message[] = [];
  /** Answers by request id, oldest first. */
  readonly requests: Map<string, CommandAnswer> = new Map();

  readonly runs: (NodeRun | undefined)[];
  /** Nodes that have not ended. */
  openCount: number;
  /** Nodes that failed, in order. */
  readonly failed: number[] = [];
  completedCount = 0;

  /** Per edge, what it says. Each is set once, so a parent that ends twice changes nothing the second time. */
  readonly edges: Uint8Array;
  readonly undecided: Int32Array;
  readonly okEdges: Int32Array;
  readonly badEdges: Int32Array;
  /** 1 once the join has spoken. */
  readonly joined: Uint8Array;

  /** Nodes that may run now, by queue; in the order in which they became ready. */
  readonly ready: ReadonlyMap<string, Line>;
  /** 1 while the node stands in one of those lines. */
  readonly inLine: Uint8Array;
  /** Nodes to be skipped, for the reason in `skipReasons`. */
  readonly skips: Line = new Line();
  readonly skipReasons: Map<number, SkipReason> = new Map();
  /** Nodes with a task out. */
  readonly live: Set<number> = new Set();
  readonly liveByQueue: Map<string, number> = new Map();
  readonly timers: TimerHeap;
  /** Nodes that are under a deadline now. */
  timedCount = 0;
  /** How many unfinished nodes may still read this one's output. */
  readonly readersLeft: Int32Array;

  private readonly statuses: Uint8Array;

  constructor(id: string, plan: Plan) {
    const { nodeCount, edgeCount, parentStart } = plan.graph;
    this.id = id;
    this.plan = plan;
    this.runs = Array.from({ length: nodeCount });
    this.openCount = nodeCount;
    this.edges = new Uint8Array(edgeCount);
    this.undecided = new Int32Array(nodeCount);
    this.okEdges = new Int32Array(nodeCount);
    this.badEdges = new Int32Array(nodeCount);
    this.joined = new Uint8Array(nodeCount);
    this.inLine = new Uint8Array(nodeCount);
    this.ready = new Map(plan.queues.map((queue) => [queue, new Line()]));
    this.statuses = new Uint8Array(nodeCount);
    this.readersLeft = new Int32Array(nodeCount);
    for (let i = 0; i < nodeCount; i++) {
      this.undecided[i] = parentStart[i + 1]! - parentStart[i]!;
      this.readersLeft[i] = plan.nodes[i]!.readerCount;
    }
    this.timers = new TimerHeap((node, atMs) => this.dueMs(node) === atMs);
  }

  statusOf(node: number): NodeStatus {
    return NODE_STATUSES[this.statuses[node]!]!;
  }

  setStatus(node: number, status: NodeStatus): void {
    this.statuses[node] = NODE_STATUSES.indexOf(status);
  }

  isNodeEnded(node: number): boolean {
    return this.statuses[node]! >= 4;
  }

  get isEnded(): boolean {
    return this.end !== null;
  }

  /** The record of a node, made on its first touch. */
  run(node: number): NodeRun {
    return (this.runs[node] ??= newRun());
  }

  /** The line in which this node waits once it is ready. */
  lineOf(node: number): Line {
    const plan = this.plan.nodes[node]!;
    return this.ready.get(plan.engine ? ENGINE_LINE : plan.spec.queue)!;
  }

  get readyCount(): number {
    let count = 0;
    for (const line of this.ready.values()) count += line.length;
    return count;
  }

  private dueMs(node: number): number | null {
    if (node === WORKFLOW_TIMER) return this.deadlineAtMs;
    return this.runs[node]?.dueAtMs ?? null;
  }
}

function newRun(): NodeRun {
  return {
    attempt: 0,
    delivery: 0,
    lost: 0,
    nonces: [],
    inputHash: null,
    seen: null,
    endedVersion: null,
    queuedAtMs: null,
    startedAtMs: null,
    endedAtMs: null,
    dueAtMs: null,
    error: null,
    output: null,
    outputVersion: 0,
    skipReason: null,
    late: null,
  };
}
