import type { HistoryEntry, JournalEntry, World } from "../../src/simulator/history.ts";
import { commitEntry, inOrder, toldEntry } from "../world/history.ts";
import type { ReadNote } from "../world/client.ts";
import type { NotedCommit, Told } from "../world/notes.ts";
import { now } from "./now.ts";
import type { Noted } from "./stores.ts";
import { heardOfSurvivors, type Survivors, survivorsOf, toldOfSurvivors } from "./survivors.ts";
import type { Remainder } from "./world.ts";

/** Less than anything stays in a store behind which there is an archive. */
const SOON_MS = 60_000;

/**
 * The history of a fleet in the form in which the simulator's checker reads one. That a commit took effect, and when, the
 * store has noted in the same step; what was in it, its sender had written down before.
 */
export function recordedWorld(seed: number, remainder: Remainder, log: readonly Told[]): Recorded {
  const { loss, people } = remainder;
  const offsetMs = calendarOffsetMs();
  const journal = journalOf(remainder.noted, log, offsetMs);
  const { log: heard } = people.client;
  if (loss === undefined) return { world: worldOf(seed, remainder, offsetMs, { journal, log, heard }) };
  const before = journalOf(loss.noted, log, offsetMs);
  const survivors = survivorsOf(before, journal, loss.archived);
  const evidence = {
    journal: survivors.journal,
    log: toldOfSurvivors(log, survivors),
    heard: [...heardOfSurvivors(loss.first.client.log, survivors, loss.archived), ...heard],
  };
  const world = { ...worldOf(seed, remainder, offsetMs, evidence), lossy: true };
  return { world, lives: { survivors, tenures: [tenuresIn(before), tenuresIn(journal)] } };
}

/** The two lives of a store that was lost. */
export interface Lives {
  readonly survivors: Survivors;
  readonly tenures: readonly [before: readonly Tenure[], after: readonly Tenure[]];
}

interface Recorded {
  readonly world: World;
  readonly lives?: Lives;
}

type Tenure = Extract<JournalEntry, { readonly kind: "acquired" }>;

function tenuresIn(journal: readonly JournalEntry[]): readonly Tenure[] {
  return journal.filter((entry) => entry.kind === "acquired");
}

interface Witnessed {
  readonly journal: readonly JournalEntry[];
  readonly log: readonly Told[];
  readonly heard: readonly (HistoryEntry | ReadNote)[];
}

function worldOf(seed: number, remainder: Remainder, offsetMs: number, witnessed: Witnessed): World {
  const { found, bornAt, healedAt, quietAt, blows } = remainder;
  const { log, heard } = witnessed;
  const journal = remainder.hasArchive ? withoutLeaving(witnessed.journal) : witnessed.journal;
  const owners = new Map(journal.map(({ nonce, owner }) => [nonce, owner]));
  return {
    seed,
    definitions: found.journals.definitions,
    published: found.published,
    history: inOrder([
      { log: "nemesis", kind: "clock", at: bornAt, offsetMs },
      ...journal,
      ...log.flatMap((told) => toldEntry(told, owners)),
      ...heard,
      ...blows.map(({ at, kind, target }): HistoryEntry => ({
        log: "nemesis",
        kind: "fault",
        at,
        fault: kind,
        target,
      })),
      ...strainOn(log, bornAt),
      { log: "nemesis", kind: "healed", at: healedAt },
      { log: "nemesis", kind: "quiet", at: quietAt },
    ]),
    remains: remainder.hasArchive ? { ...found.remains, wakes: openOnes(found) } : found.remains,
    liveness: true,
    lossy: false,
    volatileTasks: false,
    poisoned: [],
    secrets: {},
  };
}

/** How far the calendar is ahead of the clock that processes share. Both are slewed alike. */
function calendarOffsetMs(): number {
  let least = Infinity;
  for (let i = 0; i < 20; i++) {
    const before = Date.now();
    while (Date.now() === before);
    // The calendar has just begun a millisecond.
    least = Math.min(least, now() - Date.now());
  }
  return -least;
}

function journalOf(noted: readonly Noted[], log: readonly Told[], offsetMs: number): readonly JournalEntry[] {
  const sent = new Map<string, NotedCommit>();
  for (const told of log) if (told.kind === "sent") sent.set(told.commit.id, told.commit);
  const owners = new Map<string, string>();
  return noted.map((note): JournalEntry => {
    const at = note.wallMs - offsetMs;
    if (note.kind === "acquired") {
      const { partition, epoch, nonce, owner } = note;
      owners.set(nonce, owner);
      return { log: "journal", kind: "acquired", at, partition, epoch, nonce, owner };
    }
    const commit = sent.get(note.batch);
    if (commit === undefined) throw new Error(`nobody has sent the batch ${note.batch}`);
    return commitEntry(at, owners.get(note.nonce) ?? "nobody", commit);
  });
}

/**
 * What has ended and is in the archive is looked at once more, to leave the store. That is sooner than some deadlines, so
 * it is told from them by the end of the execution.
 */
function withoutLeaving(journal: readonly JournalEntry[]): readonly JournalEntry[] {
  const ended = new Set<string>();
  const leaving = new Map<string, number>();
  return journal.map((entry) => {
    if (entry.kind !== "commit") return entry;
    const wakes: { entity: string; atMs: number | null }[] = [];
    for (const { entity, events } of entry.records) {
      for (const { kind } of events) {
        if (kind === "executionEnded") ended.add(entity);
        if (kind !== "generationOpened" || !ended.delete(entity)) continue;
        // Opened again it is woken by what is still stored, unless it says another time.
        const atMs = leaving.get(entity);
        if (atMs !== undefined) wakes.push({ entity, atMs });
      }
    }
    for (const wake of entry.wakes) {
      const leaves = wake.atMs !== null && wake.atMs > entry.timeMs + SOON_MS && ended.has(wake.entity);
      if (leaves) leaving.set(wake.entity, wake.atMs);
      wakes.push(leaves ? { ...wake, atMs: null } : wake);
    }
    return { ...entry, wakes };
  });
}

/** Wakes of what has not ended. */
function openOnes({ remains }: Remainder["found"]): readonly string[] {
  const open = new Set(remains.headers.filter((header) => header.class === "open").map(({ entity }) => entity));
  return remains.wakes.filter((entity) => open.has(entity));
}

/** On a machine that does all of this at once, a worker may be late without having been struck itself. */
function strainOn(log: readonly Told[], at: number): readonly HistoryEntry[] {
  const workers = new Set(log.flatMap((told) => ("worker" in told ? told.worker : [])));
  return [...workers].map((target) => ({ log: "nemesis", kind: "fault", at, fault: "strain", target }));
}
