import type { GenerationOpened } from "../../core/execution/events.ts";
import { type Commit, type Evidence, executionOf } from "./evidence.ts";
import { type Found, type Invariant, type Place, placeOf, type Step } from "./invariant.ts";
import { deadLetterClass } from "./reference-rules.ts";
import { isReopened } from "./story.ts";

/** The letters that the events of a commit speak of: each with the class, or the status, that it must have there. */
interface Expected {
  /** By id, with its class. */
  readonly written: Map<string, string>;
  readonly replayed: Set<string>;
  readonly discarded: Set<string>;
}

const EXPECTED = new WeakMap<Commit, Expected>();

function expectedIn(commit: Commit): Expected {
  let expected = EXPECTED.get(commit);
  if (expected === undefined) {
    EXPECTED.set(commit, (expected = { written: new Map(), replayed: new Set(), discarded: new Set() }));
  }
  return expected;
}

/** Each failure by a node's own fault leaves one dead letter, if its policy wants one; none gets lost. */
const dlqExact: Invariant = {
  id: "I35",
  name: "DLQ exact",
  before(step, found) {
    const { event, commit } = step;
    if (event.kind === "nodeFailed" || (event.kind === "taskFailed" && event.retryAtMs === null)) failed(step, found);
    if (event.kind === "letterDiscarded") expectedIn(commit).discarded.add(event.letter);
    if (event.kind === "generationOpened") replayed(step, event, found);
  },
  world(evidence, _stories, found) {
    const status = new Map<string, string>();
    const places = new Map<string, Place>();
    for (const commit of evidence.surviving) {
      const expected = expectedIn(commit);
      for (const { id, entity, status: said } of commit.entry.deadLetters) {
        const place = { execution: executionOf(entity), commit };
        places.set(id, place);
        // What the shell writes, of an entity it must leave alone or a message nobody can read, is its own.
        if (!id.startsWith(`${executionOf(entity)}:`)) {
          status.set(id, said);
          continue;
        }
        const isNew = expected.written.has(id);
        if (!isNew && !expected.replayed.has(id)) found(`The dead letter ${id} was written, and nothing failed`, place);
        if (isNew && status.has(id)) found(`The dead letter ${id} was written twice`, place);
        const wanted = isNew ? "open" : "replayed";
        if (said !== wanted) found(`The dead letter ${id} was written as ${said}, and it is ${wanted}`, place);
        status.set(id, said);
      }
      for (const id of commit.entry.discard) {
        if (!expected.discarded.has(id))
          found(`The dead letter ${id} was thrown away, and nobody had said so`, { commit });
        status.delete(id);
      }
      for (const id of expected.discarded) {
        if (status.has(id)) found(`The dead letter ${id} was to be thrown away, and is still there`, { commit });
      }
    }
    remain(evidence, status, places, found);
  },
};

function remain(
  { world }: Evidence,
  status: ReadonlyMap<string, string>,
  places: ReadonlyMap<string, Place>,
  found: Found,
): void {
  const remaining = new Map(world.remains.deadLetters.map((letter) => [letter.id, letter.status]));
  for (const [id, said] of status) {
    const kept = remaining.get(id);
    if (kept === undefined) found(`The dead letter ${id} is gone`, places.get(id));
    else if (kept !== said) found(`The dead letter ${id} is ${kept}, and the last commit about it says ${said}`);
    remaining.delete(id);
  }
  for (const id of remaining.keys()) found(`The store holds the dead letter ${id}, which no commit wrote`);
}

function failed(step: Step, found: Found): void {
  const { event, node, story, commit } = step;
  if (node === undefined || (event.kind !== "nodeFailed" && event.kind !== "taskFailed")) return;
  const id = `${story.id}:${story.generation}:${node.instance}`;
  // The items of a map have left letters of their own; those of a part of a large map are in the part.
  const isPart = node.item?.map.opened?.chunked === true;
  const isByItems = isPart && event.kind === "nodeFailed" && event.failures !== undefined;
  const isOfItems = isByItems || (event.error.code === "MAP_FAILED" && node.item === null);
  const expected = isOfItems ? null : deadLetterClass(node.spec.dlq, event.error.retryable);
  const letter = commit.entry.deadLetters.find((other) => other.id === id);
  // The same commit may go on to throw it away: then it is not even written.
  if (letter === undefined && expected !== null && commit.entry.discard.includes(id)) return;
  if (expected !== null) expectedIn(commit).written.set(id, expected);
  if ((letter?.class ?? null) === expected) return;
  const wanted = expected === null ? "none" : `one of class ${expected}`;
  const left = `a dead letter of class ${letter?.class ?? "none"}`;
  found(`It failed and left ${left}; its policy wants ${wanted}`, placeOf(step));
}

/**
 * A replay takes letters that are open, of this execution, and opens their nodes, but for those that were opened again
 * since; the letters are marked. Without any it goes on because a child was repaired.
 */
function replayed(step: Step, event: GenerationOpened, found: Found): void {
  const { story, commit } = step;
  const { letters = [], instances = [] } = event;
  if (event.letters !== undefined && (event.scope === "letters") !== letters.length > 0) {
    found(`It was opened again for ${event.scope}, with ${letters.length} dead letters`, placeOf(step));
  }
  const isOf = (id: string, instance: string): boolean => id.startsWith(`${story.id}:`) && id.endsWith(`:${instance}`);
  for (const instance of event.letters === undefined ? [] : instances) {
    const isMeant = letters.some((id) => isOf(id, instance) && !isReopened(story, id));
    if (!isMeant) found(`${instance} was opened for dead letters, and each of it was dealt with before`, placeOf(step));
  }
  for (const id of letters) {
    expectedIn(commit).replayed.add(id);
    const isOurs = instances.some((instance) => isOf(id, instance));
    if (!isOurs && !isReopened(story, id))
      found(`The dead letter ${id} was replayed, and its node is not opened again`, placeOf(step));
    if (story.replayed.has(id)) found(`The dead letter ${id} was replayed a second time`, placeOf(step));
    // The same commit may go on to throw it away.
    const { deadLetters, discard } = commit.entry;
    if (!discard.includes(id) && !deadLetters.some((letter) => letter.id === id))
      found(`The dead letter ${id} was replayed, and is not marked so`, placeOf(step));
  }
}

export const DEAD_LETTERS: readonly Invariant[] = [dlqExact];
