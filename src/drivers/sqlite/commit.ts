import type { CommitBatch, CommitOutcome, Header, JournalRecord } from "../../store/contract.ts";
import { StoreError } from "../../store/store-error.ts";
import { consume, idsOf, postReply } from "../memory/inbox.ts";
import { addTask, revokeTask } from "../memory/tasks.ts";
import type { FileBatch } from "./file/commit.ts";
import type { Columns, SqlValue } from "./file/database.ts";
import { FileError } from "./file/failure.ts";
import { checkPartition, type Sqlite } from "./sqlite.ts";

const NO_VALUES: readonly SqlValue[] = [];

interface Mail {
  readonly id: number;
  readonly text: string;
}

/** The file first; what lives in memory follows once that is on the disk. */
export async function commitBatches(
  sqlite: Sqlite,
  batches: readonly CommitBatch[],
): Promise<readonly CommitOutcome[]> {
  const mail = batches.map((batch) => addressMail(sqlite, batch));
  for (const batch of batches) sqlite.newest.sent(batch);
  try {
    const outcomes = await sqlite.writer.call(
      "commit",
      batches.map((batch, i) => fileBatch(sqlite, batch, mail[i]!)),
    );
    for (const [i, batch] of batches.entries()) {
      if (outcomes[i]!.kind === "committed") release(sqlite, batch, mail[i]!);
      if (outcomes[i]!.kind !== "committed") sqlite.young.doubt(batch);
    }
    return outcomes;
  } catch (error) {
    for (const batch of batches) sqlite.young.doubt(batch);
    if (!(error instanceof FileError) || !error.isTrouble) throw error;
    // By its name, so that nobody's values are suspected of it.
    if (!error.isRefusal) throw new StoreError("STORE_UNAVAILABLE", error.message, { cause: error });
    return batches.map((): CommitOutcome => ({ kind: "refused", reason: error.message }));
  }
}

/** A row of mail has the id of its message in memory, so that one position names both. */
function addressMail({ inbox }: Sqlite, batch: CommitBatch): readonly Mail[] {
  return batch.mail.map(({ partition, text }) => ({ id: inbox.reserve(partition), text }));
}

function fileBatch({ mailIds }: Sqlite, batch: CommitBatch, mail: readonly Mail[]): FileBatch {
  const { fence, id, behind = null, timeMs, suspect, discard, purge } = batch;
  checkPartition(fence.partition);
  return {
    fence,
    id,
    behind,
    timeMs,
    suspect,
    consumedMail: mailIds.size === 0 ? [] : consumedIds(batch).filter((id) => mailIds.has(id)),
    records: recordColumns(batch.records),
    snapshots: columns(batch.snapshots, "entity", "version", "format", "text"),
    headers: headerColumns(batch.headers),
    wakes: [batch.wakes.map(({ entity }) => entity), batch.wakes.map(({ atMs }) => atMs)],
    mail: columns(mail, "id", "text"),
    discard,
    deadLetters: columns(batch.deadLetters, "id", "class", "queue", "entity", "atMs", "text"),
    listings: columns(batch.listings ?? [], "list", "id", "entity", "atMs", "text"),
    purge,
    ...(batch.cut !== undefined && { cut: batch.cut }),
  };
}

function consumedIds({ consumed }: CommitBatch): readonly number[] {
  return consumed === null ? [] : idsOf(consumed);
}

/** The commit is durable: now the effects that live in memory, none of which can fail. */
function release({ memory, inbox, mailIds, watchers, young }: Sqlite, batch: CommitBatch, mail: readonly Mail[]): void {
  consume(memory, 0, batch.consumed);
  if (mailIds.size > 0) for (const id of consumedIds(batch)) mailIds.delete(id);
  for (const task of batch.tasks) addTask(memory, task);
  // After the tasks: what one batch both sends out and withdraws has to be gone.
  for (const token of batch.revoke) revokeTask(memory, token);
  for (const { id, text } of mail) {
    mailIds.add(id);
    // Mail is never refused, not even a start.
    inbox.appendAt(id, { partition: 0, start: false, text });
  }
  for (const reply of batch.replies) postReply(memory, reply);
  young.committed(batch);
  watchers.committed(batch);
}

/** As `columns` does it, with the fields by their names: there is one of these for nearly every step. */
function recordColumns(records: readonly JournalRecord[]): Columns {
  return [
    records.map(({ entity }) => entity),
    records.map(({ version }) => version),
    records.map(({ count }) => count),
    records.map(({ format }) => format),
    records.map(({ text }) => text),
  ];
}

/** Likewise: nearly every execution that begins or ends has one. */
function headerColumns(headers: readonly Header[]): Columns {
  return [
    headers.map(({ entity }) => entity),
    headers.map((header) => header.class),
    headers.map(({ status }) => status),
    headers.map(({ workflow }) => workflow),
    headers.map(({ tenant }) => tenant),
    headers.map(({ createdAtMs }) => createdAtMs),
    headers.map(({ endedAtMs }) => endedAtMs),
    headers.map(({ version }) => version),
  ];
}

export function columns<Item>(
  items: readonly Item[],
  ...fields: readonly { [Field in keyof Item]: Item[Field] extends SqlValue ? Field : never }[keyof Item][]
): Columns {
  if (items.length === 0) return fields.map(() => NO_VALUES);
  return fields.map((field) => items.map((item) => item[field] as SqlValue));
}
