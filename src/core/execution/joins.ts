import type { Join } from "../../definition/workflow.ts";
import type { SkipReason } from "./events.ts";

/** What the edges into a node say so far. `ok + void + bad + undecided` is the number of its dependencies. */
export interface EdgeCounts {
  readonly undecided: number;
  readonly ok: number;
  readonly void: number;
  readonly bad: number;
}

export type JoinVerdict = "wait" | "run" | Extract<SkipReason, "condition" | "upstream_failed">;

export type JoinRule = (edges: EdgeCounts) => JoinVerdict;

/**
 * When a node may run, and when it can no more. A bad edge spreads the failure, a void one is harmless; a node whose
 * edges are all void has nothing to run for.
 */
const RULES: Readonly<Record<Exclude<Join, `quorum:${number}`>, JoinRule>> = {
  none_failed: (edges) => {
    if (edges.undecided > 0) return "wait";
    if (edges.bad > 0) return "upstream_failed";
    return edges.ok > 0 || edges.void === 0 ? "run" : "condition";
  },
  all_success: (edges) => {
    if (edges.undecided > 0) return "wait";
    if (edges.bad > 0) return "upstream_failed";
    return edges.void === 0 ? "run" : "condition";
  },
  all_done: (edges) => (edges.undecided > 0 ? "wait" : "run"),
  one_success: (edges) => atLeast(1, edges),
};

export function joinRule(join: Join): JoinRule {
  if (!join.startsWith("quorum:")) return RULES[join as keyof typeof RULES];
  const needed = Number(join.slice("quorum:".length));
  return (edges) => atLeast(needed, edges);
}

/** Runs at the n-th ok edge, without waiting for the rest; gives up as soon as n cannot come any more. */
function atLeast(needed: number, edges: EdgeCounts): JoinVerdict {
  const isRoot = edges.undecided + edges.ok + edges.void + edges.bad === 0;
  if (edges.ok >= needed || isRoot) return "run";
  if (edges.ok + edges.undecided >= needed) return "wait";
  return edges.bad > 0 ? "upstream_failed" : "condition";
}
