import type { Accepted } from "../../core/execution/events.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import { type Commit, type Evidence, isExecution } from "./evidence.ts";
import { type Found, type Invariant, placeOf } from "./invariant.ts";
import { journalFacts } from "./journal-facts.ts";
import { sameJson, sameValue } from "./same-json.ts";

/** Whoever was told "ok" has an execution, with the body that was sent. */
const noAcceptLost: Invariant = {
  id: "I7",
  name: "no accept lost",
  world(evidence, _stories, found) {
    const acceptances = journalFacts(evidence).acceptances;
    for (const [execution, { submitted }] of evidence.clients) {
      for (const { entry } of submitted) {
        if (entry.outcome !== "ok") continue;
        const all = acceptances.get(execution) ?? [];
        const kept = all.filter(({ commit }) => commit.voidedAt === null);
        const matching = (evidence.world.lossy ? all : kept).filter(({ event }) => event.bodyHash === entry.bodyHash);
        if (matching.length > 0) continue;
        const why = kept.length === 0 ? "the journal has no accepted" : "the journal accepted another body";
        found(`A client was told ok, and ${why}`, { execution });
      }
    }
  },
};

/** An execution is accepted once, and because somebody asked for it. */
const acceptOnce: Invariant = {
  id: "I8",
  name: "accept once",
  world(evidence, _stories, found) {
    for (const [execution, list] of journalFacts(evidence).acceptances) {
      const kept = list.filter(({ commit }) => commit.voidedAt === null);
      if (kept.length > 1) found(`It was accepted ${kept.length} times`, { execution, commit: kept[1]!.commit });
      for (const { event, commit } of kept) wasAsked(event, commit, execution, evidence, found);
    }
  },
};

/** A child is accepted because its parent called it: by a start, or by a cancel that was faster than its start. */
function wasCalled(event: Accepted, commit: Commit, execution: string, evidence: Evidence, found: Found): void {
  const mails = evidence.mail.get(`execution/${execution}`) ?? [];
  const calls = mails.flatMap(({ from, body, commit: sent }) => {
    const isThere = sent.order < commit.order && (sent.voidedAt === null || sent.voidedAt > commit.order);
    const start = body.kind === "start" ? body : body.kind === "cancel" ? body["start"] : undefined;
    return isThere && from === event.parent!.entity && isJsonObject(start) ? [start] : [];
  });
  const { definition, bodyHash, input, parent } = event;
  const isRight = calls.some(
    (start) =>
      start["definition"] === definition &&
      start["bodyHash"] === bodyHash &&
      sameJson(start["input"]!, input as unknown as Json) &&
      sameJson(start["parent"]!, parent as unknown as Json),
  );
  if (!isRight) found(`It was accepted, and ${parent!.entity} had not called it like that`, { execution, commit });
}

function wasAsked(event: Accepted, commit: Commit, execution: string, evidence: Evidence, found: Found): void {
  if (event.parent !== undefined && isExecution(event.parent.entity)) {
    return wasCalled(event, commit, execution, evidence, found);
  }
  const { definitions } = evidence.world;
  const submits = evidence.clients.get(execution)?.submits ?? [];
  const same = submits.find(({ entry, order }) => order < commit.order && entry.bodyHash === event.bodyHash);
  if (same === undefined) return found("It was accepted, and nobody had submitted that body", { execution, commit });
  const asked = same.entry;
  if (!sameValue(event.input, asked.input))
    found("It was accepted with another input than was submitted", { execution, commit });
  if (asked.definition !== event.definition && Object.hasOwn(definitions, asked.definition)) {
    found(`It was accepted with definition ${event.definition}, and ${asked.definition} was submitted`, {
      execution,
      commit,
    });
  }
}

/** Whoever was definitely refused has caused nothing. */
const honestErrors: Invariant = {
  id: "I9",
  name: "honest errors",
  world(evidence, _stories, found) {
    const acceptances = journalFacts(evidence).acceptances;
    for (const [execution, { submits, submitted }] of evidence.clients) {
      // A message that kills is kept and answered with a refusal, also if it is the second copy of one that was taken.
      if (evidence.poisoned.has(execution)) continue;
      // The answer was about an acceptance that the store then forgot; a copy of the message made another.
      if (acceptances.get(execution)?.some(({ commit }) => commit.voidedAt !== null) === true) continue;
      for (const { event, commit } of acceptances.get(execution) ?? []) {
        if (commit.voidedAt !== null) continue;
        const asked = submits.filter(({ entry }) => entry.bodyHash === event.bodyHash).length;
        const answers = submitted.filter(({ entry }) => entry.bodyHash === event.bodyHash);
        const refused = answers.filter(({ entry }) => entry.outcome === "refused" || entry.outcome === "overloaded");
        if (asked === 0 || refused.length < asked) continue;
        // The definition was forgotten with the store, and brought back by an owner who knew it before a copy came.
        const isForgotten = evidence.rollbacks.some(({ order }) => order < commit.order);
        if (isForgotten && refused.some(({ entry }) => entry.code === "NOT_FOUND")) continue;
        const codes = refused.map(({ entry }) => entry.code ?? entry.outcome).join(", ");
        found(`Everybody who submitted it was refused (${codes}), and it was accepted`, { execution, commit });
      }
    }
  },
};

/** All events of an execution are about nodes of the definition it was accepted with. */
const pinnedDefinition: Invariant = {
  id: "I10",
  name: "pinned definition",
  before(step, found) {
    const { story, event, evidence, node } = step;
    if (event.kind === "accepted") {
      const isKnown = Object.hasOwn(evidence.world.definitions, event.definition);
      if (!isKnown) found(`It was accepted with definition ${event.definition}, which nobody knows`, placeOf(step));
      return;
    }
    if (story.accepted === null) {
      if (story.version === 0) found(`Its journal begins with ${event.kind}`, placeOf(step));
      return;
    }
    if ("node" in event && story.shape !== null && node === undefined) {
      found(`${event.kind} is about a node that its definition does not have`, placeOf(step));
    }
  },
};

export const ACCEPTANCE: readonly Invariant[] = [noAcceptLost, acceptOnce, honestErrors, pinnedDefinition];
