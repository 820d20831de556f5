import type { ClientEntry } from "../history.ts";
import { type Commit, type Evidence, executionOf, type Numbered } from "./evidence.ts";
import type { Found, Invariant } from "./invariant.ts";
import { journalFacts, type JournalFacts, type Moment } from "./journal-facts.ts";

type Read = Numbered<Extract<ClientEntry, { readonly kind: "read" }>>;

const TERMINAL: ReadonlySet<string> = new Set(["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"]);

/** Readers never see less than they were told, more than is committed, or anything older than before. */
const monotonicReads: Invariant = {
  id: "I40",
  name: "monotonic reads",
  world(evidence, _stories, found) {
    const facts = journalFacts(evidence);
    const last = new Map<string, Read>();
    for (const read of evidence.reads) {
      const execution = executionOf(read.entry.execution);
      wasCommitted(read, execution, facts.moments.get(execution) ?? [], found);
      knowsWhatWasAnswered(read, execution, evidence, facts, found);
      const name = `${read.entry.reader} ${execution}`;
      const before = last.get(name);
      if (before !== undefined) goesForward(before, read, execution, evidence, found);
      last.set(name, read);
    }
  },
};

function wasCommitted({ entry, order }: Read, execution: string, moments: readonly Moment[], found: Found): void {
  if (!entry.found) return;
  const { reader, version, status, sentAfter } = entry;
  // What was lost may have been read before it was, and be heard of afterwards.
  const moment = moments.find(
    ({ commit, ...seen }) =>
      seen.version === version && commit.order < order && (commit.voidedAt === null || commit.voidedAt >= sentAfter),
  );
  if (moment === undefined) return found(`${reader} read version ${version}, which no commit had made`, { execution });
  const isRight = moment.ended === null ? !TERMINAL.has(status) : status.toUpperCase() === moment.ended;
  const { commit } = moment;
  if (!isRight)
    found(`${reader} read ${status} at version ${version}; it was ${moment.ended ?? "open"}`, { execution, commit });
}

/** A 2xx is sent after the commit, and a read that starts after it sees at least that commit. */
function knowsWhatWasAnswered(
  read: Read,
  execution: string,
  evidence: Evidence,
  facts: JournalFacts,
  found: Found,
): void {
  const { sentAfter, found: isFound, version, reader } = read.entry;
  const client = evidence.clients.get(execution);
  if (client === undefined) return;
  const isThere = ({ order, voidedAt }: Commit): boolean =>
    order < sentAfter && (voidedAt === null || voidedAt > read.order);
  const accepted = client.submitted.find(({ entry, order }) => entry.outcome === "ok" && order < sentAfter);
  const commits = facts.acceptances.get(execution) ?? [];
  if (accepted !== undefined && !isFound && commits.some(({ commit }) => isThere(commit))) {
    found(`${reader} did not find it, and its client had been told ok before`, { execution });
  }
  for (const { entry, order } of client.answers) {
    if (entry.outcome !== "ok" || order >= sentAfter) continue;
    const command = facts.commands.get(entry.request)?.find(({ commit }) => isThere(commit));
    if (command === undefined || version >= command.version) continue;
    const what = `the ${entry.command} that made ${command.version}`;
    found(`${reader} read version ${version}, and ${what} had been answered`, { execution });
  }
}

function goesForward(before: Read, read: Read, execution: string, { rollbacks }: Evidence, found: Found): void {
  const { reader, version, found: isFound, sentAfter } = read.entry;
  // Two reads at the same time may overtake each other, and a store that went back takes its readers along.
  if (before.order >= sentAfter) return;
  if (rollbacks.some(({ order }) => order > before.entry.sentAfter && order < read.order)) return;
  if (before.entry.found && !isFound) found(`${reader} did not find it, and had found it before`, { execution });
  else if (version < before.entry.version) {
    found(`${reader} read version ${version} after version ${before.entry.version}`, { execution });
  }
}

/** Nobody is told of anything before the commit that makes it true. */
const answerAfterCommit: Invariant = {
  id: "M2",
  name: "answer after commit",
  world(evidence, _stories, found) {
    const facts = journalFacts(evidence);
    for (const [execution, { submitted, answers }] of evidence.clients) {
      for (const { entry, order } of submitted) {
        if (entry.outcome !== "ok") continue;
        const commits = (facts.acceptances.get(execution) ?? []).map(({ commit }) => commit);
        const isEarly = commits.length > 0 && commits.every((commit) => commit.order > order);
        if (isEarly) found("Its client was told ok before it was accepted", { execution, commit: commits[0]! });
      }
      for (const { entry, order } of answers) {
        if (entry.outcome !== "ok") continue;
        const commits = (facts.commands.get(entry.request) ?? []).map(({ commit }) => commit);
        const isEarly = commits.length > 0 && commits.every((commit) => commit.order > order);
        const what = `The ${entry.command} ${entry.request}`;
        if (isEarly) found(`${what} was answered before it was committed`, { execution, commit: commits[0]! });
      }
    }
  },
};

export const READS: readonly Invariant[] = [monotonicReads, answerAfterCommit];
