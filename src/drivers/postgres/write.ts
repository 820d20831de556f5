import assert from "node:assert/strict";
import type { QueryResult } from "pg";
import type { CommitBatch, EntityKey, JournalRecord, Settlement } from "../../store/contract.ts";
import { are, is, IS_LEASED } from "./by-index.ts";
import { LEASE_NOW_MS, WALL_NOW_MS } from "./clock.ts";
import { columns, type Statement } from "./database.ts";
import { packed, unpacked } from "./encoding.ts";
import { handedOf, idsOf, type Part, partOf, posting } from "./inbox.ts";
import { type Pack, packsNamed, refOf, SQL as PACKS } from "./packs.ts";
import { purging } from "./purge.ts";
import type { Seated } from "./seats.ts";
import { idOf } from "./tasks.ts";

/** Rows that one cut removes: as many as come together between two of them, and some of what was there before. */
const CUT_ROWS = 10_000;

export const SQL = {
  // Guard: what was decided from messages that a store which went back does not have is of a past that never was.
  consume: `
    with consumed as (
      delete from inbox using unnest($1::integer[], $2::bigint[]) as gone (partition, id)
      where ${are(["inbox.partition", "inbox.id"], ["gone.partition", "gone.id"])} returning 1
    )
    select 1 / (count(*) = cardinality($1))::integer from consumed`,
  consumePart: `
    with consumed as (
      update inbox set taken = part.taken + part.count
      from unnest($1::integer[], $2::bigint[], $3::integer[], $4::integer[]) as part (partition, id, taken, count)
      where ${are(["inbox.partition", "inbox.id"], ["part.partition", "part.id"])} and inbox.taken = part.taken returning 1
    )
    select 1 / (count(*) = cardinality($1))::integer from consumed`,
  // Guard: the first new version of an entity has to be the next one, or this divides by zero; the driver has looked at
  // those that follow it.
  appendRecords: `
    with appended as (
      insert into journal (entity, version, count, format, text)
      select entity, version, count, format, text
      from unnest(
        ${unpacked("$2")}, ${unpacked("$3")}, $4::bigint[], $5::bigint[], $6::integer[], $7::integer[]
      ) as record (entity, text, first, version, count, format)
      where record.first = coalesce((
        select last.version + last.count from journal as last
        where last.entity = record.entity order by last.version desc limit 1
      ), 1)
        -- Of one that is being removed the journal may be gone, and something else not: what begins now would go with it.
        and (record.first > 1 or not exists (select from purges where ${is("purges.entity", "record.entity")}))
      returning 1
    )
    select 1 / (count(*) = cardinality($4))::integer from appended`,
  // The same for what may begin later than at version 1, if nothing of it is there.
  appendLater: `
    with appended as (
      insert into journal (entity, version, count, format, text)
      select entity, version, count, format, text
      from unnest(
        ${unpacked("$2")}, ${unpacked("$3")}, $4::bigint[], $5::bigint[], $6::integer[], $7::integer[]
      ) as record (entity, text, first, version, count, format)
      where record.first = coalesce((
        select last.version + last.count from journal as last
        where last.entity = record.entity order by last.version desc limit 1
      ), record.first) and not exists (select from purges where ${is("purges.entity", "record.entity")})
      returning 1
    )
    select 1 / (count(*) = cardinality($4))::integer from appended`,
  cutJournals: `
    delete from journal using (
      select gone.entity, record.version from unnest($1::text[], $2::bigint[]) as gone (entity, below)
      cross join lateral (
        select version from journal
        where entity = gone.entity and version < gone.below and version + count <= gone.below order by version limit $3
      ) as record
      -- As one piece, before anything is looked up with it.
      offset 0
    ) as record
    where ${are(["journal.entity", "journal.version"], ["record.entity", "record.version"])}`,
  putSnapshots: `
    insert into snapshots (entity, version, format, text)
    select * from unnest($1::text[], $2::bigint[], $3::integer[], $4::text[])
    on conflict (entity) do update set version = excluded.version, format = excluded.format, text = excluded.text
    where snapshots.version <= excluded.version`,
  // An entity that begins has neither row, as a rule: to look first costs as much as the row.
  addHeaders: `
    insert into headers (entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, version)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])`,
  addWakes: `
    insert into wakes (entity, partition, at_ms) select * from unnest($1::text[], $2::integer[], $3::bigint[])`,
  putHeaders: `
    insert into headers (entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, version)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])
    on conflict (entity) do update set class = excluded.class, status = excluded.status, workflow = excluded.workflow,
      tenant = excluded.tenant, created_at_ms = excluded.created_at_ms, ended_at_ms = excluded.ended_at_ms,
      version = excluded.version`,
  setWakes: `
    insert into wakes (entity, partition, at_ms) select * from unnest($1::text[], $2::integer[], $3::bigint[])
    on conflict (entity) do update set at_ms = excluded.at_ms`,
  clearWakes: `delete from wakes where entity = any ($1)`,
  // To look first whether a token is there costs as much as the row, and none ever is, except by a mistake of ours.
  addTasks: addingTasks("null"),
  addLeasedTasks: addingLeasedTasks(""),
  addMissingTasks: addingLeasedTasks("on conflict (token) do nothing"),
  revokeTasks: `
    with revoked as materialized (
      select tasks.token, lease_until_ms from unnest($1::text[]) as asked (token)
      join tasks on ${is("tasks.token", "asked.token")} order by asked.token collate "C" for update of tasks
    ), removed as (
      delete from tasks using revoked where ${is("tasks.token", "revoked.token")} and revoked.lease_until_ms is null
    )
    update tasks set is_revoked = true
    from revoked where ${is("tasks.token", "revoked.token")} and revoked.lease_until_ms is not null`,
  // For batches that lock tasks in two statements.
  lockTasks: `
    select from unnest($1::text[]) as asked (token)
    join tasks on ${is("tasks.token", "asked.token")} order by asked.token collate "C" for update of tasks`,
  // Tasks whose results came with the batch and not through the inbox. In order of their tokens, as everybody locks them.
  settleTasks: `
    with held as materialized (
      select tasks.token from unnest($1::bigint[], $2::text[]) as done (id, token)
      join tasks on ${is("tasks.token", "done.token")} and tasks.id + 0 = done.id
      where ${IS_LEASED} order by done.token collate "C" for update of tasks
    )
    delete from tasks using held where ${is("tasks.token", "held.token")}`,
  putReplies: `
    insert into replies (process, request, text, at_ms)
    select process, request, text, ${WALL_NOW_MS}
    from unnest($1::text[], $2::text[], $3::text[]) as reply (process, request, text)`,
  deleteDeadLetters: `delete from dead_letters where id = any ($1)`,
  putDeadLetters: `
    insert into dead_letters (id, class, queue, entity, at_ms, text)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[])
    on conflict (id) do update set class = excluded.class, queue = excluded.queue, entity = excluded.entity,
      at_ms = excluded.at_ms, text = excluded.text`,
  putListings: `
    insert into listings (list, id, entity, at_ms, text)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    on conflict (list, id) do update set entity = excluded.entity, at_ms = excluded.at_ms, text = excluded.text`,
  deleteListings: `
    delete from listings using unnest($1::text[], $2::text[]) as gone (list, id)
    where ${are(["listings.list", "listings.id"], ["gone.list", "gone.id"])}`,
};

/** In the order given: what is unnested comes in that order, and nothing else is joined to it. */
function addingTasks(leaseUntilMs: string): string {
  return `
    insert into tasks (token, entity, partition, queue, priority, queued_at_ms, lease_until_ms, text)
    select token, entity, partition, queue, priority, ${WALL_NOW_MS}, ${leaseUntilMs}, text
    from unnest(
      ${unpacked("$2")}, ${unpacked("$3")}, ${unpacked("$4")}, ${unpacked("$5")}, $6::integer[], $7::integer[], $8::bigint[]
    ) as task (token, entity, queue, text, partition, priority, lease_ms)`;
}

/** Answers those that were leased as they were written. */
function addingLeasedTasks(onConflict: string): string {
  return `
    with added as (
      ${addingTasks(`${LEASE_NOW_MS} + lease_ms`)}
      ${onConflict}
      returning token, id, lease_until_ms
    )
    select token, id from added where lease_until_ms is not null`;
}

const ANSWERING: ReadonlySet<string> = new Set([SQL.addLeasedTasks, SQL.addMissingTasks]);
const PACKING: ReadonlySet<string> = new Set([PACKS.addPacks]);
const UNPACKING: ReadonlySet<string> = new Set([PACKS.unpack, PACKS.unpackAnyOf]);

/** A guard that does not hold divides by zero; what is there already is not unique. Nothing was written. */
export const GUARD_FAILED: ReadonlySet<string> = new Set(["22012", "23505"]);

/**
 * Everything the batches say, once they have passed the guard: one statement for each kind of row, in this order.
 *
 * @param isCareful a task that is there already is left alone and a header replaced, instead of failing all
 * @param seated tasks that are leased as they are written, by token
 * @param packs of the tasks those that are written together
 */
export function statementsOf(
  batches: readonly CommitBatch[],
  isCareful: boolean,
  seated: ReadonlyMap<string, Seated>,
  packs: readonly Pack[] = [],
): readonly Statement[] {
  const consumed = batches.flatMap(consumedBy);
  const parts = batches.flatMap(partConsumedBy);
  const settled = batches.flatMap(({ consumed }) => handedOf(consumed).map(({ settlement }) => settlement));
  const unpacking = packsNamed(settled.map(({ ref }) => ref));
  const isPacked = new Set(packs.flatMap(({ tasks }) => tasks));
  const tasks = batches.flatMap((batch) =>
    batch.tasks
      .filter((task) => !isPacked.has(task))
      .map((task) => ({ ...task, leaseMs: seated.get(task.token)?.leaseMs ?? null })),
  );
  const revoking = batches.filter(({ revoke }) => revoke.length > 0);
  const revoked = revoking.flatMap(({ revoke }) => revoke);
  const mail = batches.flatMap((batch) => batch.mail);
  const replies = batches.flatMap((batch) => batch.replies);
  const discarded = batches.flatMap(({ discard }) => discard);
  const letters = lastOf(
    "id",
    batches.flatMap(({ deadLetters }) => deadLetters),
  );
  const cuts = batches.flatMap(({ cut = [] }) => cut);
  const purged = batches.flatMap(({ purge }) => purge);
  return [
    ...write(SQL.consume, consumed, "partition", "id"),
    ...write(SQL.consumePart, parts, "partition", "id", "taken", "count"),
    ...(revoked.length > 0
      ? [{ sql: PACKS.unpackAnyOf, values: [revoking.map(({ fence }) => fence.partition), revoked, unpacking] }]
      : unpacking.length > 0
        ? [{ sql: PACKS.unpack, values: [unpacking] }]
        : []),
    ...(settled.length > 0 && revoked.length > 0
      ? [{ sql: SQL.lockTasks, values: [[...settled.map(({ token }) => token), ...revoked]] }]
      : []),
    ...write(SQL.settleTasks, settled.map(namedTask), "id", "token"),
    ...entityStatements(batches, isCareful),
    // Before those that go alone: as the rest of what goes in packs they come behind it.
    ...writeTexts(PACKS.addPacks, packs, ["name", "queue", "texts"], ["partition", "priority", "size", "leaseMs"]),
    ...writeTexts(
      isCareful ? SQL.addMissingTasks : seated.size > 0 ? SQL.addLeasedTasks : SQL.addTasks,
      tasks,
      ["token", "entity", "queue", "text"],
      ["partition", "priority", "leaseMs"],
    ),
    // After the tasks: what one batch both sends out and withdraws has to be gone.
    ...(revoked.length > 0 ? [{ sql: SQL.revokeTasks, values: [revoked] }] : []),
    ...(mail.length > 0 ? [posting(mail)] : []),
    ...write(SQL.putReplies, replies, "process", "request", "text"),
    ...(discarded.length > 0 ? [{ sql: SQL.deleteDeadLetters, values: [discarded] }] : []),
    ...write(SQL.putDeadLetters, letters, "id", "class", "queue", "entity", "atMs", "text"),
    ...listingStatements(batches),
    ...write(SQL.cutJournals, cuts, "entity", "belowVersion").map(({ sql, values }) => {
      return { sql, values: [...values, CUT_ROWS] };
    }),
    // Last: whatever else a batch says of an entity it purges, nothing of it is left.
    ...(purged.length > 0 ? purging(purged) : []),
  ];
}

/** The names of those that were leased as they were written, by token. */
export function leasedBy(
  statements: readonly Statement[],
  answers: readonly QueryResult[],
  packs: readonly Pack[],
): ReadonlyMap<string, string> {
  const added = answersTo(ANSWERING, statements, answers) as readonly { readonly token: string; readonly id: number }[];
  const leased = new Map(added.map(({ token, id }) => [token, String(id)]));
  const found = answersTo(PACKING, statements, answers) as readonly { readonly name: string; readonly id: number }[];
  const ids = new Map(found.map(({ name, id }) => [name, id]));
  for (const { name, size, tasks } of packs) {
    const id = ids.get(name);
    if (id !== undefined) for (const [i, { token }] of tasks.entries()) leased.set(token, refOf(name, id, i, size));
  }
  return leased;
}

/** Queues with tasks that stood in packs when somebody looked. */
export function unpackedBy(statements: readonly Statement[], answers: readonly QueryResult[]): readonly string[] {
  const found = answersTo(UNPACKING, statements, answers) as readonly { readonly queue: string }[];
  return found.map(({ queue }) => queue);
}

function answersTo(
  asked: ReadonlySet<string>,
  statements: readonly Statement[],
  answers: readonly QueryResult[],
): readonly unknown[] {
  return answers.filter((_, i) => asked.has(statements[i]!.sql)).flatMap((answer) => answer.rows as readonly unknown[]);
}

function namedTask({ ref, token }: Settlement): { readonly id: number; readonly token: string } {
  return { id: idOf(ref), token };
}

export interface Consumed {
  readonly partition: number;
  readonly id: number;
}

export function consumedBy({ fence, consumed }: CommitBatch): readonly Consumed[] {
  return (consumed === null ? [] : idsOf(consumed)).map((id) => ({ partition: fence.partition, id }));
}

/** Of a row that did not fit into a read only the first messages are. */
export function partConsumedBy({ fence, consumed }: CommitBatch): readonly (Consumed & Part)[] {
  const part = partOf(consumed);
  return part === undefined ? [] : [{ partition: fence.partition, ...part }];
}

function listingStatements(batches: readonly CommitBatch[]): readonly Statement[] {
  const all = batches.flatMap(({ listings = [] }) => listings);
  const last = [...new Map(all.map((one) => [JSON.stringify([one.list, one.id]), one])).values()];
  const on = last.filter(({ text }) => text !== null);
  const off = last.filter(({ text }) => text === null);
  return [
    ...write(SQL.putListings, on, "list", "id", "entity", "atMs", "text"),
    ...write(SQL.deleteListings, off, "list", "id"),
  ];
}

/** Where the journals of entities may begin that are not there. */
export function beginnings(batches: readonly CommitBatch[]): ReadonlyMap<EntityKey, number> {
  return new Map(batches.flatMap(({ cut = [] }) => cut.map(({ entity, belowVersion }) => [entity, belowVersion])));
}

function entityStatements(batches: readonly CommitBatch[], isCareful: boolean): readonly Statement[] {
  const records = withFirstVersions(batches.flatMap(({ records }) => records));
  const begun = beginnings(batches);
  const isLater = ({ entity, first }: PlacedRecord): boolean => begun.get(entity) === first;
  const later = begun.size === 0 ? [] : records.filter(isLater);
  const following = begun.size === 0 ? records : records.filter((record) => !isLater(record));
  const byVersion = batches.flatMap(({ snapshots }) => snapshots).toSorted((a, b) => a.version - b.version);
  const headers = lastOf(
    "entity",
    batches.flatMap(({ headers }) => headers),
  );
  const shown = ["class", "status", "workflow", "tenant", "createdAtMs", "endedAtMs", "version"] as const;
  const all = batches.flatMap(({ fence, wakes }) => wakes.map((wake) => ({ ...wake, partition: fence.partition })));
  const wakes = lastOf("entity", all);
  const set = wakes.filter(({ atMs }) => atMs !== null);
  const isNew = beginningIn(isCareful ? [] : records);
  const cleared = wakes.filter(({ atMs }) => atMs === null);
  return [
    ...writeTexts(SQL.appendRecords, following, ["entity", "text"], ["first", "version", "count", "format"]),
    ...writeTexts(SQL.appendLater, later, ["entity", "text"], ["first", "version", "count", "format"]),
    ...write(SQL.putSnapshots, lastOf("entity", byVersion), "entity", "version", "format", "text"),
    ...write(SQL.addHeaders, headers.filter(isNew), "entity", ...shown),
    ...write(SQL.putHeaders, not(isNew, headers), "entity", ...shown),
    ...write(SQL.addWakes, set.filter(isNew), "entity", "partition", "atMs"),
    ...write(SQL.setWakes, not(isNew, set), "entity", "partition", "atMs"),
    ...write(SQL.clearWakes, cleared, "entity"),
  ];
}

interface OfEntity {
  readonly entity: EntityKey;
}

/** Tells what is of an entity whose first event is among these. */
function beginningIn(records: readonly JournalRecord[]): (one: OfEntity) => boolean {
  const begun = new Set(records.filter(({ version }) => version === 1).map(({ entity }) => entity));
  return ({ entity }) => begun.has(entity);
}

function not<Item>(matches: (item: Item) => boolean, items: readonly Item[]): readonly Item[] {
  return items.filter((item) => !matches(item));
}

/** No rows, no statement. */
function write<Item>(sql: string, items: readonly Item[], ...fields: readonly (keyof Item)[]): readonly Statement[] {
  return items.length === 0 ? [] : [{ sql, values: columns(items, ...fields) }];
}

/** The same, with the texts before the other fields, packed: of these there are many. */
function writeTexts<Text extends string, Item extends Readonly<Record<Text, string>>>(
  sql: string,
  items: readonly Item[],
  texts: readonly Text[],
  others: readonly (keyof Item)[],
): readonly Statement[] {
  const first = packed(...texts.map((field) => items.map((item): string => item[field])));
  return write(sql, items, ...others).map(({ values }) => ({ sql, values: [...first, ...values] }));
}

interface PlacedRecord extends JournalRecord {
  /** The version of the first record of this entity in the call. */
  readonly first: number;
}

/** Makes sure that each entity's records follow each other without a gap; so only the first is left to be compared. */
function withFirstVersions(records: readonly JournalRecord[]): readonly PlacedRecord[] {
  const first = new Map<EntityKey, number>();
  const next = new Map<EntityKey, number>();
  for (const { entity, version, count } of records) {
    assert(count > 0, `a record of ${entity} without events`);
    assert.equal(version, next.get(entity) ?? version, `the next event of ${entity} has this number`);
    if (!first.has(entity)) first.set(entity, version);
    next.set(entity, version + count);
  }
  return records.map((record) => ({ ...record, first: first.get(record.entity)! }));
}

/** The last one for each key: one statement cannot write a row twice. */
function lastOf<Item>(key: keyof Item, items: readonly Item[]): readonly Item[] {
  return [...new Map(items.map((item) => [item[key], item])).values()];
}
