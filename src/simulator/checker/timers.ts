import type { ExecutionEvent } from "../../core/execution/events.ts";
import { ENGINE_HANDLERS } from "../../definition/workflow.ts";
import { healedOf } from "./delivery.ts";
import type { Commit, Evidence } from "./evidence.ts";
import { type Found, type Invariant, placeOf, type Step } from "./invariant.ts";
import { concurrencyOf, isMapOver } from "./maps.ts";
import type { NodeStory } from "./node-story.ts";
import { GRAPH } from "./shape.ts";
import { hasBegun, type Story } from "./story.ts";

/** What an open node waits for. */
type Waker =
  /** Nothing but its owner's turn: it can be run, judged or skipped right now. */
  | "turn"
  /** Room among the nodes that may run at once. */
  | "room"
  | "parent"
  | "deadline"
  /** Something outside: a date, a person, a child, a gate, the end of a pause, its own items. */
  | "other"
  | "nothing";

function wakerOf(story: Story, node: NodeStory): Waker {
  if (standsInLine(story)) return "other";
  if (node.out) return node.dueAtMs === null ? "nothing" : "deadline";
  if (node.status === "waiting") return wakerOfWait(story, node);
  if (node.opened !== null) return isMapOver(node) ? "turn" : "other";
  const joined = hasBegun(node) ? "run" : node.joined;
  if (joined === "wait") return "parent";
  if (joined !== "run") return "turn";
  if (node.attempt > 0 && node.again === null) return "nothing";
  if (node.atGate) return "other";
  if (story.isPaused) return "other";
  return hasRoom(story, node) ? "turn" : "room";
}

function wakerOfWait(story: Story, { unjudged, wait, dueAtMs }: NodeStory): Waker {
  if (unjudged) return "turn";
  if (wait?.for === "signal" && (story.signals.get(wait.signal) ?? []).length > 0) return "turn";
  if (dueAtMs !== null) return "deadline";
  const isOutside = wait?.for === "child" || wait?.for === "review" || (wait?.for === "timer" && isDated(wait));
  return isOutside ? "other" : "nothing";
}

function isDated(wait: { readonly calendarAtMs?: number }): boolean {
  return wait.calendarAtMs !== undefined;
}

function hasRoom(story: Story, node: NodeStory): boolean {
  if (node.item !== null && !hasBegun(node)) {
    const { map } = node.item;
    if (isMapOver(map) || (story.mapped.get(map)?.size ?? 0) >= concurrencyOf(map)) return false;
  }
  const { handler } = node.spec;
  const isEngine = handler === GRAPH || ENGINE_HANDLERS.has(handler) || node.item?.map.opened?.chunked === true;
  const limit = story.shape!.workflow.max_parallel_nodes;
  return isEngine || limit === null || story.outCount < limit;
}

/** After every commit each open node has something that will move it, and who is to move now is in the store's list. */
const everyWaitHasWaker: Invariant = {
  id: "I26",
  name: "every wait has a waker",
  before(step, found) {
    const { event } = step;
    if (event.kind === "repaired") found(`It had to be set going again: ${event.what}`, placeOf(step));
  },
  committed(story, commit, _evidence, found) {
    if (!story.isOpen || story.isQuarantined || story.shape === null) return;
    // Who stands in line is moved by the answer, though it may then have nothing left to do.
    const isOver = story.openCount === 0 && !standsInLine(story);
    let turn: NodeStory | null | undefined = isOver ? null : undefined;
    for (const node of openUnits(story)) {
      const waker = wakerOf(story, node);
      if (waker === "nothing") {
        const place = { execution: story.id, node: node.instance, commit };
        found(`It is ${node.status}, and nothing will ever move it`, place);
      }
      if (waker === "turn") turn ??= node;
    }
    if (turn === undefined) return;
    const { wakeAtMs } = story;
    const { timeMs } = commit.entry;
    if (wakeAtMs !== null && wakeAtMs <= timeMs) return;
    const what = turn === null ? "Every node has ended" : `${turn.instance} can be run, judged or skipped`;
    const wake = wakeAtMs === null ? "no wake time is stored" : `the stored wake time is ${wakeAtMs}, after ${timeMs}`;
    const place = { execution: story.id, commit, ...(turn !== null && { node: turn.instance }) };
    found(`${what}, nothing has come of it yet, and ${wake}: a new owner would not look`, place);
  },
};

/** For a place among the executions of its workflow. */
function standsInLine(story: Story): boolean {
  return story.entry === "asked" || (story.isPaused && story.needsEntry && story.entry === null);
}

function* openUnits(story: Story): Iterable<NodeStory> {
  for (const node of story.nodes) {
    if (node.end !== null) continue;
    yield node;
    for (const item of node.items) if (item.end === null && item.generation === story.generation) yield item;
  }
}

/** Every dispatch and start sets its deadline, and the store wakes nobody later than the next deadline. */
const deadlineWithDispatch: Invariant = {
  id: "I27",
  name: "deadline with dispatch",
  before(step, found) {
    const { event, node, story } = step;
    if (event.kind === "taskDispatched") {
      const { atMs, queueDeadlineAtMs } = event;
      const dueAtMs = atMs + (node?.spec.queue_timeout_seconds ?? 0) * 1000;
      if (!(queueDeadlineAtMs > atMs))
        found(`It was dispatched at ${atMs} with the deadline ${queueDeadlineAtMs}`, placeOf(step));
      else if (node !== undefined && queueDeadlineAtMs !== dueAtMs) {
        found(`It may wait in its queue until ${queueDeadlineAtMs}, and its timeout says ${dueAtMs}`, placeOf(step));
      }
    }
    if (event.kind === "started" || event.kind === "generationOpened") {
      const seconds = story.shape?.workflow.timeout_seconds;
      const dueAtMs = seconds === 0 || seconds === undefined ? null : event.atMs + seconds * 1000;
      if (seconds !== undefined && event.deadlineAtMs !== dueAtMs) {
        found(`It may take until ${event.deadlineAtMs}, and its timeout, from now on, says ${dueAtMs}`, placeOf(step));
      }
    }
    if (event.kind !== "taskStarted" || node === undefined) return;
    const { startedAtMs, runDeadlineAtMs } = event;
    const ownMs = startedAtMs + (node.spec.timeout_seconds ?? 0) * 1000;
    const earliestMs = Math.min(ownMs, story.deadlineAtMs ?? ownMs);
    if (!(runDeadlineAtMs > startedAtMs) || runDeadlineAtMs < earliestMs) {
      found(
        `It started at ${startedAtMs} and has to end at ${runDeadlineAtMs}, before its timeout is over`,
        placeOf(step),
      );
    }
  },
  committed(story, commit, _evidence, found) {
    if (story.isOpen && !story.isQuarantined) wakeIsLowerBound(story, commit, found);
  },
  atEnd(story, { world }, found) {
    if (!world.liveness || story.ended === null || story.isQuarantined) return;
    if (story.wakeAtMs === null && !world.remains.wakes.includes(story.entity)) return;
    found("It has ended, and the store still wakes an owner for it", { execution: story.id, commit: story.endedIn! });
  },
  world({ world }, _stories, found) {
    for (const entity of world.restless ?? []) found(`${entity} is still to be looked at, hours after all was over`);
  },
};

function wakeIsLowerBound(story: Story, commit: Commit, found: Found): void {
  let earliestMs = story.deadlineAtMs ?? Infinity;
  let whose = "the workflow's timeout";
  for (const node of openUnits(story)) {
    const dueAtMs = node.dueAtMs ?? joinDueMs(node);
    if (dueAtMs === null || dueAtMs >= earliestMs) continue;
    earliestMs = dueAtMs;
    whose = `the deadline of ${node.instance}`;
  }
  // What is due already is looked at at once, however long it has been due.
  const latestMs = Math.max(earliestMs, commit.entry.timeMs);
  if (earliestMs === Infinity || (story.wakeAtMs !== null && story.wakeAtMs <= latestMs)) return;
  const place = { execution: story.id, commit };
  found(`The stored wake time is ${story.wakeAtMs ?? "none"}, and ${whose} is ${earliestMs}`, place);
}

/** When a node whose join has not spoken yet gives up; null if it does not. */
function joinDueMs({ spec, joined, firstDecidedAtMs, item }: NodeStory): number | null {
  const seconds = item === null ? spec.join_timeout_seconds : undefined;
  if (seconds === undefined || joined !== "wait" || firstDecidedAtMs === null) return null;
  return firstDecidedAtMs + seconds * 1000;
}

/** The moment that an event of a timer had to wait for, in partition time; undefined if it is none. */
function dueOf({ event, node, story }: Step): number | null | undefined {
  if (event.kind === "executionEnded") return event.reason === "timeout" ? story.deadlineAtMs : undefined;
  if (node === undefined) return undefined;
  if (event.kind === "retryDue" || event.kind === "roundDue") return node.dueAtMs;
  if (event.kind === "taskFailed") return event.deadline === undefined ? undefined : node.dueAtMs;
  if (event.kind === "nodeFailed") {
    if (event.error.code === "JOIN_TIMEOUT") return joinDueMs(node);
    return event.error.code === "SIGNAL_TIMEOUT" ? node.dueAtMs : undefined;
  }
  const isOver = event.kind === "nodeCompleted" && node.wait?.for === "timer" && node.end === null;
  return isOver ? node.dueAtMs : undefined;
}

/** Whatever was posted this long before a commit was there to be read when it was decided. */
const READ_BY_THEN_MS = 15_000;

/** A deadline fires once, and only while it stands. */
const fireOnce: Invariant = {
  id: "I28",
  name: "fire once",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null) return;
    const wrong = isOutOfTurn(event, node);
    if (wrong !== undefined) found(wrong, placeOf(step));
    if (event.kind !== "taskFailed" || event.deadline === undefined) return;
    const status = event.deadline === "queue" ? "queued" : "running";
    if (node.status !== status || !node.out)
      found(`Its ${event.deadline} deadline fired while it was ${node.status}`, placeOf(step));
    const { commit, evidence, story } = step;
    if (evidence.world.lossy) return;
    const token = node.tokens[event.delivery - 1] ?? "";
    if (story.parkedResults.has(token)) {
      found(`Its ${event.deadline} deadline fired, and its result had been parked before`, placeOf(step));
    }
    // What came shortly before may not have been read yet when the deadline was decided.
    const settledAt = evidence.tokens.get(token)?.settledAt ?? null;
    if (settledAt === null || commit.entry.at - settledAt < READ_BY_THEN_MS) return;
    found(`Its ${event.deadline} deadline fired, and its result had been posted long before`, placeOf(step));
  },
};

function isOutOfTurn(event: ExecutionEvent, node: NodeStory): string | undefined {
  const isWaiting = node.status === "waiting";
  if (event.kind === "retryDue" && !(isWaiting && node.wait === null && node.error !== null)) {
    return `A retry became due while it was ${node.status}`;
  }
  if (event.kind === "roundDue" && !(isWaiting && node.roundAtMs !== null && !node.unjudged)) {
    return `A round became due while it was ${node.status}`;
  }
  if (event.kind === "reviewDue" && node.wait?.for !== "review") return "A review became due, and none is open";
  const escalates = node.wait?.for === "review" && node.wait.review.escalate !== undefined;
  if (event.kind === "reviewDue" && escalates) return "A review became due before others were asked";
  if (event.kind === "reviewEscalated" && !escalates) return "Others were asked, and there was no reason to";
  if (event.kind !== "nodeFailed" || event.error.code !== "JOIN_TIMEOUT" || node.joined === "wait") return undefined;
  return `Its join's time was up, and its join had said ${node.joined} before`;
}

/** Nothing fires before its time, and time goes forward. In peace nothing fires long after its time either. */
const onTime: Invariant = {
  id: "I29",
  name: "on time",
  before(step, found) {
    const { event, node, commit, evidence } = step;
    const dueAtMs = dueOf(step);
    if (dueAtMs !== undefined && dueAtMs !== null && event.atMs < dueAtMs) {
      found(`${event.kind} came at ${event.atMs}, and is due at ${dueAtMs}`, placeOf(step));
    }
    if (dueAtMs !== undefined && dueAtMs !== null) isPunctual(step, dueAtMs, found);
    const isJoined = event.kind !== "nodeFailed" && node !== undefined && !hasBegun(node) && node.joined !== "wait";
    if (isJoined) joinWasInTime(step, node, found);
    const date = node?.end === null ? dateOf(event, node) : undefined;
    if (date !== undefined && evidence.latestClockMs(commit.entry.at) < date) {
      found(`${event.kind} came before ${new Date(date).toISOString()}, by any clock of the store`, placeOf(step));
    }
  },
  world({ surviving }, _stories, found) {
    const times = new Map<number, { commitMs: number; eventMs: number }>();
    for (const commit of surviving) {
      const { partition, timeMs, records } = commit.entry;
      const last = times.get(partition) ?? { commitMs: -Infinity, eventMs: -Infinity };
      if (timeMs < last.commitMs)
        found(`The time of the partition went back from ${last.commitMs} to ${timeMs}`, { commit });
      let eventMs = last.eventMs;
      for (const { entity, events } of records) {
        let before = last.eventMs;
        for (const { atMs, kind } of events) {
          const isWrong = atMs < before || atMs > timeMs;
          if (isWrong) found(`${kind} of ${entity} is of ${atMs}; it must be from ${before} to ${timeMs}`, { commit });
          before = atMs;
        }
        eventMs = Math.max(eventMs, before);
      }
      times.set(partition, { commitMs: timeMs, eventMs });
    }
  },
};

/** The date that an event had to wait for, by the store's clock. */
function dateOf(event: ExecutionEvent, { wait }: NodeStory): number | undefined {
  if (event.kind === "reviewDue" || event.kind === "reviewEscalated")
    return wait?.for === "review" ? wait.calendarAtMs : undefined;
  return event.kind === "nodeCompleted" && wait?.for === "timer" ? wait.calendarAtMs : undefined;
}

/** How long after the faults everybody is himself again, and how late a timer may then be. */
const RECOVERED_MS = 30_000;
const LATE_MS = 30_000;

/** In a world at peace time goes on evenly: what is due then happens then. */
function isPunctual(step: Step, dueAtMs: number, found: Found): void {
  const sinceMs = peaceOf(step.evidence).get(step.commit.entry.partition);
  if (sinceMs === undefined || dueAtMs < sinceMs || step.event.atMs <= dueAtMs + LATE_MS) return;
  found(`${step.event.kind} came at ${step.event.atMs}, and was due at ${dueAtMs}, in peace`, placeOf(step));
}

/** A join that took longer than its time was to fail. */
function joinWasInTime(step: Step, node: NodeStory, found: Found): void {
  const seconds = node.item === null ? node.spec.join_timeout_seconds : undefined;
  if (seconds === undefined || node.firstDecidedAtMs === null || node.joinedAtMs === null) return;
  const dueAtMs = node.firstDecidedAtMs + seconds * 1000;
  const sinceMs = peaceOf(step.evidence).get(step.commit.entry.partition);
  if (sinceMs === undefined || dueAtMs < sinceMs || node.joinedAtMs <= dueAtMs + LATE_MS) return;
  found(`Its join spoke at ${node.joinedAtMs}, and its time was up at ${dueAtMs}`, placeOf(step));
}

const PEACE = new WeakMap<Evidence, Map<number, number>>();

/** Per partition, its time at which peace was sure. */
function peaceOf(evidence: Evidence): ReadonlyMap<number, number> {
  let peace = PEACE.get(evidence);
  if (peace !== undefined) return peace;
  PEACE.set(evidence, (peace = new Map()));
  const healed = healedOf(evidence);
  if (healed < 0) return peace;
  const { history, poisoned } = evidence.world;
  const healedAt = history[healed]!.at;
  // What is poisoned goes on killing its owners until it is left alone: their partitions have no peace before the last.
  const takenAt = new Map<number, number>();
  for (const entry of poisoned.length === 0 ? [] : history) {
    if (entry.log === "journal" && entry.kind === "acquired") takenAt.set(entry.partition, entry.at);
  }
  for (const { entry } of evidence.surviving) {
    const from = Math.max(healedAt, takenAt.get(entry.partition) ?? 0) + RECOVERED_MS;
    if (entry.at >= from && !peace.has(entry.partition)) peace.set(entry.partition, entry.timeMs);
  }
  return peace;
}

export const TIMERS: readonly Invariant[] = [everyWaitHasWaker, deadlineWithDispatch, fireOnce, onTime];
