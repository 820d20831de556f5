import { entityId, partitionOf } from "../../core/entity.ts";
import { fold } from "../../core/fold.ts";
import type { Machine, MachineEvent } from "../../core/machine.ts";
import type { Store } from "../../store/contract.ts";
import { snapshotText } from "../../store/snapshot-text.ts";

/** An entity that needs no definition, as anybody can read it: the fold of its journal. undefined if there is none. */
export async function readEntity<State, Event extends MachineEvent>(
  store: Store,
  machine: Machine<State, Event>,
  entity: string,
): Promise<State | undefined> {
  const partition = partitionOf(entity, store.capabilities.partitionCount);
  const [loaded] = await store.journal.load([{ partition, entity }]);
  const { snapshot } = loaded!;
  const isRead = snapshot?.format === machine.snapshotFormat;
  const text = isRead ? await snapshotText(store.records, entity, snapshot.text) : null;
  const isWhole = snapshot === null || text !== null;
  const records = isWhole
    ? loaded!.records
    : (await store.journal.load([{ partition, entity, aboveVersion: 0 }]))[0]!.records;
  const id = entityId(entity);
  const state = text === null ? machine.create(id, undefined) : machine.restore(id, undefined, text);
  fold(machine, state, records);
  return machine.versionOf(state) === 0 ? undefined : state;
}
