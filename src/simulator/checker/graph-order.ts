import { executionOf, isExecution, tokenOf } from "./evidence.ts";
import { type Invariant, placeOf, type Step } from "./invariant.ts";
import { conditionOf } from "./reference-condition.ts";
import type { Joined } from "./reference-rules.ts";

/** The events by which a node begins to run, or fails in trying. */
function isBeginning({ event, node }: Step): boolean {
  if (node === undefined || node.attempt > 0 || node.end !== null) return false;
  return event.kind === "taskDispatched" || event.kind === "nodeCompleted" || event.kind === "nodeFailed";
}

/** A node begins only when its join over the parents' ends says run. */
const parentsFirst: Invariant = {
  id: "I11",
  name: "parents first",
  before(step, found) {
    if (!isBeginning(step)) return;
    const { story, event, node } = step;
    const { joined } = node!;
    if (!story.isStarted) found(`${event.kind} before the execution was started`, placeOf(step));
    if (joined === "run") return;
    const { undecided, ok, void: harmless, bad } = node!.edges;
    const edges = `${ok} ok, ${harmless} void, ${bad} bad, ${undecided} undecided`;
    found(`${event.kind}, while its join ${node!.shape.spec.join} says ${joined} (${edges})`, placeOf(step));
  },
};

/** No dispatch is committed twice, and the tasks of a commit are those that its events dispatch. */
const dispatchOnce: Invariant = {
  id: "I12",
  name: "dispatch once",
  before(step, found) {
    const { story, event, commit } = step;
    if (event.kind !== "taskDispatched") return;
    const { node, attempt, delivery } = event;
    if (story.dispatched.has(`${node}:${attempt}:${delivery}`)) {
      found(`Delivery ${delivery} of attempt ${attempt} was dispatched a second time`, placeOf(step));
    }
    if (event.nonce !== commit.entry.nonce) {
      found(`It was dispatched under the nonce ${event.nonce} by a commit of ${commit.entry.nonce}`, placeOf(step));
    }
  },
  world({ surviving }, stories, found) {
    for (const commit of surviving) {
      const { tasks, records } = commit.entry;
      const left = new Map(tasks.map((task) => [task.token, task]));
      if (left.size < tasks.length) found("The commit puts the same task into a queue twice", { commit });
      for (const { entity, events } of records) {
        if (!isExecution(entity)) continue;
        const execution = executionOf(entity);
        for (const event of events) {
          if (event.kind !== "taskDispatched") continue;
          const token = tokenOf(event.nonce, execution, event.node, event.attempt, event.delivery);
          const task = left.get(token);
          const place = { execution, node: event.node, commit };
          if (task === undefined) found(`The dispatch ${token} has no task in its commit`, place);
          left.delete(token);
          const queue = stories.get(execution)?.node(event.node)?.shape.spec.queue;
          if (task !== undefined && queue !== undefined && task.queue !== queue) {
            found(`Its task went to queue ${task.queue} instead of ${queue}`, place);
          }
        }
      }
      for (const { token, entity } of left.values()) {
        found(`The commit holds the task ${token}, and no event of it dispatches that`, {
          execution: executionOf(entity),
          commit,
        });
      }
    }
  },
};

const SKIP_REASONS: Readonly<Record<Joined, readonly string[]>> = {
  wait: [],
  // The condition itself is judged by I17, a route by nobody yet.
  run: ["condition", "route"],
  skipCondition: ["condition"],
  skipUpstream: ["upstream_failed"],
};

/** A node is skipped only for a reason that its parents or its condition give, and only if it never ran. */
const skipHasCause: Invariant = {
  id: "I16",
  name: "skip has a cause",
  before(step, found) {
    const { story, event, node } = step;
    if (event.kind !== "nodeSkipped" || node === undefined || node.end !== null) return;
    if (node.attempt > 0) return found("It was skipped after it had been dispatched", placeOf(step));
    const { joined } = node;
    if (!SKIP_REASONS[joined].includes(event.reason)) {
      return found(`It was skipped for ${event.reason}, while its join says ${joined}`, placeOf(step));
    }
    if (joined !== "run") return;
    const { spec, parents } = node.shape;
    const byRouter = parents.some((edge) => story.nodes[edge.node]!.shape.spec.handler === "router");
    if (event.reason === "condition" && spec.condition === undefined) {
      found("It was skipped for a condition, and it has none", placeOf(step));
    }
    if (event.reason === "route" && !byRouter)
      found("It was skipped by a route, and no parent is a router", placeOf(step));
  },
};

/** A condition is taken as the reference evaluator takes it, on the outputs in the journal. */
const conditionReplay: Invariant = {
  id: "I17",
  name: "condition replay",
  before(step, found) {
    const { story, event, node, commit, evidence } = step;
    if (node === undefined || node.attempt > 0 || node.end !== null || node.joined !== "run") return;
    const isSkip = event.kind === "nodeSkipped" && event.reason === "condition";
    if (!isSkip && !isBeginning(step)) return;
    const seen = event.kind === "taskDispatched" ? event.seen : null;
    const verdict = conditionOf({ story, node, seen, commit, evidence });
    if (verdict === undefined || verdict === "unknown") return;
    const { condition, condition_on_error } = node.shape.spec;
    const expected = verdict === "error" && condition_on_error === "skip" ? "false" : verdict;
    const taken = takenBranch(step, isSkip);
    if (taken === undefined || taken === expected) return;
    found(`Its condition ${condition} is ${verdict}, and it was taken as ${taken} by ${event.kind}`, placeOf(step));
  },
};

function takenBranch({ event }: Step, isSkip: boolean): "true" | "false" | "error" | undefined {
  if (isSkip) return "false";
  if (event.kind !== "nodeFailed") return "true";
  // Out of the budget: nothing that this reference knows of.
  if (event.error.code === "EXPRESSION_BUDGET_EXCEEDED") return undefined;
  return event.error.code === "CONDITION_ERROR" ? "error" : "true";
}

/** Under fail_fast the first failure that nobody catches ends everything at once; no other failure does. */
const failurePolicy: Invariant = {
  id: "I25",
  name: "failure policy",
  before(step, found) {
    const { story, event } = step;
    const stopping = story.failed.find((node) => node.shape.spec.on_error === "fail_fast" && !node.shape.caught);
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
    const stopping = story.failed.find((node) => node.shape.spec.on_error === "fail_fast" && !node.shape.caught);
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
