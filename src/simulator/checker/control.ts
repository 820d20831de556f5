import type { ExecutionEnded, RoundEnded } from "../../core/execution/events.ts";
import { shorten } from "./data.ts";
import { isBeginning } from "./graph-order.ts";
import { type Found, type Invariant, placeOf, readerOf, type Step } from "./invariant.ts";
import type { NodeStory } from "./node-story.ts";
import { chosenBy, fieldOf } from "./reference-nodes.ts";
import { verdictOf } from "./reference-condition.ts";
import { MISSING, UNKNOWN } from "./reference-path.ts";
import { sameValue } from "./same-json.ts";

/** A router chooses what its conditions say, and what it has not chosen does not run. */
const routers: Invariant = {
  id: "C6-router",
  name: "routers",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null) return;
    if (isBeginning(step) && node.joined === "skipRoute") {
      found(`${event.kind}, and a router that comes before it has chosen others`, placeOf(step));
    }
    if (node.spec.handler !== "router" || node.item !== null) return;
    if (event.kind !== "nodeCompleted" && event.kind !== "nodeFailed") return;
    const chosen = chosenBy(readerOf(step, node));
    if (chosen === UNKNOWN) return;
    if (event.kind === "nodeFailed") {
      if (event.error.code !== "CONDITION_ERROR" || node.spec.condition !== undefined) return;
      if (chosen !== "error") found(`It failed, and its routes choose ${chosen.join(", ")}`, placeOf(step));
      return;
    }
    if (chosen === "error") found("It chose, and one of its conditions cannot be evaluated", placeOf(step));
    else if (!sameValue(event.output, { chosen: [...chosen] })) {
      found(`It chose otherwise than ${shorten([...chosen])}`, placeOf(step));
    }
  },
};

/** An `end` node ends the execution in its own commit, as it says. */
const ends: Invariant = {
  id: "C6-end",
  name: "ends",
  before(step, found) {
    const { event, story, commit } = step;
    if (event.kind !== "executionEnded" || event.reason !== "end" || story.ended !== null) return;
    const node = story.nodes.find(
      ({ spec, endedIn, status }) => spec.handler === "end" && endedIn === commit && status === "completed",
    );
    if (node === undefined)
      return found("It was ended by a node, and none such was done in that commit", placeOf(step));
    isEndedAsSaid(step, event, node, found);
  },
  committed(story, commit, _evidence, found) {
    if (story.ended !== null || story.isQuarantined) return;
    for (const { spec, endedIn, status, instance } of story.nodes) {
      if (spec.handler !== "end" || endedIn !== commit || status !== "completed") continue;
      found("It ends the execution, which goes on", { execution: story.id, node: instance, commit });
    }
  },
};

function isEndedAsSaid(step: Step, event: ExecutionEnded, node: NodeStory, found: Found): void {
  const place = { ...placeOf(step), node: node.instance };
  const status = node.spec.config["status"] === "FAILED" ? "failed" : "completed";
  if (event.status !== status) found(`It ends the execution ${status}, which ended ${event.status}`, place);
  const output = fieldOf("output", { ...readerOf(step, node), seen: (node.endedVersion ?? 1) - 1 });
  if (output === UNKNOWN || output === MISSING) return;
  const given = status === "completed" ? output : undefined;
  const isRight =
    event.output === undefined ? given === undefined : given !== undefined && sameValue(event.output, given);
  if (!isRight)
    found(`The execution's output is not what it says: ${given === undefined ? "none" : shorten(given)}`, place);
}

/** While an execution is paused nothing begins. What was under way goes on. */
const pauses: Invariant = {
  id: "C5-pause",
  name: "pauses",
  before(step, found) {
    const { event, story } = step;
    if (!story.isPaused) return;
    if (event.kind === "taskDispatched" || isBeginning(step)) found(`${event.kind}, while it is paused`, placeOf(step));
  },
};

/** A node repeats until its own output says enough, after the time it names, and no more often than it may. */
const repeats: Invariant = {
  id: "C6-repeat",
  name: "repeats",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null || node.spec.repeat === undefined || node.item !== null) return;
    if (event.kind === "roundEnded") return judgeRound(step, event, node, found);
    if (event.kind !== "nodeFailed" || !node.unjudged) return;
    const verdict = untilOf(step, node);
    if (event.error.code === "CONDITION_ERROR" && verdict !== "error" && verdict !== "unknown") {
      found(`Its round could not be judged, and ${node.spec.repeat.until} is ${verdict}`, placeOf(step));
    }
    if (event.error.code !== "REPEAT_EXHAUSTED") return;
    if (node.round < node.spec.repeat.max || verdict === "true") {
      const rounds = `${node.round} of ${node.spec.repeat.max} rounds`;
      found(`It was given up after ${rounds}, and its last output says ${verdict}`, placeOf(step));
    }
  },
};

function judgeRound(step: Step, event: RoundEnded, node: NodeStory, found: Found): void {
  const { until, every_seconds: everySeconds, max } = node.spec.repeat!;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  if (!node.unjudged || event.round !== node.round) {
    return say(`Round ${event.round} was judged, and round ${node.round} is ${node.unjudged ? "to be" : "not to be"}`);
  }
  const verdict = untilOf(step, node);
  const isEnough = event.nextAtMs === null;
  if (verdict !== "unknown" && isEnough !== (verdict === "true")) {
    say(`Round ${event.round} was taken as ${isEnough ? "the last" : "not the last"}, and ${until} is ${verdict}`);
  }
  if (event.nextAtMs === null) return;
  if (event.round >= max) say(`Another round was promised after ${event.round} of ${max}`);
  if (event.nextAtMs !== event.atMs + everySeconds * 1000) {
    say(`The next round is at ${event.nextAtMs}, and ${everySeconds} s after ${event.atMs} are due`);
  }
}

function untilOf(step: Step, node: NodeStory): ReturnType<typeof verdictOf> {
  return verdictOf(node.spec.repeat!.until, { ...readerOf(step, node), afterwards: true });
}

export const CONTROL: readonly Invariant[] = [routers, ends, pauses, repeats];
