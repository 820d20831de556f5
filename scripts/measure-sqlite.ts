/**
 * Measures the embedded store beside a bare loop over `node:sqlite`: `node scripts/measure-sqlite.ts [seconds]`.
 *
 * Both write the same rows into the same tables with a sync for every transaction: for each step a record of 300 bytes,
 * for every fourth a header, and the number of the batch. The bare loop has no guards, no thread and no answers. They take
 * turns, so that what else the machine does hits both; only the ratio means anything on a machine that is shared.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { FileWriter } from "../src/drivers/sqlite/file/writer.ts";
import { openSqlite } from "../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../src/host/node-host.ts";
import { acquire } from "../src/store/conformance/owner.ts";
import { header, record } from "../src/store/conformance/things.ts";
import type { Header, JournalRecord } from "../src/store/contract.ts";

const SECONDS = Number(process.argv[2] ?? 1);
const TURNS = 5;
const STEPS = [1, 10, 100, 250, 1000];
const CALLERS = 64;
const TEXT = JSON.stringify([{ kind: "taskCompleted", output: "x".repeat(260) }]);

interface Batch {
  readonly records: readonly JournalRecord[];
  readonly headers: readonly Header[];
}

/** Something that commits one batch after the other. */
interface Side {
  readonly commit: (batch: Batch) => Promise<void> | void;
  readonly close: () => Promise<void> | void;
}

let batches = 0;

/** A new execution for each step, named in order of time as real ones are, of which every fourth has its header. */
function batchOf(steps: number): Batch {
  const number = ++batches;
  const entities = Array.from({ length: steps }, (_, i) => `execution/${String(number).padStart(9, "0")}-${i}`);
  return {
    records: entities.map((entity) => ({ ...record(entity, 1), text: TEXT })),
    headers: entities.filter((_, i) => i % 4 === 0).map((entity) => header(entity, { createdAtMs: number })),
  };
}

function bareLoop(folder: string): Side {
  const file = join(folder, "bare.db");
  // The same tables and settings, by the driver itself.
  new FileWriter(file, "incarnation").close();
  const db = new DatabaseSync(file);
  db.exec("pragma synchronous = full; pragma cache_size = -32768; pragma wal_autocheckpoint = 2000");
  const advance = db.prepare("update partitions set seq = seq + 1, last_batch = ? where id = 0");
  const append = db.prepare("insert into journal (entity, version, count, format, text) values (?, ?, ?, ?, ?)");
  const begin = db.prepare("insert into entities (entity, last, next_version) values (?, ?, ?)");
  const put = db.prepare(
    `update entities set class = ?, status = ?, workflow = ?, tenant = ?, created_at_ms = ?, ended_at_ms = ?,
    header_version = ? where entity = ?`,
  );
  return {
    commit: ({ records, headers }) => {
      db.exec("begin immediate");
      advance.run("batch");
      for (const { entity, version, count, format, text } of records) {
        const { lastInsertRowid } = append.run(entity, version, count, format, text);
        begin.run(entity, lastInsertRowid, version + count);
      }
      for (const one of headers) {
        const { entity, status, workflow, tenant, createdAtMs, endedAtMs, version } = one;
        put.run(one.class, status, workflow, tenant, createdAtMs, endedAtMs, version, entity);
      }
      db.exec("commit");
    },
    close: () => db.close(),
  };
}

async function theStore(folder: string): Promise<Side> {
  const store = await openSqlite({ file: join(folder, "store.db"), host: nodeHost });
  const owner = await acquire(store);
  return { commit: (batch) => owner.commit(batch), close: () => store.close() };
}

interface Speed {
  readonly commits: number;
  readonly rows: number;
}

async function turn({ commit }: Side, steps: number): Promise<Speed> {
  const startedMs = performance.now();
  let commits = 0;
  let rows = 0;
  let batch = batchOf(steps);
  while (performance.now() - startedMs < SECONDS * 1000) {
    const committing = commit(batch);
    commits += 1;
    rows += batch.records.length + batch.headers.length;
    // As the engine does: the next batch forms while this one is on its way.
    batch = batchOf(steps);
    await committing;
  }
  const tookS = (performance.now() - startedMs) / 1000;
  return { commits: commits / tookS, rows: rows / tookS };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
}

async function compare(steps: number): Promise<Readonly<Record<string, number | string>>> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-measure-"));
  const [bare, store] = [bareLoop(folder), await theStore(folder)];
  const speeds: { readonly bare: Speed; readonly store: Speed }[] = [];
  for (let i = 0; i < TURNS; i++) speeds.push({ bare: await turn(bare, steps), store: await turn(store, steps) });
  await bare.close();
  await store.close();
  rmSync(folder, { recursive: true });
  const ratios = speeds.map(({ bare, store }) => store.rows / bare.rows);
  return {
    "steps a commit": steps,
    "bare commits/s": Math.round(median(speeds.map(({ bare }) => bare.commits))),
    "store commits/s": Math.round(median(speeds.map(({ store }) => store.commits))),
    "bare rows/s": Math.round(median(speeds.map(({ bare }) => bare.rows))),
    "store rows/s": Math.round(median(speeds.map(({ store }) => store.rows))),
    "store ÷ bare": median(ratios).toFixed(2),
    "lowest, highest": `${Math.min(...ratios).toFixed(2)}, ${Math.max(...ratios).toFixed(2)}`,
  };
}

/** Many who put something at once share a sync; in a bare loop each has its own. */
async function compareGroups(): Promise<Readonly<Record<string, number | string>>> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-measure-"));
  const file = join(folder, "bare.db");
  new FileWriter(file, "incarnation").close();
  const db = new DatabaseSync(file);
  db.exec("pragma synchronous = full");
  const put = db.prepare("insert into records (scope, hash, text) values ('s', ?, ?)");
  const store = await openSqlite({ file: join(folder, "store.db"), host: nodeHost });
  const bare = await callers(async () => void put.run(nodeHost.id(), TEXT));
  const grouped = await callers(() => store.records.put([{ scope: "s", hash: nodeHost.id(), text: TEXT }]));
  db.close();
  await store.close();
  rmSync(folder, { recursive: true });
  return {
    callers: CALLERS,
    "bare puts/s": bare,
    "store puts/s": grouped,
    "store ÷ bare": (grouped / bare).toFixed(2),
  };
}

async function callers(put: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  let count = 0;
  const call = async (): Promise<void> => {
    while (performance.now() - startedMs < SECONDS * 1000) {
      await put();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  return Math.round(count / ((performance.now() - startedMs) / 1000));
}

const rows = [];
for (const steps of STEPS) rows.push(await compare(steps));
console.table(rows);
console.table([await compareGroups()]);
