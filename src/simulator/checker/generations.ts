import type { GenerationOpened, NodeCompleted } from "../../core/execution/events.ts";
import { NODE_EVENTS } from "./attempts.ts";
import { dispatchOf } from "./evidence.ts";
import { fallbackAt } from "./fallbacks.ts";
import { isBeginning } from "./graph-order.ts";
import { type Found, type Invariant, placeOf, readerOf, type Step } from "./invariant.ts";
import type { NodeStory } from "./node-story.ts";
import { givenTo } from "./reference-config.ts";
import { MISSING, UNKNOWN } from "./reference-path.ts";
import { sameJson } from "./same-json.ts";
import type { Json } from "../../json/json.ts";

/** A generation is opened once, of what is over, because somebody asked; and nothing runs again that it does not open. */
const generations: Invariant = {
  id: "C5-retry",
  name: "generations",
  before(step, found) {
    const { story, event, node } = step;
    if (event.kind === "generationOpened") return judgeOpening(step, event, found);
    if (node === undefined || node.generation === story.generation || !NODE_EVENTS.has(event.kind)) return;
    // Of a map that is opened again, the items are known once it is.
    if (node.item !== null && node.item.map.generation === story.generation && node.end === null) return;
    found(`${event.kind} in generation ${story.generation}, which keeps it as it was`, placeOf(step));
  },
};

function judgeOpening(step: Step, event: GenerationOpened, found: Found): void {
  const { story } = step;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  if (story.ended === null) return say(`Generation ${event.generation} was opened, and the one before is not over`);
  if (event.generation !== story.generation + 1) {
    say(`Generation ${event.generation} was opened after ${story.generation}`);
  }
  const isWhole = story.ended.status === "completed" && !hasFailedParts(step);
  if (event.scope === "failed" && isWhole) say("What failed was opened again, and nothing had");
  if (event.from !== undefined && story.shape !== null && !story.shape.indexOf.has(event.from)) {
    say(`It was opened again from ${event.from}, which is no node of it`);
  }
}

/** In a part of a large map items may have failed though the part completed. */
function hasFailedParts({ story }: Step): boolean {
  return (
    story.shape?.isPart === true && story.nodes.some((node) => node.items.some(({ status }) => status === "failed"))
  );
}

/** Work whose result came after the end of a generation is not done again in the next, if it is the same work. */
const lateResults: Invariant = {
  id: "C5-late",
  name: "late results",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null) return;
    if (event.kind === "nodeCompleted" && event.reason === "late_result") return wasSameWork(step, event, node, found);
    if (event.kind === "taskDispatched" && isBeginning(step)) wasNotDone(step, event.inputHash, node, found);
  },
  atEnd(story, { tokens, world }, found) {
    if (!world.liveness || world.lossy || story.isQuarantined || story.wasQuarantined) return;
    for (const { token, commit } of story.calledBack) {
      const facts = tokens.get(token);
      const isDone = facts?.settledAt !== null && facts?.ends.some(({ entry }) => !entry.failed);
      if (!isDone || story.heard.has(attemptOf(token))) continue;
      const { instance: node } = dispatchOf(token);
      found(`The result of ${token} came after the end, and was neither kept nor refused`, {
        execution: story.id,
        node,
        commit,
      });
    }
  },
};

/** A token without its owner and delivery: the attempt, of which one result counts. */
export function attemptOf(token: string): string {
  return token.split(":").slice(2, 5).join(":");
}

function wasSameWork(step: Step, event: NodeCompleted, node: NodeStory, found: Found): void {
  const { late } = node;
  if (late === null) return found("It was taken as done before, and no result had come late", placeOf(step));
  if (!sameJson(event.output as Json, late.output as Json)) {
    found("Its output is not the one that had come late", placeOf(step));
  }
  const given = givenTo(readerOf(step, node), fallbackAt(step));
  if (given === UNKNOWN || given === MISSING || given.inputHash === late.inputHash) return;
  found(`It was taken as done before, and its input is another now (${given.inputHash})`, placeOf(step));
}

function wasNotDone(step: Step, inputHash: string, { late, spec, item, shape }: NodeStory, found: Found): void {
  // A late round is one of several, and says nothing about the rest.
  if (late === null || late.inputHash !== inputHash || (spec.repeat !== undefined && item === null)) return;
  // Whoever brings another config wants it made anew, even if it comes to the same.
  if (step.story.openedBy?.config !== undefined && step.story.openedBy.from === shape.id) return;
  found("It was dispatched again, and its result had come after the end of its generation", placeOf(step));
}

export const GENERATIONS: readonly Invariant[] = [generations, lateResults];
