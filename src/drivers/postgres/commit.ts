import assert from "node:assert/strict";
import { DatabaseError } from "pg";
import type { CommitBatch, CommitOutcome } from "../../store/contract.ts";
import { columns, type Connection, type Postgres, rows, transaction } from "./postgres.ts";
import { wakeKey } from "./wake-ups.ts";
import { writeBatches } from "./write.ts";

const SQL = {
  // In order of their ids, so that two commits of the same partitions wait for each other and do not lock each other out.
  lock: `select id, epoch, nonce, seq, last_batch as "lastBatch" from partitions where id = any ($1) order by id for update`,
  // Guard: only the holder of this nonce may write the next number. With a suspect the owner has yet to show that it
  // survives: vanishing now is a strike.
  advance: `
    update partitions set
      seq = partitions.seq + 1,
      last_batch = batch.id,
      last_time_ms = greatest(last_time_ms, batch.time_ms),
      suspect = batch.suspect,
      strikes = case when batch.suspect is null then 0 else strikes end,
      is_clean = batch.suspect is null
    from unnest($1::integer[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::text[])
      as batch (partition, epoch, nonce, seq, id, time_ms, suspect)
    where partitions.id = batch.partition
      and partitions.epoch = batch.epoch and partitions.nonce = batch.nonce and partitions.seq = batch.seq
    returning partitions.id`,
};

interface PartitionRow {
  readonly id: number;
  readonly epoch: number;
  readonly nonce: string | null;
  readonly seq: number;
  readonly lastBatch: string | null;
}

/** All batches in one transaction: one sync of the disk for all partitions that are ready. */
export async function commitBatches(
  postgres: Postgres,
  batches: readonly CommitBatch[],
): Promise<readonly CommitOutcome[]> {
  const passed: CommitBatch[] = [];
  let outcomes: readonly CommitOutcome[];
  try {
    outcomes = await transaction(postgres.pool, async (connection) => {
      const outcomes = await advance(postgres, connection, batches);
      passed.push(...batches.filter((_, i) => outcomes[i]!.kind === "committed"));
      if (passed.length > 0) await writeBatches(connection, passed);
      return outcomes;
    });
  } catch (error) {
    const reason = whyRefused(error);
    if (reason === undefined) throw error;
    return batches.map((): CommitOutcome => ({ kind: "refused", reason }));
  }
  postgres.wakeUps.announce(new Set(passed.flatMap(keysOf)));
  return outcomes;
}

async function advance(
  { incarnation }: Postgres,
  connection: Connection,
  batches: readonly CommitBatch[],
): Promise<readonly CommitOutcome[]> {
  const ids = new Set(batches.map(({ fence }) => fence.partition));
  assert.equal(ids.size, batches.length, "one batch for each partition");
  const locked = await rows<PartitionRow>(connection, SQL.lock, [[...ids]]);
  const ours = batches.filter(({ fence }) => fence.incarnation === incarnation);
  const guards = ours.map(({ id, timeMs, suspect, fence }) => ({ id, timeMs, suspect, ...fence }));
  const values = columns(guards, "partition", "epoch", "nonce", "seq", "id", "timeMs", "suspect");
  const advanced = new Set((await rows<{ id: number }>(connection, SQL.advance, values)).map(({ id }) => id));
  return batches.map((batch): CommitOutcome => {
    if (advanced.has(batch.fence.partition) && ours.includes(batch)) return { kind: "committed" };
    const row = locked.find(({ id }) => id === batch.fence.partition);
    return { kind: ours.includes(batch) && isResend(batch, row) ? "alreadyApplied" : "fenced" };
  });
}

function isResend({ id, fence }: CommitBatch, row: PartitionRow | undefined): boolean {
  const isHolder = row?.epoch === fence.epoch && row.nonce === fence.nonce;
  return isHolder && row.seq === fence.seq + 1 && row.lastBatch === id;
}

function keysOf(batch: CommitBatch): readonly string[] {
  return [
    ...(batch.records.length > 0 ? [wakeKey.versions(batch.fence.partition)] : []),
    ...batch.tasks.map(({ queue }) => wakeKey.queue(queue)),
    ...batch.mail.map(({ partition }) => wakeKey.inbox(partition)),
    ...batch.replies.map(({ process }) => wakeKey.replies(process)),
  ];
}

/** Of these the server says by itself that nothing was written: class 53 is a lack of room, 25006 a read-only server. */
export function whyRefused(error: unknown): string | undefined {
  if (!(error instanceof DatabaseError) || error.code === undefined) return undefined;
  return error.code.startsWith("53") || error.code === "25006" ? error.message : undefined;
}
