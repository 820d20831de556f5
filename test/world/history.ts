import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import type { Message } from "../../src/core/message.ts";
import type { Json } from "../../src/json/json.ts";
import type { HistoryEntry, JournalEntry, Letter } from "../../src/simulator/history.ts";
import type { ReadNote } from "./client.ts";
import type { NotedCommit, Told } from "./notes.ts";

/** Longer than any deadline of a workflow, so that the two cannot be mixed up. */
export const RETENTION_DAYS = 30;
const REMOVAL_AFTER_MS: number = (RETENTION_DAYS - 1) * 86_400_000;

/** What is over is looked at once more, to be removed: no deadline is as far away, and the checker knows nothing of it. */
export function withoutRemoval(wakes: NotedCommit["wakes"], timeMs: number): NotedCommit["wakes"] {
  const isRemoval = (atMs: number | null): boolean => atMs !== null && atMs > timeMs + REMOVAL_AFTER_MS;
  return wakes.map((wake) => (isRemoval(wake.atMs) ? { ...wake, atMs: null } : wake));
}

/** A commit that took effect. */
export function commitEntry(at: number, owner: string, noted: NotedCommit): JournalEntry {
  const { fence, id, records, mail, deadLetters, replies, wakes, ...rest } = noted;
  const { partition, epoch, nonce, seq } = fence;
  return {
    log: "journal",
    kind: "commit",
    at,
    partition,
    epoch,
    nonce,
    seq,
    batch: id,
    owner,
    ...rest,
    wakes: withoutRemoval(wakes, noted.timeMs),
    records: records.map(({ entity, version, text }) => ({
      entity,
      version,
      events: JSON.parse(text) as ExecutionEvent[],
    })),
    mail: mail.map((text) => {
      const { to, by, id: name, body } = JSON.parse(text) as Message;
      return { to, from: by, id: name, body: body as unknown as Json };
    }),
    deadLetters: deadLetters.map(letterOf),
    replies: replies.map(({ process, request, text, answer }) => ({
      process,
      request,
      // One that has stayed in its process has no text.
      answer: (answer as Json | undefined) ?? (JSON.parse(text) as Json),
    })),
  };
}

type StoredLetter = { readonly id: string; readonly class: string; readonly entity: string; readonly text: string };

export function letterOf({ id, class: kind, entity, text }: StoredLetter): Letter {
  const { status = "open" } = JSON.parse(text) as { status?: string };
  return { id, class: kind, entity, status };
}

/** What a process told, for the checker. `owners` are engines by the nonces of their tenures. */
export function toldEntry(told: Told, owners: ReadonlyMap<string, string>): readonly HistoryEntry[] {
  const { at } = told;
  switch (told.kind) {
    case "engine":
    case "sent":
      return [];
    case "died":
      return [{ log: "nemesis", kind: "fault", at, fault: "kill", target: told.name }];
    case "acknowledged": {
      const { pid: _, outcome, ...entry } = told;
      if (outcome !== "committed" && outcome !== "alreadyApplied") return [];
      return [{ log: "journal", owner: owners.get(told.nonce) ?? "nobody", ...entry }];
    }
    case "handlerStart": {
      const { worker, token, config, inputs } = told;
      return [{ log: "worker", at, kind: "handlerStart", worker, token, config, inputs }];
    }
    case "handlerEnd": {
      const { worker, token, output, failed } = told;
      return [{ log: "worker", at, kind: "handlerEnd", worker, token, output, failed }];
    }
    case "delivered":
    case "settled": {
      const { pid: _, ...entry } = told;
      return [{ log: "worker", ...entry }];
    }
  }
}

/** All that the witnesses wrote down, in the order of the machine's clock. */
export function inOrder(entries: readonly (HistoryEntry | ReadNote)[]): readonly HistoryEntry[] {
  const sorted = entries.toSorted((one, other) => one.at - other.at);
  return sorted.map((entry): HistoryEntry => {
    if (!("sentAt" in entry)) return entry;
    const { sentAt, ...read } = entry;
    return { ...read, sentAfter: firstFrom(sorted, sentAt) };
  });
}

/** The first entry at this moment or later. */
function firstFrom(sorted: readonly { readonly at: number }[], moment: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.at < moment) low = middle + 1;
    else high = middle;
  }
  return low;
}
