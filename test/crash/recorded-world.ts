import type { HistoryEntry, JournalEntry, Remains, World } from "../../src/simulator/history.ts";
import type { Evidence } from "../world/checks.ts";
import { commitEntry, inOrder, letterOf, toldEntry, withoutRemoval } from "../world/history.ts";
import type { NotedCommit, NotedTenure } from "../world/notes.ts";
import type { StoreCopy } from "./store-copy.ts";
import type { Remainder } from "./world.ts";

/** Everything that a world has left behind. */
export interface CrashEvidence extends Evidence {
  readonly remainder: Remainder;
  /** Of the end, before anything was removed. */
  readonly copy: StoreCopy;
}

/**
 * The history of real processes in the form in which the simulator's checker reads one: the commits and tenures from the
 * store itself, the rest from its witnesses, all in the order of the machine's clock.
 */
export function recordedWorld(seed: number, { remainder, copy, journals, log }: CrashEvidence): World {
  const { healedAt, quietAt, people, lives } = remainder;
  const journal = journalOf(copy);
  const owners = new Map(journal.map(({ nonce, owner }) => [nonce, owner]));
  const killed = new Set(lives.flatMap(({ pid, killedAt }) => (killedAt === undefined ? [] : pid)));
  // Results wait for their commit in the memory of the process: of one that was killed, nobody knows which it had.
  const lasting = log.filter(({ pid, kind }) => kind !== "settled" || !killed.has(pid));
  return {
    seed,
    definitions: journals.definitions,
    published: publishedIn(copy),
    history: inOrder([
      ...clockOf(remainder),
      ...journal,
      ...lasting.flatMap((told) => toldEntry(told, owners)),
      // Who was still looking when people left saw how everything was removed.
      ...people.client.log.filter(({ at }) => at <= quietAt),
      { log: "nemesis", kind: "healed", at: healedAt },
      { log: "nemesis", kind: "quiet", at: quietAt },
    ]),
    remains: remainsIn(copy, journals.folds()),
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

type StoredLetter = Parameters<typeof letterOf>[0];
type Wake = NotedCommit["wakes"][number];

function remainsIn(copy: StoreCopy, folds: Remains["folds"]): Remains {
  return {
    // Queues live in the process; the last one has shown that they are empty.
    tasks: [],
    inbox: copy.rows("select id from mail").length,
    wakes: withoutRemoval(
      copy.rows<Wake>("select entity, wake_at_ms as atMs from entities where wake_at_ms is not null"),
      Date.now(),
    ).flatMap(({ entity, atMs }) => (atMs === null ? [] : entity)),
    deadLetters: copy.rows<StoredLetter>("select * from dead_letters").map(letterOf),
    listed: copy.rows<{ list: string; id: string }>("select * from listings").map(({ list, id }) => `${list} ${id}`),
    headers: copy.rows<Remains["headers"][number]>(
      "select entity, class, status, header_version as version from entities where class is not null",
    ),
    folds,
  };
}
