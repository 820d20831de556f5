import { counted } from "../../errors/counted.ts";
import type { Json } from "../../json/json.ts";
import { entityId } from "../entity.ts";
import { inWords, momentInWords } from "../in-words.ts";
import type { SkipReason } from "./events.ts";
import { attemptOf, blamed, skipSentence, standing } from "./explain-parents.ts";
import { edgeCounts } from "./spread.ts";
import { EDGE, type ExecutionState, type UnitAsk } from "./state.ts";
import { reviewDueMs, reviewId } from "./review-listing.ts";
import { gateReason, isBetweenAttempts, isHeldBack, waitsToEnter } from "./view.ts";
import { awaitedGate } from "./asks.ts";
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
  | "stuck"
  | SkipReason;

const AT_GATE = {
  rate_limit: "waits for its turn at a rate limit",
  concurrency: "waits for a free place",
  breaker: "waits until a breaker lets it through",
  cache: "waits for the result of somebody who does the same work",
  budget: "waits until it is known what others have used of a budget",
} as const;

const SHOWN = 20;

/**
 * One explanation for each node that has not ended, or for the one that is asked about, also if it was skipped; none once
 * all is over. With the time it also tells how long things take.
 */
export function explain(state: ExecutionState, node?: string, nowMs?: number): readonly Explanation[] {
  if (state.isEnded) return [];
  const { graph } = state.plan;
  if (node !== undefined) {
    const unit = state.unitOf(node);
    if (unit === undefined) return [];
    if (state.statusOf(unit) === "skipped") return [explainSkipped(state, unit)];
    return state.isNodeEnded(unit) ? [] : [explainUnit(state, unit, nowMs)];
  }
  const explanations: Explanation[] = [];
  for (let unit = 0; unit < graph.nodeCount; unit++) {
    if (!state.isNodeEnded(unit)) explanations.push(explainUnit(state, unit, nowMs));
  }
  return explanations;
}

function explainSkipped(state: ExecutionState, unit: number): Explanation {
  const reason = state.runs[unit]?.skipReason ?? "condition";
  return { node: state.nameOf(unit), reason, sentence: skipSentence(state, unit), details: {} };
}

function explainUnit(state: ExecutionState, unit: number, nowMs: number | undefined): Explanation {
  const node = state.nameOf(unit);
  const say = (
    reason: ExplainReason,
    rest: string,
    details: Explanation["details"] = {},
    untilMs?: number | null,
  ): Explanation => ({
    node,
    reason,
    sentence: `${node} ${rest}`,
    ...(untilMs !== undefined && untilMs !== null && { untilMs }),
    details,
  });

  if (state.quarantined !== null) {
    const { code, message } = state.quarantined;
    const rest = `waits: the execution is in quarantine since it could not be decided: ${message}`;
    return say("quarantined", rest, { code });
  }
  if (state.status === "pending") return say("held", "waits: the execution has not been triggered yet");
  if (wakerOf(state, unit) === null) {
    return say("stuck", "waits for nothing that would move it: the next sweep repairs that. Please report it");
  }
  const gate = awaitedGate(state, unit);
  if (gate !== undefined) return explainGate(state, node, gate, say);
  switch (state.statusOf(unit)) {
    case "pending":
      return explainPending(state, unit, say, nowMs);
    case "queued":
      return state.inLine[unit] === 1 ? explainReady(state, unit, say) : explainQueued(state, unit, say);
    case "running":
      return explainRunning(state, unit, say, nowMs);
    case "waiting":
      return explainWaiting(state, unit, say, nowMs);
    case "completed":
    case "failed":
    case "skipped":
    case "cancelled":
      throw new Error(`${node} has ended`);
  }
}

type Say = (
  reason: ExplainReason,
  rest: string,
  details?: Explanation["details"],
  untilMs?: number | null,
) => Explanation;

function explainGate(state: ExecutionState, node: string, gate: UnitAsk, say: Say): Explanation {
  const at = gate.wait === "cache" ? "cache" : "gate";
  const isStalled = gate.stalled !== undefined;
  const rest = isStalled ? "waits until somebody raises a budget that is used up" : AT_GATE[gate.wait];
  const review = isStalled && { review: reviewId(state.id, state.generation, node) };
  return say(gateReason(gate.wait), rest, { [at]: entityId(gate.gate), ask: gate.ask, ...review });
}

function explainQueued(state: ExecutionState, unit: number, say: Say): Explanation {
  const { queue, handler } = state.planOf(unit).spec;
  const { attempt, delivery, dueAtMs } = state.runs[unit]!;
  const rest = `waits in queue "${queue}" for a worker to take it (${attemptOf(state, unit)})`;
  return say("queued", rest, { queue, handler, attempt, delivery }, dueAtMs);
}

/** On a worker; or a map, whose items are. */
function explainRunning(state: ExecutionState, unit: number, say: Say, nowMs: number | undefined): Explanation {
  const map = state.planOf(unit).item === null ? undefined : state.maps.get(unit);
  if (map === undefined) {
    const { attempt, startedAtMs, dueAtMs } = state.runs[unit]!;
    const since = nowMs === undefined || startedAtMs === null ? "" : `${inWords(nowMs - startedAtMs)}, `;
    return say("running", `is running on a worker (${since}${attemptOf(state, unit)})`, { attempt }, dueAtMs);
  }
  const { total, completed, failures: failed, open } = map;
  const rest = `waits for its ${map.chunked ? "parts" : "items"}: ${completed} of ${map.count} are done, ${open} are under way`;
  return say("items", rest, { total, completed, failed, open });
}

function explainPending(state: ExecutionState, unit: number, say: Say, nowMs: number | undefined): Explanation {
  const waker = wakerOf(state, unit);
  if (waker === "line") return explainReady(state, unit, say);
  if (waker === "skips") return say("next", "is about to be skipped", { skip: state.skipReasons.get(unit)! });
  if (waker === "items") return say("items", "waits for other items of the map: as many are under way as may be");
  const missing = missingParents(state, unit);
  const { ok, bad, void: none } = edgeCounts(state, unit);
  const shown = missing.slice(0, SHOWN).join(", ") + (missing.length > SHOWN ? " …" : "");
  const { join } = state.planOf(unit).spec;
  const why = blamed(state, unit);
  const [first] = missing;
  const total = missing.length + ok + bad + none;
  const rest =
    why !== undefined
      ? `will not run: ${why}; it is skipped once ${shown} ${missing.length === 1 ? "has" : "have"} ended`
      : missing.length === 1
        ? `waits for ${first} (${standing(state, state.plan.graph.indexOf.get(first!)!, nowMs)})`
        : `waits for ${missing.length} of ${total} dependencies: ${shown}`;
  const details = { join, missing: missing.slice(0, SHOWN), missing_count: missing.length, ok, bad };
  return say("parents", rest, details, state.runs[unit]?.dueAtMs);
}

/** It may run, and does not yet. */
function explainReady(state: ExecutionState, unit: number, say: Say): Explanation {
  if (state.status === "paused" && isBetweenAttempts(state, unit)) {
    const { attempt, error } = state.runs[unit]!;
    const rest = `is tried again once the execution is resumed: ${failedWith(state, unit)}`;
    return say("paused", rest, { attempt, code: error!.code });
  }
  if (state.status === "paused") return say("paused", "is ready, and the execution is paused");
  if (waitsToEnter(state)) {
    const { gate, ask } = state.entry!;
    const rest = "is ready; the execution waits for a place among those of its workflow";
    return say("concurrency", rest, { gate: entityId(gate), ask });
  }
  if (isHeldBack(state, unit)) {
    const limit = state.plan.workflow.max_parallel_nodes!;
    const running = counted(limit, "node of the execution runs", "nodes of the execution run");
    return say("parallel", `is ready; ${running}, and no more may at a time`, { limit });
  }
  if (state.isEngine(unit)) return say("next", "is about to run in the engine");
  const { queue } = state.planOf(unit).spec;
  return say("window", `is ready, and goes out when queue "${queue}" has room for more tasks`, { queue });
}

function explainWaiting(state: ExecutionState, unit: number, say: Say, nowMs: number | undefined): Explanation {
  const { wait, dueAtMs, error, attempt, round } = state.runs[unit]!;
  switch (wait?.for) {
    case undefined: {
      if (state.inLine[unit] === 1)
        return say("next", `has ended round ${round}, which is about to be judged`, { round });
      if (error === null) {
        return say("timer", `has ended round ${round}; the next begins${within(dueAtMs, nowMs)}`, { round }, dueAtMs);
      }
      const rest = `is tried again${within(dueAtMs, nowMs)}: ${failedWith(state, unit)}`;
      return say("retry", rest, { attempt, code: error.code }, dueAtMs);
    }
    case "timer": {
      const atMs = wait.calendarAtMs ?? dueAtMs;
      return say("timer", `waits for its time${atMs === null ? "" : `, which comes${within(atMs, nowMs)}`}`, {}, atMs);
    }
    case "signal": {
      const rest = `waits for the signal "${wait.signal}"${nowMs === undefined || dueAtMs === null ? "" : `; expires${within(dueAtMs, nowMs)}`}`;
      return say("signal", rest, { signal: wait.signal }, dueAtMs);
    }
    case "review": {
      const { title, assignees = [], onDue } = wait.review;
      const { first } = wait;
      const review = reviewId(state.id, state.generation, state.nameOf(unit));
      const half = first !== undefined && { first: { by: first.by, decision: first.decision } };
      const details = { ...(title !== undefined && { title }), assignees: [...assignees], review, ...half };
      const left = assignees.filter((one) => one !== first?.by);
      const anybody = first === undefined ? "a person" : "a second person";
      const said = first === undefined ? "" : `, after ${first.by} said ${first.decision},`;
      const who = `${left.length === 0 ? anybody : left.join(", ")}${said}`;
      const untilMs = reviewDueMs(wait);
      const { startedAtMs } = state.runs[unit]!;
      const since = nowMs === undefined || startedAtMs === null ? "" : ` since ${momentInWords(startedAtMs, nowMs)}`;
      const ends = onDue === "fail" ? "expires" : `counts as "${onDue.decision}"`;
      const end = nowMs === undefined || untilMs === null ? "" : `; ${ends}${within(untilMs, nowMs)}`;
      return say("review", `waits for ${who}${since}${end}; decide: millrace approve ${review}`, details, untilMs);
    }
    case "child": {
      const { execution, workflow } = wait.child;
      const rest = `waits for the child execution ${execution} of "${workflow}" to end`;
      return say("child", rest, { child_execution_id: execution, workflow }, dueAtMs);
    }
  }
}

function failedWith(state: ExecutionState, unit: number): string {
  const { code, message } = state.runs[unit]!.error!;
  return `${attemptOf(state, unit)} failed with ${code}: ${message}`;
}

function within(atMs: number | null, nowMs: number | undefined): string {
  return nowMs === undefined || atMs === null ? " in time" : ` in ${inWords(atMs - nowMs)}`;
}

function missingParents(state: ExecutionState, node: number): string[] {
  const { graph } = state.plan;
  const missing: string[] = [];
  for (let edge = graph.parentStart[node]!; edge < graph.parentStart[node + 1]!; edge++) {
    if (state.edges[edge] === EDGE.undecided) missing.push(graph.ids[graph.edgeParent[edge]!]!);
  }
  return missing;
}
