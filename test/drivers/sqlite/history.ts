import type { FileReader } from "../../../src/drivers/sqlite/file/reader.ts";
import type { FileWriter } from "../../../src/drivers/sqlite/file/writer.ts";
import type { BatchParts } from "../../../src/store/conformance/owner.ts";
import { deadLetter, header, listing, record, snapshot } from "../../../src/store/conformance/things.ts";
import type { DeadLetter, Header, JournalRecord, Listed, Position, Store, Wake } from "../../../src/store/contract.ts";
import { parseCursor } from "../../../src/store/page.ts";

const ALL = "execution/all";
/** So many entities are kept; the commit after that purges the oldest. */
const KEPT = 10;

const entity = (k: number): string => `execution/${k}`;
const mail = (k: number): string => `"mail ${k}"`;
const letter = (k: number): DeadLetter => deadLetter(`letter ${k}`, k);
const listed = (k: number): Listed => listing("list", `${k}`, { entity: ALL, atMs: k });

/** Mostly small, now and then large enough to need many pages. */
function sized(k: number, one: JournalRecord): JournalRecord {
  const length = k % 10 === 9 ? 30_000 : (k * 7919) % 5000;
  return { ...one, text: JSON.stringify(`${k} ${"x".repeat(length)}`) };
}

/** What the commit with this number says: something in every table, and something that goes. */
export function partsOf(k: number, consumed: Position | null): BatchParts {
  return {
    timeMs: k,
    consumed,
    records: [sized(k, record(entity(k), 1)), record(ALL, k + 1)],
    headers: [header(entity(k), { createdAtMs: k })],
    wakes: [{ entity: ALL, atMs: k }],
    snapshots: k % 7 === 6 ? [snapshot(ALL, k + 1)] : [],
    mail: [{ partition: 0, start: false, text: mail(k) }],
    discard: k > 0 ? [letter(k - 1).id] : [],
    deadLetters: [letter(k)],
    listings: [...(k > 0 ? [{ ...listed(k - 1), text: null }] : []), listed(k)],
    purge: k >= KEPT ? [entity(k - KEPT)] : [],
  };
}

/** All that can be seen of such commits. */
export interface Sight {
  readonly all: readonly JournalRecord[];
  readonly entities: readonly JournalRecord[];
  readonly headers: readonly Header[];
  readonly wakes: readonly Wake[];
  readonly mail: readonly string[];
  readonly listed: readonly Listed[];
  readonly letters: readonly DeadLetter[];
}

/** The entities to look at when there have been so many commits: those that are there, and some that are not. */
function entitiesAround(count: number): readonly string[] {
  const from = Math.max(0, count - KEPT - 3);
  return Array.from({ length: count + 2 - from }, (_, i) => entity(from + i));
}

/** What is to be seen after so many commits, and nothing else. */
export function sightAfter(count: number): Sight {
  const kept = Array.from({ length: Math.min(count, KEPT) }, (_, i) => Math.max(0, count - KEPT) + i);
  const last = count === 0 ? [] : [count - 1];
  return {
    all: Array.from({ length: count }, (_, k) => record(ALL, k + 1)),
    entities: kept.map((k) => sized(k, record(entity(k), 1))),
    headers: kept.map((k) => header(entity(k), { createdAtMs: k })).toReversed(),
    wakes: last.map((k) => ({ entity: ALL, atMs: k })),
    mail: last.map(mail),
    listed: last.map(listed),
    letters: last.map(letter),
  };
}

export async function sightOf({ journal, queries, inbox }: Store, count: number): Promise<Sight> {
  const keys = entitiesAround(count).map((entity) => ({ partition: 0, entity, aboveVersion: 0 }));
  const [all, ...entities] = await journal.load([{ partition: 0, entity: ALL, aboveVersion: 0 }, ...keys]);
  const [read] = await inbox.read([{ partition: 0, after: null, limit: 100, maxChars: 1e6 }], 0);
  return {
    all: all!.records,
    entities: entities.flatMap(({ records }) => records),
    headers: (await queries.headers({ limit: 100 })).items,
    wakes: await journal.due(0, 1e9, 100),
    mail: read!.messages,
    listed: (await queries.listing({ list: "list", limit: 100 })).items,
    letters: (await queries.deadLetters({ limit: 100 })).items,
  };
}

/** The same of a file without threads, which opens far faster. */
export function sightOfFile(writer: FileWriter, reader: FileReader, count: number): Sight {
  const keys = entitiesAround(count).map((entity) => ({ partition: 0, entity, aboveVersion: 0 }));
  const [all, ...entities] = reader.load([{ partition: 0, entity: ALL, aboveVersion: 0 }, ...keys]);
  const newest = parseCursor(undefined);
  return {
    all: all!.records,
    entities: entities.flatMap(({ records }) => records),
    headers: reader.headers(newest, 0, null, null, 100),
    wakes: reader.due(1e9, 100, undefined),
    mail: writer.opened.mail.map(({ text }) => text),
    listed: reader.listing("list", newest, 100),
    letters: reader.deadLetters(newest, null, null, null, 100),
  };
}
