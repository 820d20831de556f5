import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import type { Message } from "../../src/core/message.ts";
import { contentHash } from "../../src/json/hash.ts";
import type { Json } from "../../src/json/json.ts";
import type { HistoryEntry, JournalEntry, Letter, Remains, World } from "../../src/simulator/history.ts";
import type { ReadNote } from "./client.ts";
import type { Journals } from "./journals.ts";
import type { LedgerLine, NotedCommit, NotedTenure, Told } from "./notes.ts";
import { RETENTION_DAYS } from "./server.ts";
import type { StoreCopy } from "./store-copy.ts";
import type { Remainder } from "./world.ts";

const REMOVAL_AFTER_MS: number = (RETENTION_DAYS - 1) * 86_400_000;

/** Everything that a world has left behind. */
export interface Evidence {
  readonly remainder: Remainder;
  /** Of the end, before anything was removed. */
  readonly copy: StoreCopy;
  readonly journals: Journals;
  readonly log: readonly Told[];
  readonly ledger: readonly LedgerLine[];
}

/**
 * The history of real processes in the form in which the simulator's checker reads one: the commits and tenures from the
 * store itself, the rest from its witnesses, all in the order of the machine's clock.
 */
export function recordedWorld(seed: number, { remainder, copy, journals, log }: Evidence): World {
  const { healedAt, quietAt, people, lives } = remainder;
  const journal = journalOf(copy);
  const owners = new Map(journal.map(({ nonce, owner }) => [nonce, owner]));
  const killed = new Set(lives.flatMap(({ pid, killedAt }) => (killedAt === undefined ? [] : pid)));
  // Results wait for their commit in the memory of the process: of one that was killed, nobody knows which it had.
  const lasting = log.filter(({ pid, kind }) => kind !== "settled" || !killed.has(pid));
  const entries: (HistoryEntry | ReadNote)[] = [
    ...clockOf(remainder),
    ...journal,
    ...lasting.flatMap((told) => toldEntry(told, owners)),
    ...people.client.log,
    { log: "nemesis", kind: "healed", at: healedAt },
    { log: "nemesis", kind: "quiet", at: quietAt },
  ];
  entries.sort((one, other) => one.at - other.at);
  return {
    seed,
    definitions: journals.definitions,
    published: publishedIn(copy),
    history: entries.map((entry): HistoryEntry => {
      if (!("sentAt" in entry)) return entry;
      const { sentAt, ...read } = entry;
      return { ...read, sentAfter: entries.findIndex(({ at }) => at >= sentAt) };
    }),
    remains: remainsIn(copy, journals),
    liveness: true,
    lossy: false,
    volatileTasks: true,
    poisoned: [],
    secrets: {},
  };
}

/** Each process has its own. */
function clockOf({ bornAt, people, lives }: Remainder): readonly HistoryEntry[] {
  const offsetMs = Date.now() - people.client.now();
  return [
    { log: "nemesis", kind: "clock", at: bornAt, offsetMs },
    ...lives.map(({ startedAt, clockMs }): HistoryEntry => ({
      log: "nemesis",
      kind: "clock",
      at: startedAt,
      offsetMs: offsetMs + clockMs,
    })),
  ];
}

/** What is over is looked at once more, to be removed: no deadline is as far away, and the checker knows nothing of it. */
function withoutRemoval(wakes: NotedCommit["wakes"], timeMs: number): NotedCommit["wakes"] {
  const isRemoval = (atMs: number | null): boolean => atMs !== null && atMs > timeMs + REMOVAL_AFTER_MS;
  return wakes.map((wake) => (isRemoval(wake.atMs) ? { ...wake, atMs: null } : wake));
}

function publishedIn(copy: StoreCopy): Record<string, string[]> {
  const published: Record<string, string[]> = {};
  const rows = copy.rows<{ name: string; hash: string }>("select name, hash from published order by name, version");
  for (const { name, hash } of rows) (published[name] ??= []).push(hash);
  return published;
}

/** In the order in which they took effect: there is one writer. */
function journalOf(copy: StoreCopy): readonly JournalEntry[] {
  const rows = copy.rows<{ at: number; kind: string; text: string }>("select * from witness order by rowid");
  let owner = "";
  return rows.map(({ at, kind, text }): JournalEntry => {
    if (kind === "commit") return commitEntry(at, owner, JSON.parse(text) as NotedCommit);
    const tenure = JSON.parse(text) as NotedTenure;
    ({ owner } = tenure);
    return { log: "journal", kind: "acquired", at, partition: 0, ...tenure };
  });
}

function commitEntry(at: number, owner: string, noted: NotedCommit): JournalEntry {
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
    replies: replies.map(({ process, request, text }) => ({ process, request, answer: JSON.parse(text) as Json })),
  };
}

type Wake = NotedCommit["wakes"][number];
type StoredLetter = { readonly id: string; readonly class: string; readonly entity: string; readonly text: string };

function letterOf({ id, class: kind, entity, text }: StoredLetter): Letter {
  const { status = "open" } = JSON.parse(text) as { status?: string };
  return { id, class: kind, entity, status };
}

function toldEntry(told: Told, owners: ReadonlyMap<string, string>): readonly HistoryEntry[] {
  const { at } = told;
  switch (told.kind) {
    case "died":
      return [{ log: "nemesis", kind: "fault", at, fault: "kill", target: told.name }];
    case "acknowledged": {
      const { pid: _, outcome, ...entry } = told;
      if (outcome !== "committed" && outcome !== "alreadyApplied") return [];
      return [{ log: "journal", partition: 0, owner: owners.get(told.nonce) ?? "nobody", ...entry }];
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

function remainsIn(copy: StoreCopy, journals: Journals): Remains {
  return {
    // Queues live in the process; the last one has shown that they are empty.
    tasks: [],
    inbox: copy.rows("select id from mail").length,
    wakes: withoutRemoval(copy.rows<Wake>("select entity, at_ms as atMs from wakes"), Date.now()).flatMap(
      ({ entity, atMs }) => (atMs === null ? [] : entity),
    ),
    deadLetters: copy.rows<StoredLetter>("select * from dead_letters").map(letterOf),
    listed: copy.rows<{ list: string; id: string }>("select * from listings").map(({ list, id }) => `${list} ${id}`),
    headers: copy.rows<Remains["headers"][number]>("select * from headers"),
    folds: Array.from(journals.events.keys(), (id) => {
      const hashOf = (state = journals.fold(id)): string => contentHash(executionMachine.snapshot(state));
      return {
        entity: `execution/${id}`,
        whole: hashOf(),
        fromSnapshot: hashOf(journals.foldFromSnapshot(id)),
        again: hashOf(),
      };
    }),
  };
}
