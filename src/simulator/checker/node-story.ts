import type { ExecutionEvent, Wait } from "../../core/execution/events.ts";
import type { ErrorValue } from "../../core/message.ts";
import type { Value } from "../../core/value.ts";
import type { WorkflowNode } from "../../definition/workflow.ts";
import type { Commit } from "./evidence.ts";
import type { EdgeCounts, Joined, NodeEnd } from "./reference-rules.ts";
import type { ShapeNode } from "./shape.ts";

/** One node, or one item of a map, as the events so far tell it. */
export interface NodeStory {
  readonly shape: ShapeNode;
  /** `id`, or `id[3]` for an item. */
  readonly instance: string;
  /** Of an item: the map, and its place. */
  readonly item: { readonly map: NodeStory; readonly index: number } | null;
  /** As it runs now: a retry may have brought another config. */
  spec: WorkflowNode;
  /** The generation in which it was opened. */
  generation: number;
  status: "pending" | "queued" | "running" | "waiting" | "completed" | "failed" | "skipped" | "cancelled";
  /** Of a node that repeats: the round it is in. 0 before the first. */
  round: number;
  /** The round has a result, which nobody has judged yet. */
  unjudged: boolean;
  /** When the next round may begin. */
  roundAtMs: number | null;
  /** 0 before the first dispatch. */
  attempt: number;
  delivery: number;
  /** Deliveries of this attempt that were lost with their worker. */
  lost: number;
  /** The dispatches of this attempt, by delivery. */
  tokens: string[];
  /** Its newest dispatch is with the queue or a worker. */
  out: boolean;
  /** It is to be dispatched again: the next attempt, the next delivery of this one, or the next round. */
  again: "attempt" | "delivery" | "round" | null;
  /** The deadline it is under: for its start, its end, or its next attempt. */
  dueAtMs: number | null;
  /** The version its input was made from at its first dispatch; null before. */
  seen: number | null;
  /** It has asked a gate to be let through, and has no answer. */
  atGate: boolean;
  /** When the attempt to come may begin at the earliest. */
  retryAtMs: number | null;
  /** What an engine's own node waits for, and the event and commit that say so. */
  wait: Wait | null;
  waitVersion: number;
  waitIn: Commit | null;
  output: Value | null;
  error: ErrorValue | null;
  end: NodeEnd | null;
  endedBy: ExecutionEvent["kind"] | null;
  endedIn: Commit | null;
  /** The event that ended it. */
  endedVersion: number | null;
  edges: EdgeCounts;
  /** What its join said when it first said anything but wait: that stands, whatever becomes of other parents. */
  joined: Joined;
  /** The event after which it said so, and when. */
  joinedVersion: number;
  joinedAtMs: number | null;
  /** When its first parent was decided: from there on its join's own timeout counts. */
  firstDecidedAtMs: number | null;
  /** A router has chosen others. */
  routedAway: boolean;
  /** The part of its key that rises when its work is to be done anew. */
  rerun: number;
  /** Rounds that were cut off in an earlier generation, by number: they keep their key until they have answered. */
  readonly cutRounds: Map<number, number>;
  /** Somebody wants its work done anew: it calls another child than before. */
  isRenewed: boolean;
  /** Nobody has seen its key yet: then it does not matter whether it has risen. */
  isKeyFree: boolean;
  /** Its last attempt has ended with an answer, good or bad. */
  answered: boolean;
  /** The hash of what it was given in its last dispatch, in whatever generation. */
  inputHash: string | null;
  /** A completion that came after the end of a generation. */
  late: Late | null;
  /** Of a map: its items, and every item that it ever had, by place. */
  items: readonly NodeStory[];
  readonly known: NodeStory[];
  /** Its config was edited since it was last opened, maybe in a generation that never came so far. */
  areItemsEdited: boolean;
  /** The items as they were given, and the version that was seen then. */
  opened: {
    readonly items: Value;
    readonly total: number;
    readonly chunked: boolean;
    readonly concurrency: number;
    readonly seen: number;
  } | null;
  /** The items of the generation before. */
  lastItems: Value | null;
  /** Of a part of a large map: how many of its items failed. */
  failures: number;
}

export interface Late {
  readonly output: Value;
  readonly inputHash: string | null;
  /** The generation after which it came. */
  readonly generation: number;
}

export function newNode(shape: ShapeNode, item: NodeStory["item"], generation: number): NodeStory {
  return {
    shape,
    instance: item === null ? shape.id : `${shape.id}[${item.index}]`,
    item,
    spec: shape.spec,
    rerun: 1,
    cutRounds: new Map(),
    isRenewed: true,
    isKeyFree: false,
    inputHash: null,
    late: null,
    items: [],
    known: [],
    areItemsEdited: false,
    lastItems: null,
    ...opened(shape, generation),
    ...NOT_TRIED,
  };
}

/**
 * Nothing has been tried yet in this generation. Kept are its key, a late result and, of a map, its items, unless
 * somebody wants the work done anew.
 */
export function reopen(node: NodeStory, generation: number, isEdited: boolean, isAnew: boolean): void {
  const isCut = !(node.status === "completed" || node.answered || isEdited);
  // The rounds before the one that was cut off have answered, whatever became of it.
  const isToRise = !isCut || node.round > 1;
  const key = node.cutRounds.get(node.round) ?? node.rerun;
  for (const round of node.cutRounds.keys()) if (isEdited || round <= node.round) node.cutRounds.delete(round);
  if (isCut && node.round > 1) node.cutRounds.set(node.round, key);
  if (isToRise && node.inputHash === null) node.isKeyFree = true;
  else if (isToRise) node.rerun++;
  if (node.opened !== null) node.lastItems = node.opened.items;
  if (isAnew) node.lastItems = null;
  if (isAnew) node.isRenewed = true;
  Object.assign(node, opened(node.shape, generation), NOT_TRIED);
}

const NOT_TRIED = { answered: false };

function opened(
  shape: ShapeNode,
  generation: number,
): Omit<
  NodeStory,
  | "shape"
  | "instance"
  | "item"
  | "spec"
  | "rerun"
  | "cutRounds"
  | "isRenewed"
  | "isKeyFree"
  | "inputHash"
  | "late"
  | "items"
  | "known"
  | "areItemsEdited"
  | "lastItems"
  | keyof typeof NOT_TRIED
> {
  return {
    generation,
    status: "pending",
    round: 0,
    unjudged: false,
    roundAtMs: null,
    attempt: 0,
    delivery: 0,
    lost: 0,
    tokens: [],
    out: false,
    again: null,
    dueAtMs: null,
    seen: null,
    atGate: false,
    retryAtMs: null,
    wait: null,
    waitVersion: 0,
    waitIn: null,
    output: null,
    error: null,
    end: null,
    endedBy: null,
    endedIn: null,
    endedVersion: null,
    edges: { undecided: shape.parents.length, ok: 0, void: 0, bad: 0 },
    joined: "wait",
    joinedVersion: 0,
    joinedAtMs: null,
    firstDecidedAtMs: null,
    routedAway: false,
    opened: null,
    failures: 0,
  };
}
