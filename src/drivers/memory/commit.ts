import assert from "node:assert/strict";
import { isCalled } from "../../core/entity.ts";
import type { CommitBatch, CommitOutcome, DeadLetter, EntityKey, Header, Snapshot } from "../../store/contract.ts";
import { consume, holds, post, postReply } from "./inbox.ts";
import { putListing, removeListings } from "./listings.ts";
import type { EntityData } from "./memory-data.ts";
import { type Memory, partitionData } from "./memory.ts";
import { insertPlace, removePlace } from "./sorted-places.ts";
import { isHolder } from "./partitions.ts";
import { addTask, revokeTask } from "./tasks.ts";
import { setWake } from "./wakes.ts";

/** All guards first, then all writes, none of which can fail: so a batch is there whole or not at all. */
export function commitBatch(memory: Memory, batch: CommitBatch): CommitOutcome {
  const partition = partitionData(memory, batch.fence.partition);
  if (!isHolder(memory, batch.fence)) return { kind: "fenced" };
  if (batch.fence.seq !== partition.seq) {
    const isOurResend = partition.seq === batch.fence.seq + 1 && partition.lastBatch === batch.id;
    return { kind: isOurResend ? "alreadyApplied" : "fenced" };
  }
  if (batch.behind !== undefined && batch.behind !== partition.lastBatch) return { kind: "fenced" };
  // Read before the store went back to a time when they had not been written: what was decided from them is of a past
  // that never was.
  if (!holds(memory, batch.fence.partition, batch.consumed)) return { kind: "fenced" };
  if (memory.faults.refusesCommits) return { kind: "refused", reason: "a test says so" };
  checkVersions(memory, batch);
  checkPurge(batch);

  partition.seq += 1;
  partition.lastBatch = batch.id;
  partition.lastTimeMs = Math.max(partition.lastTimeMs, batch.timeMs);
  partition.suspect = batch.suspect;
  // With a suspect the owner has yet to show that it survives: vanishing now is a strike, whatever it committed before.
  partition.isClean = batch.suspect === null;
  if (partition.isClean) partition.strikes = 0;
  consume(memory, batch.fence.partition, batch.consumed);
  writeEntities(memory, batch);
  for (const task of batch.tasks) addTask(memory, task);
  // After the tasks: what one batch both sends out and withdraws has to be gone.
  for (const token of batch.revoke) revokeTask(memory, token);
  for (const { partition, text } of batch.mail) post(memory, partition, text);
  for (const reply of batch.replies) postReply(memory, reply);
  for (const id of batch.discard) discardDeadLetter(memory, id);
  for (const letter of batch.deadLetters) putDeadLetter(memory, letter);
  for (const listing of batch.listings ?? []) putListing(memory, listing);
  for (const { entity, belowVersion } of batch.cut ?? []) cutJournal(memory, entity, belowVersion);
  // Last: whatever else the batch says of an entity it purges, nothing of it is left.
  for (const entity of batch.purge) purge(memory, batch.fence.partition, entity);
  return { kind: "committed" };
}

/** A gap or an overlap in a journal is a bug of ours that a fence cannot catch; better to stop than to keep it. */
function checkVersions(memory: Memory, batch: CommitBatch): void {
  const versions = new Map<EntityKey, number>();
  for (const { entity, version, count } of batch.records) {
    const known = versions.get(entity) ?? memory.data.entities.get(entity)?.version;
    const isNext = known === undefined ? mayBegin(batch, entity, version) : version === known + 1;
    assert(isNext, `${version} is not the number of the next event of ${entity}`);
    assert(count > 0, `a record of ${entity} without events`);
    versions.set(entity, version + count - 1);
  }
}

/** Whether the journal of one that is not there may begin with this. */
function mayBegin({ cut }: CommitBatch, entity: EntityKey, version: number): boolean {
  return version === 1 || (cut ?? []).some((one) => one.entity === entity && one.belowVersion === version);
}

/** Every driver would make something else of it, and none what was meant. */
function checkPurge({ records, purge }: CommitBatch): void {
  const both = records.find(({ entity }) => purge.includes(entity));
  assert(both === undefined, `${both?.entity} has new records and is purged in one batch`);
}

function writeEntities(memory: Memory, batch: CommitBatch): void {
  for (const record of batch.records) {
    const entity = entityData(memory, record.entity);
    entity.records.push(record);
    entity.version = record.version + record.count - 1;
    memory.waiters.wakeAll(versionKey(record.entity));
  }
  for (const snapshot of batch.snapshots) putSnapshot(entityData(memory, snapshot.entity), snapshot);
  for (const header of batch.headers) putHeader(memory, header);
  const { wakes } = partitionData(memory, batch.fence.partition);
  for (const { entity, atMs } of batch.wakes) setWake(wakes, entity, atMs);
}

function entityData(memory: Memory, entity: EntityKey): EntityData {
  const { entities } = memory.data;
  const known = entities.get(entity);
  if (known !== undefined) return known;
  const data: EntityData = { version: 0, records: [], snapshot: null };
  entities.set(entity, data);
  return data;
}

function putSnapshot(entity: EntityData, snapshot: Snapshot): void {
  if (entity.snapshot === null || entity.snapshot.version <= snapshot.version) entity.snapshot = snapshot;
}

function putHeader(memory: Memory, header: Header): void {
  const { headers, headerPlaces } = memory.data;
  const known = headers.get(header.entity);
  headers.set(header.entity, header);
  memory.data.endedCount += Number(hasEnded(header)) - Number(hasEnded(known));
  memory.data.openCount += Number(isOpen(header)) - Number(isOpen(known));
  if (known?.createdAtMs === header.createdAtMs) return;
  if (known !== undefined) removePlace(headerPlaces, { atMs: known.createdAtMs, key: known.entity });
  insertPlace(headerPlaces, { atMs: header.createdAtMs, key: header.entity });
}

/** What another has called is not counted. */
function hasEnded(header: Header | undefined): boolean {
  return header !== undefined && header.class !== "open" && !isCalled(header.entity);
}

function isOpen(header: Header | undefined): boolean {
  return header?.class === "open" && header.workflow !== "";
}

function putDeadLetter(memory: Memory, letter: DeadLetter): void {
  const { deadLetters, deadLetterPlaces } = memory.data;
  const known = deadLetters.get(letter.id);
  deadLetters.set(letter.id, letter);
  if (known?.atMs === letter.atMs) return;
  if (known !== undefined) removePlace(deadLetterPlaces, { atMs: known.atMs, key: known.id });
  insertPlace(deadLetterPlaces, { atMs: letter.atMs, key: letter.id });
}

function discardDeadLetter(memory: Memory, id: string): void {
  const { deadLetters, deadLetterPlaces } = memory.data;
  const known = deadLetters.get(id);
  if (known === undefined) return;
  deadLetters.delete(id);
  removePlace(deadLetterPlaces, { atMs: known.atMs, key: id });
}

function purge(memory: Memory, partition: number, entity: EntityKey): void {
  const { data } = memory;
  data.entities.delete(entity);
  data.records.delete(entity);
  removeListings(memory, entity);
  setWake(partitionData(memory, partition).wakes, entity, null);
  const header = data.headers.get(entity);
  data.headers.delete(entity);
  data.endedCount -= Number(hasEnded(header));
  data.openCount -= Number(isOpen(header));
  if (header !== undefined) removePlace(data.headerPlaces, { atMs: header.createdAtMs, key: entity });
}

function cutJournal(memory: Memory, entity: EntityKey, belowVersion: number): void {
  const records = memory.data.entities.get(entity)?.records ?? [];
  const first = records.findIndex(({ version, count }) => version + count > belowVersion);
  records.splice(0, first === -1 ? records.length : first);
}

export function versionKey(entity: EntityKey): string {
  return `version/${entity}`;
}
