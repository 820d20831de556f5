import type { EndStatus } from "../../core/execution/events.ts";
import type { ErrorValue, RetryScope } from "../../core/message.ts";
import type { DependencyOn, DlqPolicy, Join } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import type { Shape } from "./shape.ts";

/** How a node ended, as its dependants see it. A failure is `tolerated` if its own on_error says `continue`. */
export type NodeEnd = "completed" | "failed" | "tolerated" | "skipped" | "skippedUpstream" | "cancelled";

/** What one dependency says once its parent has ended: the table of docs/workflows.md, column by column. */
export function edge(end: NodeEnd, on: DependencyOn): "ok" | "void" | "bad" {
  if (on === "done") return "ok";
  if (on === "failed") return end === "failed" || end === "tolerated" ? "ok" : "void";
  if (end === "completed" || end === "tolerated") return "ok";
  return end === "skipped" ? "void" : "bad";
}

export interface EdgeCounts {
  undecided: number;
  ok: number;
  void: number;
  bad: number;
}

/** `skipRoute` is no join's word, but a router's: it goes above them all. */
export type Joined = "wait" | "run" | "skipCondition" | "skipUpstream" | "skipRoute";

export function join(rule: Join, edges: EdgeCounts): Joined {
  const total = edges.undecided + edges.ok + edges.void + edges.bad;
  // A node without dependencies has nothing to wait for, whatever its rule.
  if (total === 0) return "run";
  if (rule === "one_success" || rule.startsWith("quorum:")) {
    const needed = rule === "one_success" ? 1 : Number(rule.split(":")[1]);
    if (edges.ok >= needed) return "run";
    if (edges.ok + edges.undecided >= needed) return "wait";
    return edges.bad > 0 ? "skipUpstream" : "skipCondition";
  }
  if (edges.undecided > 0) return "wait";
  if (rule === "all_done") return "run";
  if (edges.bad > 0) return "skipUpstream";
  const runs = rule === "all_success" ? edges.ok === total : edges.ok > 0;
  return runs ? "run" : "skipCondition";
}

/** The verdict of an execution whose nodes have all ended. */
export function naturalEnd(unhandledFailures: number, completed: number): EndStatus {
  if (unhandledFailures === 0) return "completed";
  return completed > 0 ? "partial" : "failed";
}

/** The class of the dead letter a failure leaves, or null if the node's policy wants none. */
export function deadLetterClass(policy: DlqPolicy, retryable: boolean): "poison" | "exhausted" | null {
  const kind = retryable ? "exhausted" : "poison";
  if (policy === "none") return null;
  if (policy === "non_retryable" && kind !== "poison") return null;
  if (policy === "exhausted" && kind !== "exhausted") return null;
  return kind;
}

/** The shortest wait after attempt n has failed: min(max, base · exp^(n−1)), without jitter. */
export function shortestBackoffMs(
  retry: {
    readonly base_delay_seconds: number;
    readonly max_delay_seconds: number;
    readonly exponential_base: number;
  },
  attempt: number,
): number {
  let seconds = retry.base_delay_seconds;
  for (let i = 1; i < attempt; i++) seconds *= retry.exponential_base;
  return Math.min(seconds, retry.max_delay_seconds) * 1000;
}

/** How an execution stood when it ended. */
export interface Standing {
  /** How each node had ended, those included that were open. */
  readonly ends: readonly NodeEnd[];
  /** Those that were open. */
  readonly open: ReadonlySet<number>;
  /** The node that had ended it: by failing under fail_fast, or as an `end` that says FAILED. */
  readonly culprit: number | undefined;
}

/**
 * Which nodes a new generation opens again, and everything after them. Of dead letters it is their nodes, and what was
 * cancelled because of them.
 */
export function reopened(
  shape: Shape,
  { ends, open, culprit }: Standing,
  scope: RetryScope,
  begin: readonly number[],
): ReadonlySet<number> {
  if (scope === "node") return new Set(begin);
  const chosen = new Set(begin);
  const isToBlame = culprit !== undefined && begin.includes(culprit);
  for (const [index, end] of ends.entries()) {
    const isUndone = end === "failed" || end === "tolerated" || end === "skippedUpstream" || end === "cancelled";
    if (scope === "failed" && (isUndone || index === culprit)) chosen.add(index);
    if (scope === "letters" && isToBlame && open.has(index)) chosen.add(index);
  }
  const all = new Set(chosen);
  for (const index of chosen) for (const below of shape.nodes[index]!.descendants) all.add(below);
  return all;
}

/** Whether a failure is an answer: whoever was asked has said no. After a timeout or a lost worker nobody knows. */
export function isDefinite(error: ErrorValue, byDeadline: boolean): boolean {
  return !byDeadline && error.code !== "TIMEOUT" && error.code !== "POISON_TASK";
}

/** How many items of a map may fail. */
export function toleratedFailures(tolerated: Json | undefined, total: number): number {
  if (typeof tolerated === "string") return Math.floor((total * Number.parseFloat(tolerated)) / 100);
  return typeof tolerated === "number" ? tolerated : 0;
}

/** How many signals of one name are kept. */
export const MOST_SIGNALS = 100;
