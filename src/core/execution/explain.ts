import type { Json } from "../../json/json.ts";
import { entityId } from "../entity.ts";
import { edgeCounts } from "./spread.ts";
import { EDGE, type ExecutionState } from "./state.ts";
import { reviewId } from "./review-listing.ts";
import { gateReason, isHeldBack, waitsToEnter } from "./view.ts";
import { awaitedGate } from "./asks.ts";
import { reviewDueMs } from "./review-listing.ts";
import { wakerOf } from "./wakers.ts";

/** Why a node is not done: for machines a reason, for people a sentence. */
export interface Explanation {
  readonly node: string;
  readonly reason: ExplainReason;
  readonly sentence: string;
  /** When it will go on by itself, if that is known. */
  readonly untilMs?: number;
  readonly details: { readonly [key: string]: Json };
}

export type ExplainReason =
  | "held"
  | "paused"
  | "quarantined"
  | "parents"
  | "parallel"
  | "window"
  | "next"
  | "queued"
  | "running"
  | "retry"
  | "timer"
  | "signal"
  | "review"
  | "child"
  | "items"
  | "rate_limit"
  | "concurrency"
  | "breaker"
  | "budget"
  | "stuck";

const AT_GATE = {
  rate_limit: "It waits for its turn at a rate limit.",
  concurrency: "It waits for a free place.",
  breaker: "It waits until a breaker lets it through.",
  cache: "It waits for the result of somebody who does the same work.",
  budget: "It waits until it is known what others have used of a budget.",
} as const;

const SHOWN = 20;

/** One explanation for each node that has not ended, or for the one that is asked about; none once all is over. */
export function explain(state: ExecutionState, node?: string): readonly Explanation[] {
  if (state.isEnded) return [];
  const { graph } = state.plan;
  if (node !== undefined) {
    const unit = state.unitOf(node);
    return unit === undefined || state.isNodeEnded(unit) ? [] : [explainUnit(state, unit)];
  }
  const explanations: Explanation[] = [];
  for (let unit = 0; unit < graph.nodeCount; unit++) {
    if (!state.isNodeEnded(unit)) explanations.push(explainUnit(state, unit));
  }
  return explanations;
}

function explainUnit(state: ExecutionState, unit: number): Explanation {
  const node = state.nameOf(unit);
  const say = (
    reason: ExplainReason,
    sentence: string,
    details: Explanation["details"] = {},
    untilMs?: number | null,
  ): Explanation => ({
    node,
    reason,
    sentence,
    ...(untilMs !== undefined && untilMs !== null && { untilMs }),
    details,
  });

  if (state.quarantined !== null) {
    const { code, message } = state.quarantined;
    return say("quarantined", `The execution is in quarantine since it could not be decided: ${message}`, { code });
  }
  if (state.status === "pending") return say("held", "The execution was accepted and has not been triggered yet.");
  if (wakerOf(state, unit) === null) {
    return say("stuck", "Nothing would move it: the next sweep repairs that. Please report it.");
  }
  const run = state.runs[unit];
  const until = run?.dueAtMs ?? null;
  const gate = awaitedGate(state, unit);
  if (gate !== undefined) {
    const at = gate.wait === "cache" ? "cache" : "gate";
    const isStalled = gate.stalled !== undefined;
    const sentence = isStalled ? "A budget is used up: it waits until somebody raises it." : AT_GATE[gate.wait];
    const review = isStalled && { review: reviewId(state.id, state.generation, node) };
    return say(gateReason(gate.wait), sentence, { [at]: entityId(gate.gate), ask: gate.ask, ...review });
  }
  switch (state.statusOf(unit)) {
    case "pending":
      return explainPending(state, unit, say);
    case "queued":
      if (state.inLine[unit] === 1) return explainReady(state, unit, say);
      return say(
        "queued",
        `It waits in queue "${state.planOf(unit).spec.queue}" for a worker to take it (attempt ${run!.attempt}).`,
        {
          queue: state.planOf(unit).spec.queue,
          handler: state.planOf(unit).spec.handler,
          attempt: run!.attempt,
          delivery: run!.delivery,
        },
        until,
      );
    case "running": {
      const map = state.planOf(unit).item === null ? undefined : state.maps.get(unit);
      if (map === undefined) {
        return say("running", `A worker runs it (attempt ${run!.attempt}).`, { attempt: run!.attempt }, until);
      }
      const { total, completed, failures: failed, open } = map;
      const sentence = `${completed} of ${map.count} ${map.chunked ? "parts" : "items"} are done, ${open} are under way.`;
      return say("items", sentence, { total, completed, failed, open });
    }
    case "waiting":
      return explainWaiting(state, unit, say);
    case "completed":
    case "failed":
    case "skipped":
    case "cancelled":
      throw new Error(`${node} has ended`);
  }
}

type Say = (
  reason: ExplainReason,
  sentence: string,
  details?: Explanation["details"],
  untilMs?: number | null,
) => Explanation;

function explainPending(state: ExecutionState, unit: number, say: Say): Explanation {
  const waker = wakerOf(state, unit);
  if (waker === "line") return explainReady(state, unit, say);
  if (waker === "skips") return say("next", "It is about to be skipped.", { skip: state.skipReasons.get(unit)! });
  if (waker === "items") return say("items", "Other items of the map come first: as many are under way as may be.");
  const missing = missingParents(state, unit);
  const { ok, bad } = edgeCounts(state, unit);
  const shown = missing.slice(0, SHOWN).join(", ") + (missing.length > SHOWN ? " …" : "");
  const { join } = state.planOf(unit).spec;
  const sentence = `It waits for ${missing.length === 1 ? "its parent" : `${missing.length} parents`}: ${shown}.`;
  const details = { join, missing: missing.slice(0, SHOWN), missing_count: missing.length, ok, bad };
  return say("parents", sentence, details, state.runs[unit]?.dueAtMs);
}

/** It may run, and does not yet. */
function explainReady(state: ExecutionState, unit: number, say: Say): Explanation {
  if (state.status === "paused") return say("paused", "It is ready, and the execution is paused.");
  if (waitsToEnter(state)) {
    const { gate, ask } = state.entry!;
    const sentence = "It is ready; the execution waits for a place among those of its workflow.";
    return say("concurrency", sentence, { gate: entityId(gate), ask });
  }
  if (isHeldBack(state, unit)) {
    const limit = state.plan.workflow.max_parallel_nodes!;
    return say("parallel", `It is ready; ${limit} nodes of the execution run, and no more may at a time.`, { limit });
  }
  if (state.isEngine(unit)) return say("next", "The engine is about to run it.");
  const { queue } = state.planOf(unit).spec;
  return say("window", `It is ready, and goes out when queue "${queue}" has room for more tasks.`, { queue });
}

function explainWaiting(state: ExecutionState, unit: number, say: Say): Explanation {
  const { wait, dueAtMs, error, attempt, round } = state.runs[unit]!;
  const { spec } = state.planOf(unit);
  switch (wait?.for) {
    case undefined: {
      if (state.inLine[unit] === 1) return say("next", `Round ${round} is about to be judged.`, { round });
      if (error === null) {
        return say("timer", `Round ${round} is done; the next begins in time.`, { round }, dueAtMs);
      }
      const of = `Attempt ${attempt} of ${spec.retry.max_attempts}`;
      return say("retry", `${of} failed: ${error.message}. It is tried again.`, { attempt, code: error.code }, dueAtMs);
    }
    case "timer":
      return say("timer", "It waits for its time.", {}, wait.calendarAtMs ?? dueAtMs);
    case "signal":
      return say("signal", `It waits for the signal "${wait.signal}".`, { signal: wait.signal }, dueAtMs);
    case "review": {
      const { title, assignees } = wait.review;
      const who = assignees === undefined || assignees.length === 0 ? "somebody" : assignees.join(", ");
      const details = { ...(title !== undefined && { title }), assignees: [...(assignees ?? [])] };
      return say("review", `It waits for ${who} to decide the review.`, details, reviewDueMs(wait));
    }
    case "child": {
      const { execution, workflow } = wait.child;
      const sentence = `It waits for the child execution ${execution} of "${workflow}" to end.`;
      return say("child", sentence, { child_execution_id: execution, workflow }, dueAtMs);
    }
  }
}

function missingParents(state: ExecutionState, node: number): string[] {
  const { graph } = state.plan;
  const missing: string[] = [];
  for (let edge = graph.parentStart[node]!; edge < graph.parentStart[node + 1]!; edge++) {
    if (state.edges[edge] === EDGE.undecided) missing.push(graph.ids[graph.edgeParent[edge]!]!);
  }
  return missing;
}
