import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import { removePlace } from "../../../src/drivers/memory/sorted-places.ts";
import type { CommitBatch, Journal, JournalRecord, Loaded, LoadRequest, Wake } from "../../../src/store/contract.ts";
import { afterBatch, bent, type Mutant, mutant, onBatch } from "./mutant.ts";

const onJournal = (name: string, changes: (journal: Journal, store: MemoryStore) => Partial<Journal>): Mutant =>
  mutant(name, (store) => ({ journal: bent<Journal>(store.journal, changes(store.journal, store)) }));

const onLoaded = (name: string, change: (loaded: Loaded, request: LoadRequest, store: MemoryStore) => Loaded): Mutant =>
  onJournal(name, (journal, store) => ({
    load: async (requests) => (await journal.load(requests)).map((one, i) => change(one, requests[i]!, store)),
  }));

const loadMutants: readonly Mutant[] = [
  onJournal("wake times are looked up in the first partition", (journal) => ({
    load: (requests) => journal.load(requests.map((request) => ({ ...request, partition: 0 }))),
  })),
  onJournal("an entity nobody knows cannot be loaded", (journal) => ({
    load: async (requests) => {
      const loaded = await journal.load(requests);
      if (loaded.some(({ records, snapshot }, i) => records.length === 0 && !snapshot && !requests[i]!.aboveVersion)) {
        throw new Error("no such entity");
      }
      return loaded;
    },
  })),
  onJournal("a load leaves out entities nobody knows, and gives each once", (journal) => ({
    load: async (requests) => {
      const seen = new Map((await journal.load(requests)).map((one) => [one.entity, one]));
      return [...seen.values()].filter(({ records, snapshot }) => records.length > 0 || snapshot !== null);
    },
  })),
  onJournal("a load answers in order of the entities", (journal) => ({
    load: async (requests) => [...(await journal.load(requests))].sort((a, b) => (a.entity < b.entity ? -1 : 1)),
  })),
  onLoaded("a load gives the last records only", (loaded) => ({ ...loaded, records: loaded.records.slice(-1) })),
  onLoaded("records come in order of the digits of their versions", (loaded) => ({
    ...loaded,
    records: [...loaded.records].sort((a, b) => (String(a.version) < String(b.version) ? -1 : 1)),
  })),
  onLoaded("the format of a record is not kept", (loaded) => ({
    ...loaded,
    records: loaded.records.map((record) => ({ ...record, format: 1 })),
  })),
  onLoaded("a load gives every record, whatever version it is asked for", (loaded, { entity }, store) => ({
    ...loaded,
    records: store.data.entities.get(entity)?.records ?? [],
  })),
  onLoaded("a load above a version has a snapshot too", (loaded, { entity }, store) => ({
    ...loaded,
    snapshot: store.data.entities.get(entity)?.snapshot ?? null,
  })),
  onLoaded("a load above a version begins at it", (loaded, { entity, aboveVersion }, store) =>
    aboveVersion === undefined
      ? loaded
      : {
          ...loaded,
          records: (store.data.entities.get(entity)?.records ?? []).filter(
            ({ version, count }) => version + count - 1 >= aboveVersion,
          ),
        },
  ),
  onLoaded("a load above version 0 is taken for one without a version", (loaded, { aboveVersion }) =>
    aboveVersion === 0 ? { ...loaded, records: loaded.records.slice(-1) } : loaded,
  ),
  onLoaded("a record with events on both sides is left out", (loaded, { aboveVersion }) => ({
    ...loaded,
    records: loaded.records.filter(({ version }) => version > (aboveVersion ?? loaded.snapshot?.version ?? 0)),
  })),
  onLoaded("of what is loaded in parts the oldest record is passed over", (loaded, { maxChars }) => ({
    ...loaded,
    records: maxChars === undefined || loaded.records.length === 1 ? loaded.records : loaded.records.slice(1),
  })),
  onLoaded("a load with a snapshot has no records", (loaded) => ({
    ...loaded,
    records: loaded.snapshot === null ? loaded.records : [],
  })),
  onLoaded("a load does not say when the entity wakes", (loaded) => ({ ...loaded, wakeAtMs: null })),
];

const snapshotMutants: readonly Mutant[] = [
  afterBatch("an older snapshot wins", (batch, outcome, store) => {
    if (outcome.kind !== "committed") return;
    for (const snapshot of batch.snapshots) {
      const entity = store.data.entities.get(snapshot.entity);
      if (entity !== undefined) entity.snapshot = snapshot;
    }
  }),
  onBatch("the first snapshot stays", (batch, store) => ({
    ...batch,
    snapshots: batch.snapshots.filter(({ entity }) => !store.data.entities.get(entity)?.snapshot),
  })),
  onBatch("snapshots are compared by their digits", (batch, store) => ({
    ...batch,
    snapshots: batch.snapshots.filter(
      ({ entity, version }) => String(version) > String(store.data.entities.get(entity)?.snapshot?.version ?? ""),
    ),
  })),
  onBatch("a snapshot is kept for every entity of its batch", (batch) => ({
    ...batch,
    snapshots: batch.snapshots.flatMap((snapshot) => batch.records.map(({ entity }) => ({ ...snapshot, entity }))),
  })),
];

const onDue = (name: string, change: (due: readonly Wake[]) => readonly Wake[]): Mutant =>
  onJournal(name, (journal) => ({
    due: async (partition, beforeMs, limit, after) => change(await journal.due(partition, beforeMs, limit, after)),
  }));

const wakesOf = (store: MemoryStore, batch: CommitBatch): ReadonlyMap<string, number> =>
  store.data.partitions[batch.fence.partition]!.wakes.at;

const dueMutants: readonly Mutant[] = [
  onDue("what is due comes in no order", (due) => due.toReversed()),
  onDue("what is due comes in order of its digits", (due) =>
    [...due].sort((a, b) => (String(a.atMs) < String(b.atMs) ? -1 : 1)),
  ),
  onDue("what is due comes in order of the entities", (due) => [...due].sort((a, b) => (a.entity < b.entity ? -1 : 1))),
  onDue("what is due is there twice", (due) => due.flatMap((wake) => [wake, wake])),
  onJournal("due ends before the time asked for", (journal) => ({
    due: (partition, beforeMs, limit, after) => journal.due(partition, beforeMs - 1, limit, after),
  })),
  onJournal("due gives what is not due yet", (journal) => ({
    due: (partition, _, limit, after) => journal.due(partition, 1e15, limit, after),
  })),
  onJournal("due has no limit", (journal) => ({
    due: (partition, beforeMs, _, after) => journal.due(partition, beforeMs, 1e6, after),
  })),
  onJournal("due takes out what it gives", (journal, store) => ({
    due: async (partition, beforeMs, limit, after) => {
      const due = await journal.due(partition, beforeMs, limit, after);
      const { wakes } = store.data.partitions[partition]!;
      for (const { atMs, entity } of due) removePlace(wakes.places, { atMs, key: entity });
      return due;
    },
  })),
  onJournal("due begins at the beginning always", (journal) => ({
    due: async (partition, beforeMs, limit, after) => {
      const due = await journal.due(partition, beforeMs, limit);
      return after !== undefined && due.at(-1)?.entity === after.entity ? [] : due;
    },
  })),
  onJournal("due goes on at the next time", (journal) => ({
    due: async (partition, beforeMs, limit, after) => {
      const due = await journal.due(partition, beforeMs, 1e6, after);
      return due.filter(({ atMs }) => atMs > (after?.atMs ?? -1)).slice(0, limit);
    },
  })),
  onJournal("due goes on behind an entity that is there only", (journal) => ({
    due: async (partition, beforeMs, limit, after) => {
      const all = await journal.due(partition, beforeMs, 1e6);
      if (after === undefined) return all.slice(0, limit);
      const index = all.findIndex(({ entity, atMs }) => entity === after.entity && atMs === after.atMs);
      return all.slice(index < 0 ? 0 : index + 1).slice(0, limit);
    },
  })),
  onBatch("a wake time is only moved later", (batch, store) => ({
    ...batch,
    wakes: batch.wakes.filter(({ entity, atMs }) => atMs === null || atMs > (wakesOf(store, batch).get(entity) ?? 0)),
  })),
  onBatch("a wake time is only moved earlier", (batch, store) => ({
    ...batch,
    wakes: batch.wakes.filter(
      ({ entity, atMs }) => atMs === null || atMs < (wakesOf(store, batch).get(entity) ?? 1e15),
    ),
  })),
  onBatch("a wake time of null is ignored", (batch) => ({
    ...batch,
    wakes: batch.wakes.filter(({ atMs }) => atMs !== null),
  })),
  onBatch("a wake time is stored later than it was said", (batch) => ({
    ...batch,
    wakes: batch.wakes.map(({ entity, atMs }) => ({ entity, atMs: atMs === null ? null : atMs + 1 })),
  })),
  onBatch("a commit clears the wake times it does not name", (batch) => ({
    ...batch,
    wakes: [
      ...batch.records
        .filter(({ entity }) => !batch.wakes.some((wake) => wake.entity === entity))
        .map(({ entity }) => ({ entity, atMs: null })),
      ...batch.wakes,
    ],
  })),
];

const watchMutants: readonly Mutant[] = [
  onJournal("watch does not wait", (journal) => ({
    watch: (partition, entity, aboveVersion) => journal.watch(partition, entity, aboveVersion, 0),
  })),
  onJournal("whoever waits for the end waits for what comes after it", (journal) => ({
    watch: (partition, entity, aboveVersion, waitMs, options) =>
      journal.watch(partition, entity, options?.end === true ? aboveVersion + 5 : aboveVersion, waitMs, options),
  })),
  onJournal("watch is not woken", (journal, store) => ({
    watch: async (partition, entity, aboveVersion, waitMs) => {
      const version = await journal.watch(partition, entity, aboveVersion, 0);
      if (version > aboveVersion) return version;
      await store.inbox.read([], waitMs);
      return journal.watch(partition, entity, aboveVersion, 0);
    },
  })),
  onJournal("watch answers the first event of the last record", (journal, store) => ({
    watch: async (partition, entity, aboveVersion, waitMs) => {
      await journal.watch(partition, entity, aboveVersion, waitMs);
      return store.data.entities.get(entity)?.records.at(-1)?.version ?? 0;
    },
  })),
  onJournal("watch is ended by any commit to the entity", (journal, store) => ({
    watch: (partition, entity, aboveVersion, waitMs) =>
      journal.watch(partition, entity, Math.min(aboveVersion, store.data.entities.get(entity)?.version ?? 0), waitMs),
  })),
  onJournal("watch wakes the first who waits", (journal, store) => {
    let isTaken = false;
    return {
      watch: async (partition, entity, aboveVersion, waitMs) => {
        const isSecond = isTaken;
        isTaken ||= waitMs > 0;
        if (!isSecond) return journal.watch(partition, entity, aboveVersion, waitMs);
        await store.inbox.read([], waitMs);
        return journal.watch(partition, entity, aboveVersion, 0);
      },
    };
  }),
  onJournal("watch answers what it was asked above when the time is up", (journal) => ({
    watch: async (partition, entity, aboveVersion, waitMs) =>
      Math.max(aboveVersion, await journal.watch(partition, entity, aboveVersion, waitMs)) || 1,
  })),
  onJournal("watch wakes for any entity", (journal, store) => ({
    watch: async (partition, entity, aboveVersion, waitMs) => {
      const others = [...store.data.entities.keys(), "execution/two"].filter((other) => other !== entity);
      const known = others.map((other) => store.data.entities.get(other)?.version ?? 0);
      await Promise.race([
        journal.watch(partition, entity, aboveVersion, waitMs),
        ...others.map((other, i) => journal.watch(partition, other, known[i]!, waitMs)),
      ]);
      return journal.watch(partition, entity, aboveVersion, 0);
    },
  })),
  onJournal("watch is woken in the first partition only", (journal, store) => ({
    watch: async (partition, entity, aboveVersion, waitMs) => {
      if (partition === 0) return journal.watch(partition, entity, aboveVersion, waitMs);
      await store.inbox.read([], waitMs);
      return journal.watch(partition, entity, aboveVersion, 0);
    },
  })),
];

/** Puts back after a purge what it should have removed. */
const keeps = (what: string, keep: (store: MemoryStore, entity: string) => () => void): Mutant =>
  mutant(`a purge keeps the ${what}`, (store) => ({
    journal: bent<Journal>(store.journal, {
      commit: async (batches) => {
        const undo = batches.flatMap((batch) => batch.purge.map((entity) => keep(store, entity)));
        const outcomes = await store.journal.commit(batches);
        if (outcomes.every(({ kind }) => kind === "committed")) for (const step of undo) step();
        return outcomes;
      },
    }),
  }));

const purgeMutants: readonly Mutant[] = [
  keeps("records", ({ data }, entity) => {
    const records = data.records.get(entity);
    return () => void (records && data.records.set(entity, records));
  }),
  keeps("journal", ({ data }, entity) => {
    const known = data.entities.get(entity);
    return () => void (known && data.entities.set(entity, known));
  }),
  keeps("snapshot", ({ data }, entity) => {
    const snapshot = data.entities.get(entity)?.snapshot ?? null;
    return () => void data.entities.set(entity, { version: 0, records: [], snapshot });
  }),
  keeps("header", ({ data }, entity) => {
    const header = data.headers.get(entity);
    return () => {
      if (header === undefined) return;
      data.headers.set(entity, header);
      data.headerPlaces.push([{ atMs: header.createdAtMs, key: entity }]);
    };
  }),
  keeps("wake time", ({ data }, entity) => {
    const { wakes } = data.partitions[0]!;
    const atMs = wakes.at.get(entity);
    return () => {
      if (atMs === undefined) return;
      wakes.at.set(entity, atMs);
      wakes.places.push([{ atMs, key: entity }]);
    };
  }),
  afterBatch("a purge removes the records of all scopes", (batch, outcome, store) => {
    if (batch.purge.length > 0 && outcome.kind === "committed") store.data.records.clear();
  }),
  mutant("a purge comes before the rest of its batch", (store) => ({
    journal: bent<Journal>(store.journal, {
      commit: async (batches) => {
        const outcomes = await store.journal.commit(
          batches.map((batch) => {
            const isNew = batch.purge.filter((entity) => !store.data.entities.has(entity));
            return { ...batch, purge: batch.purge.filter((entity) => !isNew.includes(entity)) };
          }),
        );
        return outcomes;
      },
    }),
  })),
  onJournal("a purge of an entity nobody knows fails", (journal, store) => ({
    commit: async (batches) => {
      if (batches.some(({ purge }) => purge.some((entity) => !store.data.entities.has(entity))))
        throw new Error("unknown");
      return journal.commit(batches);
    },
  })),
];

/** Makes the records of a batch fit, one way or another. */
const onVersions = (
  name: string,
  change: (batch: CommitBatch, store: MemoryStore) => readonly JournalRecord[],
): Mutant => onBatch(name, (batch, store) => ({ ...batch, records: change(batch, store) }));

const known = (store: MemoryStore, entity: string): number => store.data.entities.get(entity)?.version ?? 0;

const versionMutants: readonly Mutant[] = [
  onVersions("versions are counted by the store", ({ records }, store) => {
    const next = new Map<string, number>();
    return records
      .filter(({ count }) => count > 0)
      .map((record) => {
        const version = (next.get(record.entity) ?? known(store, record.entity)) + 1;
        next.set(record.entity, version + record.count - 1);
        return { ...record, version };
      });
  }),
  onVersions("records that do not fit are left out", ({ records }, store) => {
    const next = new Map<string, number>();
    return records.filter(({ entity, version, count }) => {
      const fits = version === (next.get(entity) ?? known(store, entity)) + 1 && count > 0;
      if (fits) next.set(entity, version + count - 1);
      return fits;
    });
  }),
  onJournal("a commit with a wrong version is rejected after its mail was sent", (journal, store) => ({
    commit: (batches) =>
      journal.commit(batches).catch(async (error: unknown) => {
        for (const { mail } of batches) await store.inbox.append(mail);
        throw error;
      }),
  })),
];

export const journalMutants: readonly Mutant[] = [
  ...versionMutants,
  ...loadMutants,
  ...snapshotMutants,
  ...dueMutants,
  ...watchMutants,
  ...purgeMutants,
];
