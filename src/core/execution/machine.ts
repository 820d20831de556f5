import type { Json } from "../../json/json.ts";
import type { BlobDraft, Context, EntityHeader, Machine, Need, OpenTasks, TaskDraft } from "../machine.ts";
import { isLarge, type Value } from "../value.ts";
import { advance } from "./advance.ts";
import { decide } from "./decide.ts";
import { newestToken } from "./decision.ts";
import { needsEntry } from "./entry.ts";
import { eventText } from "./event-text.ts";
import { EVENT_FORMAT, type ExecutionEvent } from "./events.ts";
import { evolve } from "./evolve.ts";
import { gaveBack } from "./gates.ts";
import { checkTouched, checkWhole } from "./invariants.ts";
import type { Plan } from "./plan.ts";
import { EXECUTION_STATUSES, type ExecutionStatus } from "./moves.ts";
import { farewell } from "./farewell.ts";
import { lettersLeft } from "./letters-left.ts";
import { prepare, taskOf } from "./prepare.ts";
import { planAtHand, planOf, textOfPlan } from "./shared-plans.ts";
import { definitionOfSnapshot, restore, snapshot, SNAPSHOT_FORMAT, snapshotPieces } from "./snapshot.ts";
import { lastingLists } from "./label-listing.ts";
import { called, calledOff, callerOf, recovered } from "./recovered.ts";
import { lastingExamples } from "./review-listing.ts";
import { sweep } from "./sweep.ts";
import { ENGINE_LINE } from "./ready-lines.ts";
import { ExecutionState } from "./state.ts";

/** The execution as a kind of entity. */
export const executionMachine: Machine<ExecutionState, ExecutionEvent> = {
  kind: "execution",
  eventFormat: EVENT_FORMAT,
  snapshotFormat: SNAPSHOT_FORMAT,
  definitionOf: (first) => {
    if (first.kind === "cancel") return first.start?.definition;
    return first.kind === "start" || first.kind === "accepted" ? first.definition : undefined;
  },
  isStart: (body) => body.kind === "start" || (body.kind === "cancel" && body.start !== undefined),
  prepareDefinition: planOf,
  definitionAtHand: planAtHand,
  textOfDefinition: (definition) => textOfPlan(definition as Plan),
  create: (id, definition) => new ExecutionState(id, definition as Plan),
  decide,
  advance,
  sweep,
  recovered,
  lastingLists,
  lastingEntries: lastingExamples,
  callerOf,
  called,
  calledOff,
  gaveBack,
  evolve,
  eventText: (state, event) => eventText(event, state.plan),
  check: (state, whole) => (whole ? checkWhole(state) : checkTouched(state)),
  hasWork,
  nextWakeMs: (state) => (state.isEnded ? null : state.timers.peekMs()),
  nextCalendarMs: (state) => (state.isEnded ? null : state.calendar.peekMs()),
  liveTasks: (state) => (state.isEnded ? NO_TASKS : state.liveByQueue),
  liveCount: (state) => (state.isEnded ? 0 : state.live.size),
  openTasks,
  liveTokens: (state) => (state.isEnded ? [] : tokensOf(state)),
  withdrawn: (state) => (state.isEnded ? tokensOf(state) : []),
  isEnded: (state) => state.isEnded,
  // One that was accepted and never triggered is waited for as long as one that has ended is kept.
  idleSinceMs: (state) => (state.status === "pending" ? state.createdAtMs : state.endedAtMs),
  farewell,
  letters: (state) => [...state.letters.keys()],
  lettersLeft: (id, definition, events) => lettersLeft(new ExecutionState(id, definition as Plan), events),
  versionOf: (state) => state.version,
  header,
  listedAs: (state) => LISTED_AS[state.status],
  snapshot,
  snapshotPieces,
  restore: (id, definition, text) => restore(id, definition as Plan, text),
  definitionOfSnapshot,
  pastValue,
};

function pastValue(event: ExecutionEvent): Json | undefined {
  const value: Value | undefined = "output" in event ? event.output : undefined;
  return value !== undefined && "json" in value ? value.json : undefined;
}

const NO_TASKS: ReadonlyMap<string, number> = new Map();

function hasWork(state: ExecutionState): boolean {
  if (state.orphans.size > 0 || state.owesAnswer || state.returns.length > 0) return true;
  if (state.isEnded || (state.status !== "running" && state.status !== "paused")) return false;
  if (needsEntry(state) && state.entry?.status !== "granted") return state.entry === null && state.status === "running";
  if (state.skips.length > 0 || state.openCount === 0 || state.closing > 0) return true;
  if (state.status === "paused") return false;
  if (state.ready.of(ENGINE_LINE).length > 0) return true;
  const limit = state.plan.workflow.max_parallel_nodes;
  return state.ready.count > 0 && (limit === null || state.live.size < limit);
}

function openTasks(state: ExecutionState, context: Context): OpenTasks {
  const tasks: TaskDraft[] = [];
  const needs: Need[] = [];
  const blobs: BlobDraft[] = [];
  if (state.isEnded) return { tasks, needs };
  for (const node of state.live) {
    const preparation = prepare(state, node, context);
    if (preparation.kind === "needs") needs.push(...preparation.needs);
    if (preparation.kind !== "prepared") continue;
    const run = state.runs[node]!;
    const { prepared } = preparation;
    const large = isLarge(prepared.text);
    const dispatch = {
      attempt: run.attempt,
      delivery: run.delivery,
      nonce: run.nonces.at(-1)!,
      atMs: run.queuedAtMs ?? context.nowMs,
      ...(state.planOf(node).until !== null && { round: run.round }),
      ...(large && { config: { hash: prepared.inputHash, bytes: Buffer.byteLength(prepared.text) } }),
    };
    if (large) blobs.push({ hash: prepared.inputHash, text: prepared.text });
    tasks.push(taskOf(state, node, dispatch, prepared));
  }
  return { tasks, needs, ...(blobs.length > 0 && { blobs }) };
}

const NO_TOKENS: readonly string[] = [];

function tokensOf(state: ExecutionState): readonly string[] {
  if (state.live.size === 0) return NO_TOKENS;
  return Array.from(state.live, (node) => newestToken(state, state.nameOf(node)));
}

/** By status, since it is asked for with every touch. */
const LISTED_AS = Object.fromEntries(EXECUTION_STATUSES.map((status) => [status, status.toUpperCase()])) as Readonly<
  Record<ExecutionStatus, string>
>;

function header(state: ExecutionState): EntityHeader {
  const ended = state.end?.status;
  return {
    class: ended === undefined ? "open" : ended === "completed" ? "endedWell" : "endedBadly",
    status: LISTED_AS[state.status],
    workflow: state.plan.workflow.name,
    tenant: state.tenant,
    createdAtMs: state.createdAtMs,
    endedAtMs: state.endedAtMs,
  };
}
