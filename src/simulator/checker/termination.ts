import type { ExecutionEnded, ExecutionEvent } from "../../core/execution/events.ts";
import type { Evidence } from "./evidence.ts";
import { type Found, type Invariant, placeOf, type Step } from "./invariant.ts";
import { naturalEnd } from "./reference-rules.ts";
import type { Story } from "./story.ts";

/** In a world that was left in peace, everything that was accepted has ended. */
const allTerminate: Invariant = {
  id: "I21",
  name: "all terminate",
  atEnd(story, evidence, found) {
    const { world, poisoned } = evidence;
    if (!world.liveness || story.accepted === null || story.ended !== null) return;
    if (story.isQuarantined && (poisoned.has(story.id) || lostItsDefinition(story, evidence))) return;
    const open = [...story.units()].filter((node) => node.end === null);
    const shown = open
      .slice(0, 5)
      .map((node) => `${node.instance} ${node.status}`)
      .join(", ");
    const how = story.isQuarantined ? "is in quarantine, though nothing in it was built to kill" : "never ended";
    found(`It was accepted and ${how}; open nodes: ${shown}`, { execution: story.id, commit: story.acceptedIn! });
  },
};

/**
 * The store went back behind the write of its definition, and it was accepted afterwards by an owner whose tenure the
 * store still knew: that one could not notice. Saying so, for all to see, is all that can be done then.
 */
function lostItsDefinition(story: Story, { clients, tenures, rollbacks }: Evidence): boolean {
  if (story.quarantineMessage !== "its definition is not in the store") return false;
  const accepted = story.acceptedIn!;
  const submitted = clients.get(story.id)?.submits[0]?.order ?? Infinity;
  const acquired = tenures.findLast(({ entry }) => entry.nonce === accepted.entry.nonce)?.order ?? Infinity;
  const before = rollbacks.filter(({ order }) => order < accepted.order);
  return before.some(({ order }) => order > acquired) && before.some(({ entry }) => entry.toOrder <= submitted);
}

/** The end is the one that the rules give. */
const verdictCorrect: Invariant = {
  id: "I22",
  name: "verdict correct",
  before(step, found) {
    const { story, event } = step;
    if (event.kind !== "executionEnded" || story.ended !== null || story.shape === null) return;
    blamesTheFirst(step, event, found);
    const expected = expectedEnd(step, event, found);
    if (expected !== undefined && expected !== event.status) {
      found(`It ended ${event.status} (${event.reason}), and by the rules it is ${expected}`, placeOf(step));
    }
  },
};

/** Its error is the first failure that nobody has handled. */
function blamesTheFirst(step: Step, { reason, error }: ExecutionEnded, found: Found): void {
  if (error?.node === undefined || (reason !== "done" && reason !== "fail_fast")) return;
  const first = step.story.failed.find((node) => !step.story.isHandled(node));
  if (first?.shape.id === error.node) return;
  found(`It is said to have failed by ${error.node}, and the first failure is ${first?.shape.id}`, placeOf(step));
}

function expectedEnd(step: Step, event: ExecutionEnded, found: Found): string | undefined {
  const { story } = step;
  switch (event.reason) {
    case "done": {
      if (story.openCount > 0) found(`It ended as done with ${story.openCount} open nodes`, placeOf(step));
      const unhandled = story.failed.filter((node) => !story.isHandled(node));
      return naturalEnd(unhandled.length, story.completedCount);
    }
    case "cancel":
      if (isTurnedAway(step, event)) return "failed";
      if (!isCancelled(step)) found("It ended by a cancel that nobody had asked for", placeOf(step));
      return "cancelled";
    case "fail_fast":
      return "failed";
    case "timeout":
      if (story.deadlineAtMs === null) found("It ended by its timeout, and it has none", placeOf(step));
      if (event.error?.code !== "WORKFLOW_TIMEOUT") found(`Its timeout is called ${event.error?.code}`, placeOf(step));
      return "failed";
    case "end":
      return undefined; // C6 judges it.
  }
}

/** There was no room among the executions of its workflow, and it was not to wait. */
function isTurnedAway({ story }: Step, { error }: ExecutionEnded): boolean {
  const mayBe = story.entry === "asked" && story.shape?.workflow.concurrency?.on_conflict === "reject";
  return mayBe && error?.code === "CONCURRENCY_LIMIT";
}

/** A cancel is decided by the commit that ends the execution; a child is cancelled by its parent's mail. */
function isCancelled({ story, commit }: Step): boolean {
  if (story.cancelledIn === commit) return true;
  const events = commit.entry.records.find(({ entity }) => entity === story.entity)?.events ?? [];
  // A child whose cancel was faster than its start is accepted and ended at once.
  const isNew = story.version === 1 && story.acceptedIn === commit && story.accepted?.parent !== undefined;
  return isNew || events.some((event) => event.kind === "commandApplied" && event.command === "cancel");
}

const AFTER_THE_END: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "resultIgnored",
  "lateResult",
  "commandApplied",
  "commandRefused",
  "quarantined",
  "parked",
  "released",
  "childrenCancelled",
  "gatesReturned",
  "parentCalled",
  "parentAnswered",
  "letterDiscarded",
  "generationOpened",
  // A second end is I15's.
  "executionEnded",
]);

/** After the end nothing more happens to it, though it may hear of things. */
const silenceAfterEnd: Invariant = {
  id: "I23",
  name: "silence after end",
  before(step, found) {
    const { story, event } = step;
    if (story.ended === null || AFTER_THE_END.has(event.kind)) return;
    found(`${event.kind}, after the execution had ended ${story.ended.status}`, placeOf(step));
  },
};

/** A cancel ends it in its commit, nothing goes out after it, and what was out is called back. */
const cancelStops: Invariant = {
  id: "I24",
  name: "cancel stops",
  before(step, found) {
    const { story, event } = step;
    if (story.cancelledIn === null) return;
    if (event.kind === "taskDispatched" || event.kind === "retryDue" || event.kind === "nodeWaiting") {
      found(`${event.kind}, after the execution was cancelled`, placeOf(step));
    }
  },
  committed(story, commit, _evidence, found) {
    if (story.cancelledIn === commit && story.ended === null) {
      found("It was cancelled, and did not end in that commit", { execution: story.id, commit });
    }
  },
  atEnd(story, { tokens, world }, found) {
    if (story.isQuarantined) return;
    for (const { token, commit } of story.calledBack) {
      if (tokens.get(token)?.revoked.some((order) => order >= commit.order)) continue;
      // A wake time that is still stored brings an owner that will do it; in a world at peace it has.
      if (!world.liveness && story.wakeAtMs !== null) continue;
      found(`It ended, and the task ${token} that was out was never called back`, { execution: story.id, commit });
    }
  },
};

export const TERMINATION: readonly Invariant[] = [allTerminate, verdictCorrect, silenceAfterEnd, cancelStops];
