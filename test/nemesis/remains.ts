import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import type { Workflow } from "../../src/definition/workflow.ts";
import { partitionOf } from "../../src/core/entity.ts";
import type { Archive } from "../../src/store/archive.ts";
import type { DeadLetter, Header, JournalRecord, Snapshot, Store } from "../../src/store/contract.ts";
import type { Remains } from "../../src/simulator/history.ts";
import { letterOf, withoutRemoval } from "../world/history.ts";
import { Journals, type StoredJournals } from "../world/journals.ts";
import { allPages } from "./archived.ts";

/** Nobody waits longer. */
const FAR_FUTURE_MS = 8_640_000_000_000_000;

export interface Found {
  readonly journals: Journals;
  readonly remains: Remains;
  readonly published: Readonly<Record<string, readonly string[]>>;
}

/**
 * All that a store holds when everybody has left, and what is only in its archive, read by their own contracts; also what
 * has no header, by its name.
 */
export async function readStore(
  store: Store,
  archive: Archive | undefined,
  unlisted: ReadonlySet<string>,
): Promise<Found> {
  const hot = await allPages((page) => store.queries.headers(page));
  const cold = archive === undefined ? [] : await onlyIn(archive, hot);
  const headers = [...hot, ...cold];
  const parts = [
    await storedJournals(store, [...hot.map(({ entity }) => entity), ...unlisted]),
    ...(archive === undefined ? [] : [await coldJournals(archive, cold)]),
  ];
  const journals = new Journals({
    definitions: Object.assign({}, ...parts.map(({ definitions }) => definitions)) as Record<string, Workflow>,
    records: parts.flatMap(({ records }) => records),
    snapshot: (entity) => parts[0]!.snapshot(entity),
  });
  const letters = [...(await allPages((page) => store.queries.deadLetters(page))), ...(await lettersOf(cold, archive))];
  const counts = await store.queries.counts();
  const queued = Object.entries(counts.queued).flatMap(([queue, count]) =>
    Array<string>(count).fill(`one of ${queue}`),
  );
  const listed = await allPages((page) => store.queries.listing({ ...page, list: "review" }));
  const published: Record<string, readonly string[]> = {};
  for (const { name } of await allPages((page) => store.queries.workflows(page))) {
    published[name] = (await store.records.versions(name)).map(({ hash }) => hash).toReversed();
  }
  return {
    journals,
    published,
    remains: {
      tasks: [...queued, ...Array<string>(counts.leased).fill("one that is leased")],
      inbox: counts.inbox,
      wakes: await wakesIn(store),
      deadLetters: letters.map(letterOf),
      listed: listed.map(({ list, id }) => `${list} ${id}`),
      headers: headers.map(({ entity, class: kind, status, version }) => ({ entity, class: kind, status, version })),
      folds: journals.folds(),
    },
  };
}

/** Entities whose journals the archive does not have record by record as the store has them. */
export async function notShipped(store: Store, archive: Archive): Promise<readonly string[]> {
  const { partitionCount } = store.capabilities;
  const behind: string[] = [];
  for (const { entity } of await allPages((page) => store.queries.headers(page))) {
    const request = [{ partition: partitionOf(entity, partitionCount), entity, aboveVersion: 0 }];
    const [[hot], [cold]] = await Promise.all([store.journal.load(request), archive.journal.load(request)]);
    if (JSON.stringify(hot!.records) !== JSON.stringify(cold!.records)) behind.push(entity);
  }
  return behind;
}

async function lettersOf(headers: readonly Header[], archive: Archive | undefined): Promise<readonly DeadLetter[]> {
  if (archive === undefined) return [];
  const cold = new Set(headers.map(({ entity }) => entity));
  const all = await allPages((page) => archive.queries.deadLetters(page));
  return all.filter(({ entity }) => cold.has(entity));
}

async function onlyIn(archive: Archive, hot: readonly Header[]): Promise<readonly Header[]> {
  const known = new Set(hot.map(({ entity }) => entity));
  return (await allPages((page) => archive.queries.headers(page))).filter(({ entity }) => !known.has(entity));
}

async function coldJournals(archive: Archive, headers: readonly Header[]): Promise<StoredJournals> {
  const records: JournalRecord[] = [];
  for (const { entity } of headers) {
    const [loaded] = await archive.journal.load([{ partition: 0, entity, aboveVersion: 0 }]);
    records.push(...loaded!.records);
  }
  return { definitions: await definitionsIn(archive, hashesIn(records)), records, snapshot: () => undefined };
}

async function storedJournals(store: Store, entities: readonly string[]): Promise<StoredJournals> {
  const { partitionCount } = store.capabilities;
  const snapshots = new Map<string, Snapshot>();
  const records: JournalRecord[] = [];
  for (const entity of entities) {
    const partition = partitionOf(entity, partitionCount);
    const requests = [
      { partition, entity, aboveVersion: 0 },
      { partition, entity },
    ];
    const [whole, newest] = await store.journal.load(requests);
    records.push(...whole!.records);
    const { snapshot } = newest!;
    if (snapshot !== null) snapshots.set(entity, await withText(store, snapshot));
  }
  const definitions = await definitionsIn(store, hashesIn(records));
  return { definitions, records, snapshot: (entity) => snapshots.get(entity) };
}

function hashesIn(records: readonly JournalRecord[]): readonly string[] {
  const hashes = new Set<string>();
  for (const { version, text } of records) {
    if (version !== 1) continue;
    const [accepted] = JSON.parse(text) as ExecutionEvent[];
    if (accepted?.kind === "accepted") hashes.add(accepted.definition);
  }
  return [...hashes];
}

/** A large one is stored as a value of its own. */
async function withText(store: Store, snapshot: Snapshot): Promise<Snapshot> {
  if (!snapshot.text.startsWith("@")) return snapshot;
  const [text] = await store.records.get([{ scope: snapshot.entity, hash: snapshot.text.slice(1) }]);
  return { ...snapshot, text: text! };
}

async function definitionsIn(
  store: Pick<Archive, "records">,
  hashes: readonly string[],
): Promise<Record<string, Workflow>> {
  const texts = await store.records.get(hashes.map((hash) => ({ scope: "definition", hash })));
  return Object.fromEntries(hashes.map((hash, i) => [hash, JSON.parse(texts[i]!) as Workflow]));
}

async function wakesIn(store: Store): Promise<readonly string[]> {
  const found: string[] = [];
  for (let partition = 0; partition < store.capabilities.partitionCount; partition++) {
    const due = await store.journal.due(partition, FAR_FUTURE_MS, 100_000);
    const left = withoutRemoval(due, Date.now()).filter(({ atMs }) => atMs !== null);
    found.push(...left.map(({ entity }) => entity));
  }
  return found;
}
