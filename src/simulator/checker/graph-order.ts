import type { ExecutionEvent } from "../../core/execution/events.ts";
import { type Commit, executionOf, tokenOf } from "./evidence.ts";
import { type Invariant, placeOf, type Step } from "./invariant.ts";
import { conditionOf } from "./reference-condition.ts";
import type { Joined } from "./reference-rules.ts";
import type { NodeStory } from "./node-story.ts";
import { dispatchName, hasBegun, type Story } from "./story.ts";

/** The events by which a node begins to run, or fails in trying. */
export function isBeginning({ event, node, story }: Step): boolean {
  if (node === undefined || node.generation !== story.generation || hasBegun(node)) return false;
  // That its join did not come about in time is no beginning.
  if (event.kind === "nodeFailed") return event.error.code !== "JOIN_TIMEOUT";
  return BEGINNINGS.has(event.kind);
}

const BEGINNINGS: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "taskDispatched",
  "nodeCompleted",
  "nodeWaiting",
  "mapOpened",
]);

/** A node begins only when its join over the parents' ends says run. */
const parentsFirst: Invariant = {
  id: "I11",
  name: "parents first",
  before(step, found) {
    if (!isBeginning(step)) return;
    const { story, event, node } = step;
    const { joined } = node!;
    if (!story.isStarted) found(`${event.kind} before the execution was started`, placeOf(step));
    // What a router has not chosen is C6's.
    if (joined === "run" || joined === "skipRoute") return;
    const { undecided, ok, void: harmless, bad } = node!.edges;
    const edges = `${ok} ok, ${harmless} void, ${bad} bad, ${undecided} undecided`;
    found(`${event.kind}, while its join ${node!.spec.join} says ${joined} (${edges})`, placeOf(step));
  },
};

/** The dispatches of each commit, by token, with the queues they belong to. */
const DISPATCHES = new WeakMap<Commit, Map<string, string>>();

/** No dispatch is committed twice, and the tasks of a commit are those that its events dispatch. */
const dispatchOnce: Invariant = {
  id: "I12",
  name: "dispatch once",
  before(step, found) {
    const { story, event, commit } = step;
    if (event.kind !== "taskDispatched") return;
    const { attempt, delivery } = event;
    if (story.dispatched.has(dispatchName(story.generation, event))) {
      found(`Delivery ${delivery} of attempt ${attempt} was dispatched a second time`, placeOf(step));
    }
    if (event.nonce !== commit.entry.nonce) {
      found(`It was dispatched under the nonce ${event.nonce} by a commit of ${commit.entry.nonce}`, placeOf(step));
    }
    const token = tokenOf(event, story.id, story.generation);
    const queue = step.node?.spec.queue;
    const task = commit.entry.tasks.find((other) => other.token === token);
    if (task === undefined) found(`The dispatch ${token} has no task in its commit`, placeOf(step));
    else if (queue !== undefined && task.queue !== queue) {
      found(`Its task went to queue ${task.queue} instead of ${queue}`, placeOf(step));
    }
    const dispatches = DISPATCHES.get(commit) ?? new Map<string, string>();
    DISPATCHES.set(commit, dispatches.set(token, event.node));
  },
  world({ surviving }, _stories, found) {
    for (const commit of surviving) {
      const { tasks } = commit.entry;
      if (new Set(tasks.map(({ token }) => token)).size < tasks.length) {
        found("The commit puts the same task into a queue twice", { commit });
      }
      for (const { token, entity } of tasks) {
        if (DISPATCHES.get(commit)?.has(token)) continue;
        const place = { execution: executionOf(entity), commit };
        found(`The commit holds the task ${token}, and no event of it dispatches that`, place);
      }
    }
  },
};

const SKIP_REASONS: Readonly<Record<Joined, readonly string[]>> = {
  wait: [],
  // The condition itself is judged by I17.
  run: ["condition"],
  skipCondition: ["condition"],
  skipUpstream: ["upstream_failed"],
  skipRoute: ["route"],
};

/** A node is skipped only for a reason that its parents or its condition give, and only if it never ran. */
const skipHasCause: Invariant = {
  id: "I16",
  name: "skip has a cause",
  before(step, found) {
    const { event, node } = step;
    if (event.kind !== "nodeSkipped" || node === undefined || node.end !== null) return;
    if (hasBegun(node)) return found("It was skipped after it had begun", placeOf(step));
    const { joined, routedAway } = node;
    // A router may have spoken after its join had: both are causes.
    if (event.reason === "route" && routedAway) return;
    if (!SKIP_REASONS[joined].includes(event.reason)) {
      return found(`It was skipped for ${event.reason}, while its join says ${joined}`, placeOf(step));
    }
    if (joined === "run" && node.spec.condition === undefined) {
      found("It was skipped for a condition, and it has none", placeOf(step));
    }
  },
};

/** A condition is taken as the reference evaluator takes it, on the outputs in the journal. */
const conditionReplay: Invariant = {
  id: "I17",
  name: "condition replay",
  before(step, found) {
    const { story, event, node, commit, evidence } = step;
    if (node === undefined || hasBegun(node) || node.joined !== "run" || node.item !== null) return;
    const isSkip = event.kind === "nodeSkipped" && event.reason === "condition";
    if (!isSkip && !isBeginning(step)) return;
    const seen = event.kind === "taskDispatched" || event.kind === "mapOpened" ? event.seen : null;
    const verdict = conditionOf({ story, node, seen, commit, evidence });
    if (verdict === undefined || verdict === "unknown") return;
    const { condition, condition_on_error } = node.spec;
    const expected = verdict === "error" && condition_on_error === "skip" ? "false" : verdict;
    const taken = takenBranch(step, isSkip);
    if (taken === undefined || taken === expected) return;
    found(`Its condition ${condition} is ${verdict}, and it was taken as ${taken} by ${event.kind}`, placeOf(step));
  },
};

function takenBranch({ event, node }: Step, isSkip: boolean): "true" | "false" | "error" | undefined {
  if (isSkip) return "false";
  if (event.kind !== "nodeFailed") return "true";
  // Out of the budget: nothing that this reference knows of. A router has conditions of its own.
  if (event.error.code === "EXPRESSION_BUDGET_EXCEEDED" || node!.spec.handler === "router") return undefined;
  return event.error.code === "CONDITION_ERROR" ? "error" : "true";
}

/** The failure of this generation that stops everything: under fail_fast, and nobody catches it. */
function stoppingOf({ failed, generation }: Story): NodeStory | undefined {
  return failed.find(
    (node) => node.generation === generation && node.spec.on_error === "fail_fast" && !node.shape.caught,
  );
}

/** Under fail_fast the first failure that nobody catches ends everything at once; no other failure does. */
const failurePolicy: Invariant = {
  id: "I25",
  name: "failure policy",
  before(step, found) {
    const { story, event } = step;
    const stopping = stoppingOf(story);
    if (event.kind === "taskDispatched" && stopping !== undefined) {
      found(`It was dispatched after ${stopping.shape.id} had failed under fail_fast`, placeOf(step));
    }
    if (
      event.kind === "executionEnded" &&
      event.reason === "fail_fast" &&
      stopping === undefined &&
      story.shape !== null
    ) {
      found("It ended by fail_fast, and no node has failed that nobody catches under that policy", placeOf(step));
    }
  },
  committed(story, commit, _evidence, found) {
    if (story.ended !== null || story.isQuarantined) return;
    const stopping = stoppingOf(story);
    if (stopping === undefined || stopping.endedIn !== commit) return;
    const place = { execution: story.id, node: stopping.shape.id, commit };
    found("It failed under fail_fast, nobody catches it, and the execution did not end in that commit", place);
  },
};

export const GRAPH_ORDER: readonly Invariant[] = [
  parentsFirst,
  dispatchOnce,
  skipHasCause,
  conditionReplay,
  failurePolicy,
];
