import type { Store } from "../contract.ts";
import { acquire, type BatchParts, type Owner } from "./owner.ts";
import {
  appendTexts,
  deadLetter,
  ENTITY,
  header,
  inboxTexts,
  listing,
  OTHER,
  QUEUE,
  read,
  record,
  reply,
  snapshot,
  task,
} from "./things.ts";

const PURGED = "execution/purged";

/** A store with something in every corner, and a batch that changes every one of them. */
export interface World {
  readonly owner: Owner;
  readonly parts: BatchParts;
}

export async function createWorld(store: Store, partition = 0): Promise<World> {
  const owner = await acquire(store, partition);
  const key = (name: string): string => `${name}-${partition}`;
  await store.records.put([{ scope: key(PURGED), hash: "hash", text: '"blob"' }]);
  await owner.commit({
    records: [record(key(ENTITY), 1), record(key(PURGED), 1)],
    headers: [header(key(ENTITY)), header(key(PURGED))],
    wakes: [
      { entity: key(ENTITY), atMs: 5000 },
      { entity: key(PURGED), atMs: 6000 },
    ],
    snapshots: [snapshot(key(PURGED), 1)],
    tasks: [task(key("old"), { partition })],
    deadLetters: [deadLetter(key("discarded"), 1)],
    listings: [
      listing("list", key("taken off"), { entity: key(ENTITY) }),
      listing("list", key("purged"), { entity: key(PURGED) }),
    ],
  });
  await appendTexts(store, ['"first"', '"second"'], partition);
  const { position } = await read(store, { partition });
  const parts: BatchParts = {
    timeMs: 777,
    consumed: position,
    records: [record(key(ENTITY), 2), record(key(OTHER), 1)],
    headers: [header(key(ENTITY), { class: "endedWell", version: 2 })],
    wakes: [{ entity: key(ENTITY), atMs: 7000 }],
    snapshots: [snapshot(key(ENTITY), 2)],
    tasks: [task(key("new"), { partition, queue: "new" })],
    revoke: [key("old")],
    mail: [{ partition, start: false, text: '"mail"' }],
    replies: [reply("request", key("process"))],
    discard: [key("discarded")],
    deadLetters: [deadLetter(key("letter"), 1), deadLetter(key("other"), 2)],
    listings: [
      { ...listing("list", key("taken off"), { entity: key(ENTITY) }), text: null },
      listing("list", key("new"), { entity: key(ENTITY) }),
    ],
    purge: [key(PURGED)],
    cut: [{ entity: key(ENTITY), belowVersion: 2 }],
  };
  return { owner, parts };
}

/** Everything the batch of a world touches, as the store shows it. Takes the replies; everything else is left. */
export async function observe(store: Store, partition = 0): Promise<unknown> {
  const key = (name: string): string => `${name}-${partition}`;
  const { queued, leased, deadLetters } = await store.queries.counts();
  return {
    loaded: await store.journal.load([ENTITY, OTHER, PURGED].map((entity) => ({ partition, entity: key(entity) }))),
    all: await store.journal.load([{ partition, entity: key(ENTITY), aboveVersion: 0 }]),
    due: await store.journal.due(partition, 100_000, 100),
    inbox: await inboxTexts(store, partition),
    headers: (await store.queries.headers({ limit: 100 })).items,
    listings: (await store.queries.listing({ list: "list", limit: 100 })).items,
    letters: (await store.queries.deadLetters({ limit: 100 })).items,
    // A queue without tasks may be named or not.
    queued: [queued[QUEUE] ?? 0, queued["new"] ?? 0],
    leased,
    deadLetters,
    blobs: await store.records.get([{ scope: key(PURGED), hash: "hash" }]),
    replies: await store.inbox.replies(key("process"), 0),
  };
}
