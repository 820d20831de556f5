import type { ExecutionEvent, TaskDispatched, TaskFailedEvent } from "../../core/execution/events.ts";
import { type Found, type Invariant, placeOf, type Step } from "./invariant.ts";
import { shortestBackoffMs } from "./reference-rules.ts";
import type { NodeStory } from "./node-story.ts";
import { dispatchOf } from "./evidence.ts";
import { dispatchName } from "./story.ts";

/** A worker that is lost with a task this often is not given another. */
const MAX_LOST = 3;
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Attempts are 1, 2, …, each after a failure that allows it and its wait; deliveries likewise within an attempt. */
const attemptsContiguous: Invariant = {
  id: "I13",
  name: "attempts contiguous",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null) return;
    if (event.kind === "taskDispatched") dispatchFollows(step, event, node, found);
    if (event.kind === "taskFailed") retryIsRight(step, event, node, found);
    if (event.kind !== "deliveryLost") return;
    if (!node.out || event.attempt !== node.attempt || event.delivery !== node.delivery) {
      found(
        `Delivery ${event.delivery} of attempt ${event.attempt} was lost, and it was not the one out`,
        placeOf(step),
      );
    } else if (!event.handedBack && node.lost + 1 >= MAX_LOST) {
      found(
        `A worker was lost with attempt ${event.attempt} the ${node.lost + 1}th time, and it goes on`,
        placeOf(step),
      );
    }
  },
};

function dispatchFollows(step: Step, event: TaskDispatched, node: NodeStory, found: Found): void {
  const { attempt, delivery } = event;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  if (step.story.dispatched.has(dispatchName(step.story.generation, event))) return; // I12 says so.
  if (!roundFollows(event, node, say)) return;
  const isNewRound = (event.round ?? 0) !== node.round;
  const before = isNewRound ? 0 : node.attempt;
  if (attempt === before) {
    if (delivery !== node.delivery + 1) say(`Delivery ${delivery} follows on delivery ${node.delivery}`);
    else if (node.again !== "delivery") say(`Delivery ${delivery} went out, and the one before was not lost`);
    return;
  }
  if (attempt !== before + 1) return say(`Attempt ${attempt} follows on attempt ${before}`);
  if (delivery !== 1) say(`Attempt ${attempt} begins with delivery ${delivery}`);
  const { max_attempts } = node.spec.retry;
  if (attempt > max_attempts) say(`Attempt ${attempt} was made, and ${max_attempts} are allowed`);
  if (before === 0) return;
  if (node.again !== "attempt") say(`Attempt ${attempt} was made, and no retry was due`);
  else if (event.atMs < node.retryAtMs!) say(`Attempt ${attempt} was made at ${event.atMs}, before ${node.retryAtMs}`);
}

/** Rounds are 1, 2, … of a node that repeats, and of no other. */
function roundFollows({ round, atMs }: TaskDispatched, node: NodeStory, say: (sentence: string) => void): boolean {
  const repeat = node.item === null ? node.spec.repeat : undefined;
  if (repeat === undefined) {
    if (round !== undefined) say(`Round ${round} of a node that does not repeat was dispatched`);
    return round === undefined;
  }
  if (round === node.round && round > 0) return true;
  const next = node.round + 1;
  if (round !== next) say(`Round ${round ?? "none"} was dispatched, and ${next} is next`);
  else if (node.round > 0 && node.again !== "round") say(`Round ${round} was dispatched before its time had come`);
  else if (node.roundAtMs !== null && atMs < node.roundAtMs)
    say(`Round ${round} began at ${atMs}, before ${node.roundAtMs}`);
  else if (next > repeat.max) say(`Round ${round} was dispatched, and ${repeat.max} are allowed`);
  return round === next;
}

function retryIsRight(step: Step, event: TaskFailedEvent, node: NodeStory, found: Found): void {
  const { retry } = node.spec;
  const { attempt, error, retryAtMs, atMs } = event;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  if (error.code === "POISON_TASK" && node.lost + 1 < MAX_LOST) {
    say(`It was given up as poison after ${node.lost + 1} lost deliveries; ${MAX_LOST} are needed`);
  }
  const mayRetry = error.retryable && attempt < retry.max_attempts;
  if (mayRetry && retryAtMs === null) say(`It was given up after attempt ${attempt} of ${retry.max_attempts}`);
  if (!mayRetry && retryAtMs !== null) say(`Attempt ${attempt} failed for good (${error.code}), and is to be repeated`);
  if (retryAtMs === null) return;
  const shortest = shortestBackoffMs(retry, attempt);
  const longest = Math.max(shortest * (1 + retry.jitter), MAX_RETRY_AFTER_MS);
  const waitMs = retryAtMs - atMs;
  // A millisecond for rounding.
  if (waitMs < shortest - 1 || waitMs > longest + 1) {
    say(`The wait after attempt ${attempt} is ${waitMs} ms; it must be ${shortest} to ${longest}`);
  }
}

/** An attempt has one result: of a dispatch that was made, while it counted. */
const resultOnce: Invariant = {
  id: "I14",
  name: "result once",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null) return; // I15 says so.
    if (event.kind !== "taskCompleted" && event.kind !== "taskFailed") return;
    const what = `${event.kind} for delivery ${event.delivery} of attempt ${event.attempt}`;
    if (event.attempt !== node.attempt) {
      found(`${what}, and attempt ${node.attempt} is the current one`, placeOf(step));
    } else if (node.status !== "queued" && node.status !== "running") {
      found(`${what}, which had ended before: the node is ${node.status}`, placeOf(step));
    } else if (event.kind === "taskFailed" && (event.delivery !== node.delivery || !node.out)) {
      found(`${what}, and only the delivery that is out may end its attempt (${node.delivery})`, placeOf(step));
    }
  },
};

export const NODE_EVENTS: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "taskDispatched",
  "taskStarted",
  "taskCompleted",
  "taskFailed",
  "deliveryLost",
  "retryDue",
  "nodeCompleted",
  "nodeFailed",
  "nodeSkipped",
  "nodeWaiting",
  "reviewDue",
  "reviewEscalated",
  "reviewChanged",
  "roundEnded",
  "roundDue",
  "mapOpened",
]);

/** What has ended stays as it ended. */
const terminalIsFinal: Invariant = {
  id: "I15",
  name: "terminal is final",
  before(step, found) {
    const { story, event, node } = step;
    if (event.kind === "executionEnded" && story.ended !== null) {
      found(`It ended ${event.status} after it had ended ${story.ended.status}`, placeOf(step));
    }
    // What an earlier generation has ended is C5's.
    const isOurs = node !== undefined && node.generation === story.generation;
    if (isOurs && node.end !== null && NODE_EVENTS.has(event.kind)) {
      found(`${event.kind}, after it was ${node.status}`, placeOf(step));
    }
  },
};

/** A result counts only for a dispatch in this journal that a worker really got. */
const tokenCounts: Invariant = {
  id: "I33",
  name: "token",
  before(step, found) {
    const { event, node } = step;
    if (event.kind === "resultIgnored") return wasRightlyIgnored(step, event.token, found);
    if (node === undefined || node.end !== null) return;
    if (event.kind !== "taskCompleted" && event.kind !== "taskFailed" && event.kind !== "deliveryLost") return;
    if (event.attempt !== node.attempt) return; // I14 says so.
    const token = node.tokens[event.delivery - 1];
    const what = `${event.kind} for delivery ${event.delivery} of attempt ${event.attempt}`;
    if (token === undefined) return found(`${what}, which was never dispatched`, placeOf(step));
    const byDeadline = event.kind === "taskFailed" && event.deadline !== undefined;
    if (byDeadline || event.kind === "deliveryLost") return;
    if (event.kind === "taskFailed" && event.error.code === "POISON_TASK") return;
    const delivered = step.evidence.tokens.get(token)?.delivered ?? [];
    if (delivered.some(({ order }) => order < step.commit.order)) return;
    found(`${what}, and no worker ever had the task ${token}`, placeOf(step));
  },
};

/** Only what counts no more may be thrown away. */
function wasRightlyIgnored(step: Step, token: string, found: Found): void {
  const { story } = step;
  if (story.ended !== null) return;
  const node = story.node(dispatchOf(token).instance);
  if (node === undefined || !node.out || node.tokens.at(-1) !== token) return;
  const place = { ...placeOf(step), node: node.instance };
  found(`A result of the task ${token} was ignored, and that was the one out`, place);
}

export const ATTEMPTS: readonly Invariant[] = [attemptsContiguous, resultOnce, terminalIsFinal, tokenCounts];
