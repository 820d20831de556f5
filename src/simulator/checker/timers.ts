import type { Commit } from "./evidence.ts";
import { type Found, type Invariant, placeOf } from "./invariant.ts";
import type { NodeStory, Story } from "./story.ts";

/** What an open node waits for. */
type Waker =
  /** Nothing but its owner's turn: it can be run or skipped right now. */
  | "turn"
  /** Room among the nodes that may run at once. */
  | "room"
  | "parent"
  | "deadline"
  | "nothing";

function wakerOf(story: Story, node: NodeStory): Waker {
  if (node.out || node.status === "waiting") return node.dueAtMs === null ? "nothing" : "deadline";
  const joined = node.attempt === 0 ? node.joined : "run";
  if (joined === "wait") return "parent";
  if (joined !== "run") return "turn";
  if (node.attempt > 0 && node.again === null) return "nothing";
  const limit = story.shape!.workflow.max_parallel_nodes;
  return limit !== null && story.outCount >= limit ? "room" : "turn";
}

/** After every commit each open node has something that will move it, and who is to move now is in the store's list. */
const everyWaitHasWaker: Invariant = {
  id: "I26",
  name: "every wait has a waker",
  committed(story, commit, _evidence, found) {
    if (!story.isOpen || story.isQuarantined || story.shape === null) return;
    let turn: NodeStory | null | undefined = story.openCount === 0 ? null : undefined;
    for (const node of story.nodes) {
      if (node.end !== null) continue;
      const waker = wakerOf(story, node);
      if (waker === "nothing") {
        const place = { execution: story.id, node: node.shape.id, commit };
        found(`It is ${node.status}, and nothing will ever move it`, place);
      }
      if (waker === "turn") turn ??= node;
    }
    if (turn === undefined) return;
    const { wakeAtMs } = story;
    const { timeMs } = commit.entry;
    if (wakeAtMs !== null && wakeAtMs <= timeMs) return;
    const what = turn === null ? "Every node has ended" : `${turn.shape.id} can be run or skipped`;
    const wake = wakeAtMs === null ? "no wake time is stored" : `the stored wake time is ${wakeAtMs}, after ${timeMs}`;
    const place = { execution: story.id, commit, ...(turn !== null && { node: turn.shape.id }) };
    found(`${what}, nothing has come of it yet, and ${wake}: a new owner would not look`, place);
  },
};

/** Every dispatch and start sets its deadline, and the store wakes nobody later than the next deadline. */
const deadlineWithDispatch: Invariant = {
  id: "I27",
  name: "deadline with dispatch",
  before(step, found) {
    const { event, node } = step;
    if (event.kind === "taskDispatched") {
      const { atMs, queueDeadlineAtMs } = event;
      const dueAtMs = atMs + (node?.shape.spec.queue_timeout_seconds ?? 0) * 1000;
      if (!(queueDeadlineAtMs > atMs))
        found(`It was dispatched at ${atMs} with the deadline ${queueDeadlineAtMs}`, placeOf(step));
      else if (node !== undefined && queueDeadlineAtMs !== dueAtMs) {
        found(`It may wait in its queue until ${queueDeadlineAtMs}, and its timeout says ${dueAtMs}`, placeOf(step));
      }
    }
    if (event.kind !== "taskStarted" || node === undefined) return;
    const { startedAtMs, runDeadlineAtMs } = event;
    const ownMs = startedAtMs + (node.shape.spec.timeout_seconds ?? 0) * 1000;
    const earliestMs = Math.min(ownMs, step.story.deadlineAtMs ?? ownMs);
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
};

function wakeIsLowerBound(story: Story, commit: Commit, found: Found): void {
  let earliestMs = story.deadlineAtMs ?? Infinity;
  let whose = "the workflow's timeout";
  for (const node of story.nodes) {
    if (node.dueAtMs === null || node.dueAtMs >= earliestMs) continue;
    earliestMs = node.dueAtMs;
    whose = `the deadline of ${node.shape.id}`;
  }
  if (earliestMs === Infinity || (story.wakeAtMs !== null && story.wakeAtMs <= earliestMs)) return;
  const place = { execution: story.id, commit };
  found(`The stored wake time is ${story.wakeAtMs ?? "none"}, and ${whose} is ${earliestMs}`, place);
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
    if (event.kind === "retryDue" && node.status !== "waiting") {
      found(`A retry became due while it was ${node.status}`, placeOf(step));
    }
    if (event.kind !== "taskFailed" || event.deadline === undefined) return;
    const status = event.deadline === "queue" ? "queued" : "running";
    if (node.status !== status || !node.out)
      found(`Its ${event.deadline} deadline fired while it was ${node.status}`, placeOf(step));
    // What came shortly before may not have been read yet when the deadline was decided.
    const { commit, evidence } = step;
    const settledAt = evidence.tokens.get(node.tokens[event.delivery - 1] ?? "")?.settledAt ?? null;
    if (settledAt === null || evidence.world.lossy || commit.entry.at - settledAt < READ_BY_THEN_MS) return;
    found(`Its ${event.deadline} deadline fired, and its result had been posted long before`, placeOf(step));
  },
};

/** Nothing fires before its time, and time goes forward. */
const onTime: Invariant = {
  id: "I29",
  name: "on time",
  before(step, found) {
    const { event, node, story } = step;
    const isTimeout = event.kind === "executionEnded" && event.reason === "timeout";
    const isDeadline = event.kind === "retryDue" || (event.kind === "taskFailed" && event.deadline !== undefined);
    const dueAtMs = isTimeout ? story.deadlineAtMs : isDeadline ? node?.dueAtMs : null;
    if (dueAtMs === null || dueAtMs === undefined || event.atMs >= dueAtMs) return;
    found(`${isTimeout ? "The timeout" : event.kind} came at ${event.atMs}, and is due at ${dueAtMs}`, placeOf(step));
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

export const TIMERS: readonly Invariant[] = [everyWaitHasWaker, deadlineWithDispatch, fireOnce, onTime];
