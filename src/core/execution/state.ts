import type { Json, JsonObject } from "../../json/json.ts";
import { Line } from "../line.ts";
import { SparseMap, SparseSet } from "../sparse.ts";
import { UnitSet } from "../unit-set.ts";
import type { Around, BudgetStanding, ErrorValue, Labels, Message, Parent } from "../message.ts";
import { TimerHeap } from "../timer-heap.ts";
import type { KeptValue, Value } from "../value.ts";
import { NULL_VALUE } from "../value.ts";
import type { EndReason, EndStatus, GateReturned, GateWait, SkipReason } from "./events.ts";
import { type ExecutionStatus, NODE_STATUSES, type NodeStatus } from "./moves.ts";
import { QueueCounts } from "./queue-counts.ts";
import { NodeRun } from "./node-run.ts";
import { editedNode, type Plan } from "./plan.ts";
import type { PlanNode } from "./plan-node.ts";
import { ENGINE_LINE, ReadyLines } from "./ready-lines.ts";

/** Each name keeps this many signals that nobody has taken. */
export const MAX_SIGNALS = 100;
/** And all names together this many: they are part of every snapshot. */
export const MAX_SIGNALS_IN_ALL = 1_000;

/** Stands for the whole execution in the heap of deadlines. */
export const WORKFLOW_TIMER = -1;

/** How many request ids an execution remembers. */
export const REMEMBERED_REQUESTS = 1000;

export const EDGE = { undecided: 0, ok: 1, void: 2, bad: 3 } as const;

/** A map whose items are known. Item n is unit `base + n`. */
export interface MapRun {
  readonly node: number;
  readonly base: number;
  readonly count: number;
  readonly total: number;
  readonly chunked: boolean;
  readonly concurrency: number;
  readonly tolerated: number;
  readonly items: Value;
  readonly itemsHash: string;
  readonly seen: number;
  readonly collect?: false;
  /** The first item that has not been put in line. */
  next: number;
  /** Items that have been put in line and have not ended. */
  open: number;
  completed: number;
  failed: number;
  /** Failed items in all, those inside the parts of a large map included. */
  failures: number;
  /** Set by a new generation: which of its items are made again if the items are the same. */
  again: "all" | "failed" | readonly number[] | null;
  /** Set likewise: what its items are given was edited, so that they are other work. */
  edited: boolean;
  /** With which number the keys of items begin that are not known from before: items that went may come again. */
  readonly firstRerun: number;
}

/** What a unit has asked of a gate, for one dispatch. */
export interface UnitAsk {
  readonly gate: string;
  readonly ask: number;
  readonly wait: GateWait;
  readonly until: "start" | "end";
  readonly askedAtMs: number;
  status: "asked" | "granted" | "refused" | "returned";
  /** Another model than the node's own, which is all that the budget is enough for. */
  readonly fallback?: string;
  /** Of a budget that is not enough: how it stood, and since when a person is wanted. */
  stalled?: BudgetStanding & { readonly atMs: number };
  /** Of a budget that has sent it away: how it stood. */
  standing?: BudgetStanding;
}

export type CommandAnswer =
  | {
      readonly applied: true;
      readonly status?: string;
      readonly generation?: number;
      readonly bodyHash?: string;
    }
  | {
      readonly applied: false;
      readonly code: string;
      readonly bodyHash?: string;
      readonly detail?: string;
      readonly errors?: Json;
    };

export interface ExecutionEnd {
  readonly status: EndStatus;
  readonly reason: EndReason;
  readonly error: (ErrorValue & { readonly node?: string }) | null;
  /** The node that has ended it under fail_fast, if it was not the first to fail. */
  readonly cause?: string;
  /** What an `end` node gave. */
  readonly output: Value | null;
}

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
  parent: Parent | null = null;
  around: Around | null = null;
  labels: Labels | null = null;
  /** The parent has asked again, and has to be answered. */
  owesAnswer = false;
  createdAtMs = 0;
  startedAtMs: number | null = null;
  endedAtMs: number | null = null;
  deadlineAtMs: number | null = null;
  end: ExecutionEnd | null = null;
  quarantined: ErrorValue | null = null;
  parked: Message[] = [];
  /** Answers by request id, oldest first. */
  readonly requests: SparseMap<string, CommandAnswer> = new SparseMap();

  /** By unit: first the nodes, then the items of maps. */
  readonly runs: (NodeRun | undefined)[];
  /** Nodes that have not ended. */
  openCount: number;
  /** Nodes that failed, in order. */
  failed: number[] = [];
  completedCount = 0;

  /** Per edge, what it says. Each is set once, so a parent that ends twice changes nothing the second time. */
  readonly edges: Numbers;
  readonly undecided: Numbers;
  readonly okEdges: Numbers;
  readonly badEdges: Numbers;
  /** 1 once the join has spoken. */
  readonly joined: Numbers;

  /** Units that may run now. */
  readonly ready: ReadyLines;
  /** 1 while the unit stands in one of those lines. */
  inLine: Numbers;
  /** Of those, how many only have to be judged or closed: that starts nothing. */
  closing = 0;
  /** Nodes to be skipped, for the reason in `skipReasons`. */
  readonly skips: Line = new Line();
  readonly skipReasons: SparseMap<number, SkipReason> = new SparseMap();
  /** Units with a task out. */
  readonly live: UnitSet = new UnitSet();
  readonly liveByQueue: QueueCounts = new QueueCounts();
  readonly timers: TimerHeap<ExecutionState>;
  /** The same by the store's clock. */
  readonly calendar: TimerHeap<ExecutionState>;
  /** Units that are under a deadline now. */
  timedCount = 0;
  /** How many unfinished nodes may still read this one's output. */
  readonly readersLeft: Numbers;

  /** Maps whose items are known, by node; those of an earlier generation until they are opened again. */
  readonly maps: SparseMap<number, MapRun> = new SparseMap();
  /** Per unit beyond the nodes, the node of its map. */
  readonly mapOfUnit: number[] = [];
  /** Signals that nobody has taken yet, oldest first. */
  readonly signals: SparseMap<string, Value[]> = new SparseMap();
  /** Units that wait for a signal, oldest first. */
  readonly signalWaits: SparseMap<string, number[]> = new SparseMap();
  /** Units that wait for a person. */
  readonly reviews: SparseSet<number> = new SparseSet();
  /** Units that wait for a child; and those whose child has to be called off. */
  readonly children: SparseSet<number> = new SparseSet();
  readonly orphans: SparseSet<number> = new SparseSet();
  /** Units that wait at gates, or were let through and are not done, with what they have asked for. */
  readonly asks: SparseMap<number, UnitAsk[]> = new SparseMap();
  /** Its place among the executions of its workflow, where that has a limit; null while it has none and waits for none. */
  entry: { readonly gate: string; readonly ask: number; status: "asked" | "granted" } | null = null;
  /** Units that wait for somebody to allow more than a budget has left. */
  readonly stalled: SparseSet<number> = new SparseSet();
  /** How many gates were asked so far: each ask has a number of its own. */
  askCount = 0;
  /** What has to be given back to gates. */
  returns: GateReturned[] = [];
  /** Nodes that got another config when a generation was opened. */
  readonly edits: SparseMap<number, PlanNode> = new SparseMap();
  /** Dead letters this execution has written, and whether they were replayed. */
  readonly letters: SparseMap<string, "open" | "replayed"> = new SparseMap();

  private statuses: Numbers;

  constructor(id: string, plan: Plan) {
    const { nodeCount, edgeCount } = plan.graph;
    this.id = id;
    this.plan = plan;
    this.runs = unmade(nodeCount);
    this.openCount = nodeCount;
    this.edges = bytes(edgeCount);
    this.undecided = counts(nodeCount);
    this.okEdges = counts(nodeCount);
    this.badEdges = counts(nodeCount);
    this.joined = bytes(nodeCount);
    this.inLine = bytes(nodeCount);
    this.ready = new ReadyLines(plan.lines, plan.lineOrder);
    this.statuses = bytes(nodeCount);
    this.readersLeft = counts(nodeCount);
    this.countParents();
    this.timers = new TimerHeap<ExecutionState>(this, dueMs);
    this.calendar = new TimerHeap<ExecutionState>(this, calendarMs);
  }

  /** Everything that follows from how the nodes ended, as if none had. */
  resetGraph(): void {
    const { nodeCount } = this.plan.graph;
    this.edges.fill(0);
    this.okEdges.fill(0);
    this.badEdges.fill(0);
    this.joined.fill(0);
    this.openCount = nodeCount;
    this.completedCount = 0;
    this.countParents();
  }

  private countParents(): void {
    const { nodeCount, parentStart } = this.plan.graph;
    for (let i = 0; i < nodeCount; i++) {
      this.undecided[i] = parentStart[i + 1]! - parentStart[i]!;
      this.readersLeft[i] = this.plan.nodes[i]!.readerCount;
    }
  }

  statusOf(unit: number): NodeStatus {
    return NODE_STATUSES[this.statuses[unit]!]!;
  }

  setStatus(unit: number, status: NodeStatus): void {
    this.statuses[unit] = NODE_STATUSES.indexOf(status);
  }

  isNodeEnded(unit: number): boolean {
    return this.statuses[unit]! >= FIRST_ENDED;
  }

  get isEnded(): boolean {
    return this.end !== null;
  }

  /** The record of a unit, made on its first touch. */
  run(unit: number): NodeRun {
    return (this.runs[unit] ??= new NodeRun(this.generation));
  }

  isItem(unit: number): boolean {
    return unit >= this.plan.graph.nodeCount;
  }

  /** What is known of a unit before it runs; the items of a map share it. */
  planOf(unit: number): PlanNode {
    const { nodeCount } = this.plan.graph;
    if (unit >= nodeCount) return this.planOf(this.mapOfUnit[unit - nodeCount]!).item!;
    return (this.edits.size === 0 ? undefined : this.edits.get(unit)) ?? this.plan.nodes[unit]!;
  }

  /** The map that an item belongs to. */
  mapOf(item: number): MapRun {
    return this.maps.get(this.mapOfUnit[item - this.plan.graph.nodeCount]!)!;
  }

  /** A node's id; of an item `id[3]`. */
  nameOf(unit: number): string {
    const { nodeCount, ids } = this.plan.graph;
    if (unit < nodeCount) return ids[unit]!;
    const map = this.mapOf(unit);
    return `${ids[map.node]!}[${unit - map.base}]`;
  }

  /** The unit of such a name. */
  unitOf(name: string): number | undefined {
    const node = this.plan.graph.indexOf.get(name);
    if (node !== undefined) return node;
    const item = /^(.+)\[(\d+)\]$/.exec(name);
    const map = item === null ? undefined : this.maps.get(this.plan.graph.indexOf.get(item[1]!) ?? -1);
    const place = Number(item?.[2]);
    return map === undefined || place >= map.count ? undefined : map.base + place;
  }

  /** Room for the items of a map, behind all other units. */
  addUnits(node: number, count: number): number {
    const base = this.runs.length;
    const length = base + count;
    for (let i = 0; i < count; i++) this.mapOfUnit.push(node);
    this.runs.length = length;
    if (length > this.statuses.length) {
      this.statuses = grown(this.statuses, length);
      this.inLine = grown(this.inLine, length);
    }
    return base;
  }

  /** The line in which this unit waits once it is ready. */
  lineOf(unit: number): number {
    return this.isEngine(unit) ? ENGINE_LINE : this.planOf(unit).line;
  }

  /** From now on this node has another config. */
  edit(node: number, config: JsonObject): void {
    const edited = editedNode(this.plan, node, config, (queue, priority) => this.ready.find(queue, priority));
    this.edits.set(node, edited);
  }

  /** Runs in the engine, without a worker: a part of a large map does, whatever its items run. */
  isEngine(unit: number): boolean {
    return this.planOf(unit).engine || (this.isItem(unit) && this.mapOf(unit).chunked);
  }
}

function dueMs(state: ExecutionState, unit: number): number | null {
  if (unit === WORKFLOW_TIMER) return state.deadlineAtMs;
  return state.runs[unit]?.dueAtMs ?? null;
}

function calendarMs(state: ExecutionState, unit: number): number | null {
  const wait = state.statusOf(unit) === "waiting" ? state.runs[unit]?.wait : null;
  return (wait && "calendarAtMs" in wait ? wait.calendarAtMs : null) ?? null;
}

const FIRST_ENDED = NODE_STATUSES.indexOf("completed");

/** A number for each node or edge. Where there are few a plain list: a typed one is two hundred bytes before it holds any. */
export type Numbers = Uint8Array | Int32Array | number[];

const FEW = 32;
/** Of each length one that is copied: that is what an engine does fastest. */
const ZEROS: readonly (readonly number[])[] = Array.from({ length: FEW + 1 }, (_, length) =>
  Array.from({ length }, () => 0),
);

const UNMADE: readonly (readonly undefined[])[] = ZEROS.map((zeros) => zeros.map(() => undefined));

/** As `Array.from` makes it, in a fraction of the time. */
function unmade(length: number): (NodeRun | undefined)[] {
  // A copy of one that is there, for another reason as well: what is written as `[…]` V8 may make old from birth, see `Resident`.
  if (length <= FEW) return UNMADE[length]!.slice();
  const runs: (NodeRun | undefined)[] = [];
  for (let i = 0; i < length; i++) runs.push(undefined);
  return runs;
}

function bytes(length: number): Numbers {
  return length <= FEW ? ZEROS[length]!.slice() : new Uint8Array(length);
}

function counts(length: number): Numbers {
  return length <= FEW ? ZEROS[length]!.slice() : new Int32Array(length);
}

function grown(before: Numbers, length: number): Numbers {
  const next = new Uint8Array(Math.max(length, before.length * 2));
  next.set(before);
  return next;
}
