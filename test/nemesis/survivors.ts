import { entityId } from "../../src/core/entity.ts";
import { tokenOf } from "../../src/simulator/checker/evidence.ts";
import { isJsonObject, type Json } from "../../src/json/json.ts";
import type { HistoryEntry, JournalEntry } from "../../src/simulator/history.ts";
import type { ReadNote } from "../world/client.ts";
import type { Told } from "../world/notes.ts";
import type { Archived } from "./archived.ts";

type Commit = Extract<JournalEntry, { readonly kind: "commit" }>;
type EventRecord = Commit["records"][number];

/** A record of an execution that the store had, and that was not in its archive when the store was lost. */
export interface LostRecord extends EventRecord {
  readonly at: number;
  readonly timeMs: number;
  readonly partition: number;
}

/**
 * The two lives of a store that was lost and made again as one: of the first all that the archive had, and of the second
 * all that is new in it. What was not in the archive nobody can know of, and it is as if it had never been.
 */
export interface Survivors {
  readonly journal: readonly JournalEntry[];
  readonly lost: readonly LostRecord[];
  /** Names of dispatches that are not remembered. */
  readonly lostTokens: ReadonlySet<string>;
  /** Nodes of which a dispatch of the first life is remembered, as `execution/id node`. */
  readonly wereOut: ReadonlySet<string>;
  /** Numbers of commits by the ids of their batches, as they are in `journal`. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Batches that left nothing. */
  readonly lostBatches: ReadonlySet<string>;
  /** Tasks that were out, and are put out again, by name. */
  readonly again: readonly string[];
  /** Executions that were called in both lives, and answer in both. */
  readonly calledTwice: ReadonlySet<string>;
  /** Who has called whom, by child. */
  readonly parents: ReadonlyMap<string, string>;
  readonly wrong: readonly string[];
}

export function survivorsOf(
  first: readonly JournalEntry[],
  second: readonly JournalEntry[],
  archived: Archived,
): Survivors {
  const merging = new Merging(archived);
  for (const entry of first) merging.before(entry);
  for (const entry of second) merging.after(entry);
  return merging.survivors();
}

/** As it calls itself when it holds a partition. */
const RECOVER = "recover";

class Merging {
  readonly #epochs: ReadonlyMap<number, number>;
  readonly #archived: Archived["records"];
  readonly #journal: JournalEntry[] = [];
  readonly #lost: LostRecord[] = [];
  readonly #lostTokens = new Set<string>();
  readonly #wereOut = new Set<string>();
  readonly #numbers = new Map<string, number>();
  readonly #lostBatches = new Set<string>();
  readonly #again: string[] = [];
  readonly #called = new Set<string>();
  readonly #calledTwice = new Set<string>();
  readonly #parents = new Map<string, string>();
  readonly #wrong: string[] = [];
  /** Entities of which something was lost: later effects of theirs are lost with it. */
  readonly #behind = new Set<string>();
  /** Records by entity and version. */
  readonly #known = new Map<string, string>();
  readonly #letters = new Set<string>();
  /** How many commits of each partition are left of the first life. */
  readonly #counts = new Map<number, number>();

  constructor({ progress, records }: Archived) {
    this.#archived = records;
    this.#epochs = new Map(progress.map(({ partition, epoch }) => [partition, epoch]));
  }

  /** Of the first life. */
  before(entry: JournalEntry): void {
    if (entry.kind !== "commit" && entry.kind !== "acquired") return;
    // A tenure in which nothing was shipped has left nothing, and its number may be given again.
    const isUnheard = entry.epoch > (this.#epochs.get(entry.partition) ?? 0);
    if (entry.kind === "acquired") {
      if (!isUnheard) this.#journal.push(entry);
      return;
    }
    for (const { id, to, from, body } of entry.mail) {
      if (!isOf("start", body)) continue;
      this.#called.add(id);
      this.#parents.set(to, from);
    }
    const left = this.#leftOf(entry);
    if (isUnheard) {
      this.#lostBatches.add(entry.batch);
      if (left.records.length > 0)
        this.#wrong.push(`The archive has ${entry.batch} of a tenure that it never heard of`);
      return;
    }
    this.#counts.set(entry.partition, entry.seq + 1);
    this.#numbers.set(entry.batch, entry.seq);
    this.#journal.push(left);
  }

  #leftOf(entry: Commit): Commit {
    const records = entry.records.filter((record) => this.#isKept(record));
    for (const { entity, events } of records) {
      for (const event of events) if (event.kind === "taskDispatched") this.#wereOut.add(`${entity} ${event.node}`);
    }
    for (const record of entry.records) {
      if (records.includes(record)) continue;
      this.#behind.add(record.entity);
      this.#lost.push({ ...record, at: entry.at, timeMs: entry.timeMs, partition: entry.partition });
    }
    const isLeft = ({ entity }: { readonly entity: string }): boolean => !this.#behind.has(entity);
    for (const { token } of entry.tasks.filter((task) => !isLeft(task))) this.#lostTokens.add(token);
    const deadLetters = entry.deadLetters.filter(isLeft);
    for (const { id, status } of deadLetters) this.#letters.add(`${id} ${status}`);
    return {
      ...entry,
      records,
      deadLetters,
      tasks: entry.tasks.filter(isLeft),
      wakes: entry.wakes.filter(isLeft),
      snapshots: entry.snapshots.filter(isLeft),
      // A call may be remembered by who was called; an end is told again when it comes again. What a cache has given away
      // may be remembered by who got it, but not what it had.
      mail: entry.mail.filter(({ from, body }) => {
        return isLeft({ entity: from }) || !(isOf("childEnded", body) || isOf("cacheAnswered", body));
      }),
    };
  }

  #isKept({ entity, version, events }: EventRecord): boolean {
    const text = JSON.stringify(events);
    const kept = this.#archived.get(entity)?.find((one) => one.version === version);
    if (kept === undefined) return false;
    if (JSON.stringify(JSON.parse(kept.text)) !== text) {
      this.#wrong.push(`The archive has another record ${version} of ${entity} than the store had`);
    }
    this.#known.set(`${entity} ${version}`, text);
    return true;
  }

  /** Of the second: what it has from the archive is no news. */
  after(entry: JournalEntry): void {
    if (entry.kind !== "commit") {
      const isOnTheWay = entry.kind === "acquired" && entry.epoch <= (this.#epochs.get(entry.partition) ?? 0);
      // It takes a store some steps to get beyond the numbers of the one before it.
      if (!isOnTheWay || entry.owner !== RECOVER) this.#journal.push(entry);
      return;
    }
    if (entry.owner === RECOVER) this.#again.push(...entry.tasks.map(({ token }) => token));
    for (const { to, id } of entry.mail) if (this.#called.has(id)) this.#calledTwice.add(entityId(to));
    const seq = entry.seq + (this.#counts.get(entry.partition) ?? 0);
    this.#numbers.set(entry.batch, seq);
    const records = entry.records.filter((record) => !this.#isRestored(record));
    const deadLetters = entry.deadLetters.filter(({ id, status }) => !this.#letters.has(`${id} ${status}`));
    this.#journal.push({ ...entry, seq, records, deadLetters });
  }

  #isRestored({ entity, version, events }: EventRecord): boolean {
    const known = this.#known.get(`${entity} ${version}`);
    const text = JSON.stringify(events);
    this.#known.set(`${entity} ${version}`, text);
    return known === text;
  }

  survivors(): Survivors {
    for (const [entity, records] of this.#archived) {
      for (const { version } of records) {
        if (!this.#known.has(`${entity} ${version}`)) this.#wrong.push(`No commit wrote ${version} of ${entity}`);
      }
    }
    return {
      journal: this.#journal,
      lost: this.#lost,
      lostTokens: this.#lostTokens,
      wereOut: this.#wereOut,
      numbers: this.#numbers,
      lostBatches: this.#lostBatches,
      again: this.#again,
      calledTwice: this.#calledTwice,
      parents: this.#parents,
      wrong: this.#wrong,
    };
  }
}

function isOf(kind: string, body: Json): boolean {
  return isJsonObject(body) && body["kind"] === kind;
}

/** What processes told, without what they told of dispatches that are not remembered. */
export function toldOfSurvivors(
  log: readonly Told[],
  { lostTokens, lostBatches, numbers }: Survivors,
): readonly Told[] {
  return log.flatMap((told): readonly Told[] => {
    if ("token" in told && lostTokens.has(told.token)) return [];
    if (told.kind !== "acknowledged") return [told];
    if (lostBatches.has(told.batch)) return [];
    return [{ ...told, seq: numbers.get(told.batch) ?? told.seq }];
  });
}

/** What people of the first life were told, as far as it is still so: the rest they may as well not have been told. */
export function heardOfSurvivors(
  log: readonly (HistoryEntry | ReadNote)[],
  { lost }: Survivors,
  { records }: Archived,
): readonly (HistoryEntry | ReadNote)[] {
  const requests = new Set(
    lost.flatMap(({ events }) => events.flatMap((event) => ("request" in event ? event.request : []))),
  );
  const versionOf = (execution: string): number => {
    const last = records.get(`execution/${execution}`)?.at(-1);
    return last === undefined ? 0 : last.version + last.count - 1;
  };
  return log.flatMap((entry): readonly (HistoryEntry | ReadNote)[] => {
    if (entry.log !== "client") return [entry];
    if (entry.kind === "read") return entry.version > versionOf(entry.execution) ? [] : [entry];
    if (entry.kind === "submitted" && entry.outcome === "ok" && versionOf(entry.execution) === 0) {
      return [{ ...entry, outcome: "unknown" }];
    }
    if (entry.kind === "answered" && requests.has(entry.request)) {
      const { code: _, ...rest } = entry;
      return [{ ...rest, outcome: "unknown" }];
    }
    return [entry];
  });
}

/** All dispatches of an execution by name, in order. */
export function dispatchesIn(execution: string, events: EventRecord["events"]): readonly string[] {
  let generation = 1;
  return events.flatMap((event) => {
    if (event.kind === "generationOpened") ({ generation } = event);
    return event.kind === "taskDispatched" ? tokenOf(event, execution, generation) : [];
  });
}
