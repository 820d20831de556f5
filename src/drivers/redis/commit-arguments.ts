import type { CommitBatch } from "../../store/contract.ts";
import { handedOf, idsOf } from "./inbox.ts";
import { packTask, placeOf } from "./packed-task.ts";

type Value = string | number;

/** A batch as commit.lua reads it: lists one after the other, each after the number of its items. */
export function commitArguments(batch: CommitBatch, attended: ReadonlyMap<string, number>): readonly Value[] {
  const { partition, incarnation, epoch, nonce, seq } = batch.fence;
  const guard = [partition, incarnation, epoch, nonce, seq, batch.id, number(batch.timeMs), batch.suspect ?? ""];
  return [
    ...guard,
    ...list(batch.records, ({ entity, version, count, format, text }) => [
      entity,
      version,
      count,
      `${version} ${count} ${format} ${text}`,
    ]),
    ...list(batch.consumed === null ? [] : idsOf(batch.consumed), (id) => [id]),
    ...list(handedOf(batch.consumed), ({ settlement: { ref, token } }) => [token, placeOf(ref)]),
    ...list(batch.snapshots, ({ entity, version, format, text }) => [entity, version, `${version} ${format} ${text}`]),
    ...list(batch.headers, (header) => [
      header.entity,
      header.class,
      number(header.createdAtMs),
      header.workflow,
      JSON.stringify(header),
    ]),
    ...list(batch.wakes, ({ entity, atMs }) => [entity, atMs === null ? "" : number(atMs)]),
    ...list(batch.tasks, (task) => [task.token, task.queue, number(task.priority), packTask(task)]),
    ...list(batch.revoke, (token) => [token]),
    ...list(batch.mail, ({ partition, text }) => [partition, text]),
    ...list(batch.replies, (reply) => [reply.process, JSON.stringify(reply)]),
    ...list(batch.discard, (id) => [id]),
    ...list(batch.deadLetters, (letter) => [letter.id, number(letter.atMs), JSON.stringify(letter)]),
    ...list(batch.listings ?? [], (listing) => [
      listing.list,
      listing.id,
      listing.entity,
      number(listing.atMs),
      listing.text === null ? "" : JSON.stringify(listing),
    ]),
    ...list(batch.purge, (entity) => [entity]),
    ...list(batch.cut ?? [], ({ entity, belowVersion }) => [entity, belowVersion]),
    ...list([...attended], (queue) => queue),
  ];
}

function list<Item>(items: readonly Item[], fields: (item: Item) => readonly Value[]): readonly Value[] {
  return [items.length, ...items.flatMap(fields)];
}

/** Redis refuses a score that is no number, and a commit that has begun must not meet a refusal. */
function number(value: number): number {
  if (Number.isNaN(value)) throw new Error("a time or a priority of this batch is not a number");
  return value;
}
