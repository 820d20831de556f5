import assert from "node:assert/strict";
import type { QueryResult } from "pg";
import type { CommitBatch, CommitOutcome, Task } from "../../store/contract.ts";
import { are } from "./by-index.ts";
import { columns, type Connection, rows, type Statement } from "./database.ts";
import { answerOf, whyRefused } from "./faults.ts";
import type { Postgres } from "./postgres.ts";
import { type Pack, packsOf, SQL as PACKS } from "./packs.ts";
import { finishPurges } from "./purge.ts";
import type { Seated } from "./seats.ts";
import { SQL as TASKS } from "./tasks.ts";
import { wakeKey } from "./wake-ups.ts";
import {
  beginnings,
  type Consumed,
  consumedBy,
  GUARD_FAILED,
  leasedBy,
  partConsumedBy,
  statementsOf,
  unpackedBy,
} from "./write.ts";

export const SQL = {
  // In order of their ids, so that two commits of the same partitions wait for each other and do not lock each other out.
  lock: `select id, epoch, nonce, seq, last_batch as "lastBatch" from partitions where id = any ($1) order by id for update`,
  present: `
    select asked.partition, count(*) as count from unnest($1::integer[], $2::bigint[]) as asked (partition, id)
    join inbox on ${are(["inbox.partition", "inbox.id"], ["asked.partition", "asked.id"])} group by asked.partition`,
  // Guard: only the holder of this nonce may write the next number, and the call divides by zero if one of the batches is
  // not its. With a suspect the owner has yet to show that it survives: vanishing now is a strike.
  advance: `
    with batch as materialized (
      select * from unnest($1::integer[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::text[])
        as batch (partition, epoch, nonce, seq, id, time_ms, suspect)
    ), locked as materialized (
      select id from partitions where id in (select partition from batch) order by id for update
    ), advanced as (
      update partitions set
        seq = partitions.seq + 1,
        last_batch = batch.id,
        last_time_ms = greatest(last_time_ms, batch.time_ms),
        suspect = batch.suspect,
        strikes = case when batch.suspect is null then 0 else strikes end,
        is_clean = batch.suspect is null
      from batch join locked on locked.id = batch.partition
      where partitions.id = batch.partition
        and partitions.epoch = batch.epoch and partitions.nonce = batch.nonce and partitions.seq = batch.seq
      returning partitions.id
    )
    select 1 / (count(*) = (select count(*) from batch))::integer from advanced`,
  // The same for one batch alone, as on a quiet system nearly all are: half the work for the server.
  advanceOne: `
    with advanced as (
      update partitions set
        seq = seq + 1,
        last_batch = $5::text,
        last_time_ms = greatest(last_time_ms, $6::bigint),
        suspect = $7::text,
        strikes = case when $7::text is null then 0 else strikes end,
        is_clean = $7::text is null
      where id = $1::integer and epoch = $2::bigint and nonce = $3::text and seq = $4::bigint
      returning 1
    )
    select 1 / count(*) from advanced`,
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
  const ids = new Set(batches.map(({ fence }) => fence.partition));
  assert.equal(ids.size, batches.length, "one batch for each partition");
  const { seats, wakeUps, watched } = postgres;
  const seated = seats.reserve(batches.flatMap(wanted));
  const packs = packsOf(batches, seated, postgres.fleet);
  let leased: ReadonlyMap<string, string> = new Map();
  try {
    const done = await commitAll(postgres, batches, seated, packs);
    leased = done.leased;
    const passed = batches.filter((_, i) => done.outcomes[i]!.kind === "committed");
    for (const { fence } of passed) wakeUps.forgetOwner(fence.partition);
    if (done.isHinted) wakeUps.announceHere(hintsOf(passed, seated));
    else {
      wakeUps.announceElsewhere(versionsOf(passed));
      wakeUps.announce(hintsOf(passed, leased));
    }
    // Whoever looked meanwhile has found neither the packs nor their tasks.
    wakeUps.announce(done.unpacked.map(wakeKey.queue));
    wakeUps.tellHere(new Set(passed.flatMap((batch) => watched.keysOf(batch))));
    await freeDoubtful(postgres, batches, done.outcomes);
    return done.outcomes;
  } catch (error) {
    const reason = whyRefused(error);
    if (reason !== undefined) return batches.map((): CommitOutcome => ({ kind: "refused", reason }));
    for (const { id, tasks } of batches) {
      // Also those in packs by their tokens: it may have been written without packs after all.
      const tokens = tasks.map(({ token }) => token).filter((token) => seated.has(token));
      const leased = packs.filter(({ leaseMs, name }) => leaseMs !== null && name.startsWith(`${id}/`));
      seats.doubt(id, [...tokens, ...leased.map(({ name }) => name)]);
    }
    throw error;
  } finally {
    for (const { task, seat } of seated.values()) seat.give(task, leased.get(task.token));
  }
}

/** A batch that was committed when nobody heard of it has leased its tasks to nobody. */
async function freeDoubtful(
  { seats, database, wakeUps }: Postgres,
  batches: readonly CommitBatch[],
  outcomes: readonly CommitOutcome[],
): Promise<void> {
  for (const [i, { id, tasks }] of batches.entries()) {
    const names = seats.settleDoubt(id);
    if (names.length === 0 || outcomes[i]!.kind !== "alreadyApplied") continue;
    try {
      await database.run(PACKS.freePacks, [names]);
      await database.run(TASKS.free, [names]);
    } catch {
      // Their leases run out.
    }
    wakeUps.announce(new Set(tasks.map(({ queue }) => wakeKey.queue(queue))));
  }
}

/** What became of the batches, and the names of the tasks that were leased with them. */
interface Done {
  readonly outcomes: readonly CommitOutcome[];
  readonly leased: ReadonlyMap<string, string>;
  /** Queues whose tasks were taken out of packs. */
  readonly unpacked: readonly string[];
  /** Whether the hints for others went with it. */
  readonly isHinted: boolean;
}

/**
 * As a rule every batch passes its guard: then one round trip does it. If not, nothing was written, and we look closer.
 */
async function commitAll(
  postgres: Postgres,
  batches: readonly CommitBatch[],
  seated: ReadonlyMap<string, Seated>,
  packs: readonly Pack[],
): Promise<Done> {
  if (batches.every(({ fence }) => fence.incarnation === postgres.incarnation)) {
    try {
      const statements = [advancing(batches), ...statementsOf(batches, false, seated, packs)];
      const hints = hintsOf(batches, seated);
      // Of what somebody waits for here others need not hear at once; nor of what is only watched.
      const isUrgent = hints.values().some((key) => !postgres.wakeUps.isAwaitedHere(key));
      const hint = isUrgent ? postgres.wakeUps.behind([...hints, ...versionsOf(batches)]) : undefined;
      const answers = await postgres.database.atOnce(statements, hint);
      const outcomes = batches.map((): CommitOutcome => ({ kind: "committed" }));
      const leased = leasedBy(statements, answers, packs);
      return { outcomes, leased, unpacked: unpackedBy(statements, answers), isHinted: hint !== undefined };
    } catch (error) {
      if (!GUARD_FAILED.has(answerOf(error)?.code ?? "")) throw error;
    }
  }
  return commitEach(postgres, batches, seated);
}

/** With a look at everything first. Tasks go alone: of those in packs nobody would see that they are there already. */
async function commitEach(
  postgres: Postgres,
  batches: readonly CommitBatch[],
  seated: ReadonlyMap<string, Seated>,
): Promise<Done> {
  return postgres.database.transaction(async (connection) => {
    const ids = batches.map(({ fence }) => fence.partition);
    const locked = new Map((await rows<PartitionRow>(connection, SQL.lock, [ids])).map((row) => [row.id, row]));
    const present = await messagesPresent(connection, batches);
    const outcomes = batches.map((batch): CommitOutcome => {
      const { partition, incarnation } = batch.fence;
      if (incarnation !== postgres.incarnation) return { kind: "fenced" };
      const kind = judge(batch, locked.get(partition));
      const isWhole = (present.get(partition) ?? 0) === anyConsumedBy(batch).length;
      return { kind: kind === "committed" && !isWhole ? "fenced" : kind };
    });
    const passed = batches.filter((_, i) => outcomes[i]!.kind === "committed");
    if (passed.length === 0) return { outcomes, leased: new Map(), unpacked: [], isHinted: false };
    const later = beginnings(passed);
    const begun = passed.flatMap(({ records }) =>
      records.filter(({ entity, version }) => version === 1 || version === later.get(entity)),
    );
    await finishPurges(
      connection,
      begun.map(({ entity }) => entity),
    );
    const statements = [advancing(passed), ...statementsOf(passed, true, seated)];
    const answers: QueryResult[] = [];
    for (const { sql, values } of statements) answers.push(await connection.run(sql, values));
    const leased = leasedBy(statements, answers, []);
    return { outcomes, leased, unpacked: unpackedBy(statements, answers), isHinted: false };
  });
}

function anyConsumedBy(batch: CommitBatch): readonly Consumed[] {
  return [...consumedBy(batch), ...partConsumedBy(batch)];
}

/** What one batch both sends out and withdraws nobody is given. */
function wanted({ tasks, revoke }: CommitBatch): readonly Task[] {
  return revoke.length === 0 ? tasks : tasks.filter(({ token }) => !revoke.includes(token));
}

/** How many of the messages that each partition's batch consumes are there. All, unless the store has lost some. */
async function messagesPresent(
  connection: Connection,
  batches: readonly CommitBatch[],
): Promise<ReadonlyMap<number, number>> {
  const values = columns(batches.flatMap(anyConsumedBy), "partition", "id");
  const found = await rows<{ partition: number; count: number }>(connection, SQL.present, values);
  return new Map(found.map(({ partition, count }) => [partition, count]));
}

function judge({ id, fence }: CommitBatch, row: PartitionRow | undefined): "committed" | "alreadyApplied" | "fenced" {
  if (row?.epoch !== fence.epoch || row.nonce !== fence.nonce) return "fenced";
  if (row.seq === fence.seq) return "committed";
  return row.seq === fence.seq + 1 && row.lastBatch === id ? "alreadyApplied" : "fenced";
}

function advancing(batches: readonly CommitBatch[]): Statement {
  const [first] = batches;
  if (batches.length === 1 && first !== undefined) {
    const { id, timeMs, suspect, fence } = first;
    const { partition, epoch, nonce, seq } = fence;
    return { sql: SQL.advanceOne, values: [partition, epoch, nonce, seq, id, timeMs, suspect] };
  }
  const guards = batches.map(({ id, timeMs, suspect, fence }) => ({ id, timeMs, suspect, ...fence }));
  const values = columns(guards, "partition", "epoch", "nonce", "seq", "id", "timeMs", "suspect");
  return { sql: SQL.advance, values };
}

function versionsOf(batches: readonly CommitBatch[]): readonly string[] {
  return batches.filter(({ records }) => records.length > 0).map(({ fence }) => wakeKey.versions(fence.partition));
}

/** @param given tasks that somebody has already, by token */
function hintsOf(batches: readonly CommitBatch[], given: ReadonlyMap<string, unknown>): ReadonlySet<string> {
  return new Set(
    batches.flatMap(({ tasks, mail, replies }) => [
      ...tasks.filter(({ token }) => !given.has(token)).map(({ queue }) => wakeKey.queue(queue)),
      ...mail.map(({ partition }) => wakeKey.inbox(partition)),
      ...replies.map(({ process }) => wakeKey.replies(process)),
    ]),
  );
}
