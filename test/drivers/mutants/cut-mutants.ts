import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { Cut, JournalRecord } from "../../../src/store/contract.ts";
import { afterBatch, type Mutant, onBatch } from "./mutant.ts";

/** Takes records out of a journal after a cut of it, by a rule of its own. */
const cutting = (name: string, goes: (record: JournalRecord, cut: Cut) => boolean): Mutant =>
  afterBatch(name, ({ cut = [] }, outcome, store) => {
    if (outcome.kind !== "committed") return;
    for (const one of cut) {
      const records = journalOf(store, one);
      records.splice(0, records.length, ...records.filter((record) => !goes(record, one)));
    }
  });

function journalOf(store: MemoryStore, { entity }: Cut): JournalRecord[] {
  return store.data.entities.get(entity)?.records ?? [];
}

export const cutMutants: readonly Mutant[] = [
  cutting("a cut takes records that hold what is behind it", ({ version }, cut) => version < cut.belowVersion),
  cutting("a cut takes the record that begins with its version", ({ version }, cut) => version === cut.belowVersion),
  onBatch("a cut leaves the last record before it", (batch) => {
    if (batch.cut === undefined) return batch;
    return { ...batch, cut: batch.cut.map((one) => ({ ...one, belowVersion: one.belowVersion - 1 })) };
  }),
  onBatch("a cut is of all journals of its batch", (batch) => {
    const [first] = batch.cut ?? [];
    if (first === undefined) return batch;
    const cut = ["execution/one", "execution/two"].map((entity) => ({ ...first, entity }));
    return { ...batch, cut };
  }),
  afterBatch("a journal that was cut begins its versions anew", ({ cut = [] }, outcome, store) => {
    if (outcome.kind !== "committed") return;
    for (const one of cut) {
      const data = store.data.entities.get(one.entity);
      if (data !== undefined) data.version = data.records.reduce((sum, { count }) => sum + count, 0);
    }
  }),
  afterBatch("a cut takes the snapshot too", ({ cut = [] }, outcome, store) => {
    if (outcome.kind !== "committed") return;
    for (const { entity } of cut) {
      const data = store.data.entities.get(entity);
      if (data !== undefined) data.snapshot = null;
    }
  }),
  onBatch("a journal that is cut may not begin at version 1", (batch, store) => {
    const isBegun = ({ entity, version }: JournalRecord): boolean =>
      version === 1 && !store.data.entities.has(entity) && (batch.cut ?? []).some((one) => one.entity === entity);
    return batch.records.some(isBegun) ? { ...batch, records: [{ ...batch.records[0]!, version: 2 }] } : batch;
  }),
  onBatch("a journal may begin anywhere if it is cut", (batch, store) => {
    if (batch.cut === undefined) return batch;
    const first = new Map<string, number>();
    for (const { entity, version } of batch.records) if (!first.has(entity)) first.set(entity, version);
    const cut = batch.cut.map((one) => {
      const isNew = !store.data.entities.has(one.entity);
      return isNew ? { ...one, belowVersion: first.get(one.entity) ?? one.belowVersion } : one;
    });
    return { ...batch, cut };
  }),
];
