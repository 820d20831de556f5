import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import type { Workflow } from "../../src/definition/workflow.ts";
import { partitionOf } from "../../src/core/entity.ts";
import type { Archive } from "../../src/store/archive.ts";
import type { Page, Snapshot, Store } from "../../src/store/contract.ts";
import type { Remains } from "../../src/simulator/history.ts";
import { letterOf, withoutRemoval } from "../world/history.ts";
import { Journals } from "../world/journals.ts";

const PAGE = 500;
/** Nobody waits longer. */
const FAR_FUTURE_MS = 8_640_000_000_000_000;

export interface Found {
  readonly journals: Journals;
  readonly remains: Remains;
  readonly published: Readonly<Record<string, readonly string[]>>;
}

/** All that a store holds when everybody has left, read by its own contract. */
export async function readStore(store: Store): Promise<Found> {
  const headers = await all((page) => store.queries.headers(page));
  const entities = headers.map(({ entity }) => entity);
  const journals = new Journals(await storedJournals(store, entities));
  const counts = await store.queries.counts();
  const queued = Object.entries(counts.queued).flatMap(([queue, count]) =>
    Array<string>(count).fill(`one of ${queue}`),
  );
  const listed = await all((page) => store.queries.listing({ ...page, list: "review" }));
  const published: Record<string, readonly string[]> = {};
  for (const { name } of await all((page) => store.queries.workflows(page))) {
    published[name] = (await store.records.versions(name)).map(({ hash }) => hash).toReversed();
  }
  return {
    journals,
    published,
    remains: {
      tasks: [...queued, ...Array<string>(counts.leased).fill("one that is leased")],
      inbox: counts.inbox,
      wakes: await wakesIn(store),
      deadLetters: (await all((page) => store.queries.deadLetters(page))).map(letterOf),
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
  for (const { entity } of await all((page) => store.queries.headers(page))) {
    const request = [{ partition: partitionOf(entity, partitionCount), entity, aboveVersion: 0 }];
    const [[hot], [cold]] = await Promise.all([store.journal.load(request), archive.journal.load(request)]);
    if (JSON.stringify(hot!.records) !== JSON.stringify(cold!.records)) behind.push(entity);
  }
  return behind;
}

async function storedJournals(
  store: Store,
  entities: readonly string[],
): Promise<ConstructorParameters<typeof Journals>[0]> {
  const { partitionCount } = store.capabilities;
  const snapshots = new Map<string, Snapshot>();
  const records: { entity: string; version: number; count: number; text: string }[] = [];
  const hashes = new Set<string>();
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
    const [accepted] = JSON.parse(whole!.records[0]?.text ?? "[]") as ExecutionEvent[];
    if (accepted?.kind === "accepted") hashes.add(accepted.definition);
  }
  return { definitions: await definitionsIn(store, [...hashes]), records, snapshot: (entity) => snapshots.get(entity) };
}

/** A large one is stored as a value of its own. */
async function withText(store: Store, snapshot: Snapshot): Promise<Snapshot> {
  if (!snapshot.text.startsWith("@")) return snapshot;
  const [text] = await store.records.get([{ scope: snapshot.entity, hash: snapshot.text.slice(1) }]);
  return { ...snapshot, text: text! };
}

async function definitionsIn(store: Store, hashes: readonly string[]): Promise<Record<string, Workflow>> {
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

async function all<Item>(
  read: (page: { limit: number; cursor?: string }) => Promise<Page<Item>>,
): Promise<readonly Item[]> {
  const found: Item[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Item> = await read({ limit: PAGE, ...(cursor !== null && { cursor }) });
    found.push(...page.items);
    ({ cursor } = page);
  } while (cursor !== null);
  return found;
}
