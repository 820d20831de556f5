import { copyFileSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MIGRATIONS } from "../../src/drivers/sqlite/file/migrations.ts";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { header, inboxTexts, record } from "../../src/store/conformance/things.ts";
import type { Header, Store } from "../../src/store/contract.ts";
import { Child } from "./sqlite/child.ts";

const FORMAT_4 = join(import.meta.dirname, "sqlite", "formats", "format-4.sql");
const EXECUTIONS = 3_000;
const RECORDS = 4;
/** Kills at moments that nobody has chosen. */
const KILLS = 8;

const keyOf = (i: number): string => `execution/many-${String(i).padStart(5, "0")}`;
const isOpen = (i: number): boolean => i % 3 !== 0;
const headerOf = (i: number): Header =>
  header(
    keyOf(i),
    isOpen(i) ? { createdAtMs: 10_000 + i } : { createdAtMs: 10_000 + i, class: "endedWell", endedAtMs: 20_000 },
  );

let folder: string;
let original: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-migration-"));
  original = join(folder, "format-4.db");
  const db = new DatabaseSync(original);
  db.exec(readFileSync(FORMAT_4, "utf8"));
  db.exec("begin");
  const journal = db.prepare("insert into journal (entity, version, count, format, text) values (?, ?, 1, 1, ?)");
  // Side by side, as executions run.
  for (let version = 1; version <= RECORDS; version++)
    for (let i = 0; i < EXECUTIONS; i++) journal.run(keyOf(i), version, record(keyOf(i), version).text);
  const headers = db.prepare("insert into headers values (?, ?, 'RUNNING', 'workflow', 'default', ?, ?, 1)");
  const wakes = db.prepare("insert into wakes values (?, ?)");
  for (let i = 0; i < EXECUTIONS; i++) {
    const { class: kind, createdAtMs, endedAtMs } = headerOf(i);
    headers.run(keyOf(i), kind, createdAtMs, endedAtMs);
    if (isOpen(i)) wakes.run(keyOf(i), 50_000 + i);
  }
  db.exec("commit");
  db.close();
});
afterAll(() => rm(folder, { recursive: true }));

let copies = 0;
function copy(): string {
  const file = join(folder, `copy-${++copies}.db`);
  copyFileSync(original, file);
  return file;
}

/** Opens it as the next process does, finds everything, and writes to it. Answers what format it was left in. */
async function check(file: string): Promise<number> {
  const before = formatOf(file);
  const store = await openSqlite({ file, host: nodeHost });
  const numbers = Array.from({ length: EXECUTIONS }, (_, i) => i);
  const requests = numbers.map((i) => ({ partition: 0, entity: keyOf(i), aboveVersion: 0 }));
  const expected = numbers.map((i) => ({
    entity: keyOf(i),
    snapshot: null,
    records: Array.from({ length: RECORDS }, (_, n) => record(keyOf(i), n + 1)),
    wakeAtMs: isOpen(i) ? 50_000 + i : null,
  }));
  expect(await store.journal.load(requests)).toEqual(expected);
  // Two more stand in the dump.
  const found = (await headersOf(store)).filter(({ entity }) => entity.startsWith("execution/many-"));
  expect(found).toEqual(numbers.map(headerOf).reverse());
  expect(await inboxTexts(store)).toEqual(['"mail"']);
  const owner = await acquire(store);
  await owner.commit({ records: [record(keyOf(7), RECORDS + 1)] });
  const [loaded] = await store.journal.load([{ partition: 0, entity: keyOf(7), aboveVersion: RECORDS }]);
  expect(loaded!.records).toEqual([record(keyOf(7), RECORDS + 1)]);
  await store.close();
  const db = new DatabaseSync(file, { readOnly: true });
  expect(Object.values(db.prepare("pragma integrity_check").get()!)).toEqual(["ok"]);
  db.close();
  await rm(file);
  return before;
}

async function headersOf(store: Store): Promise<readonly Header[]> {
  const all: Header[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await store.queries.headers({ limit: 1_000, ...(cursor !== undefined && { cursor }) });
    all.push(...page.items);
    if (page.cursor === null) return all;
    ({ cursor } = page);
  }
}

/** Told from a copy of it and its log: whoever opens the file itself brings it in order. */
function formatOf(file: string): number {
  const seen = `${file}.seen`;
  copyFileSync(file, seen);
  try {
    copyFileSync(`${file}-wal`, `${seen}-wal`);
  } catch {
    // It was killed before there was one.
  }
  const db = new DatabaseSync(seen);
  const { user_version: format } = db.prepare("pragma user_version").get()!;
  db.close();
  return Number(format);
}

describe("a process that is killed while it brings a file of format 4 up to date", () => {
  test("behind any statement of it loses nothing: the next one begins anew, or finds it done", async () => {
    const whole = new Child("migrator.ts", copy());
    const statements = Number(await whole.until((line) => /^\d+$/.test(line)));
    await whole.exit();
    // As many as the migration has, and what is around them in the same transaction; the last one is its commit.
    const ofMigration = MIGRATIONS[4]!.split(/;\s*\n/).filter((text) => text.trim() !== "").length;
    expect(statements).toBeGreaterThan(ofMigration);
    const left: number[] = [];
    for (let deadly = 1; deadly <= statements; deadly++) {
      const file = copy();
      const child = new Child("migrator.ts", file, String(deadly));
      expect([deadly, await child.exit(), child.process.signalCode]).toEqual([deadly, null, "SIGKILL"]);
      left.push(await check(file));
    }
    expect(left).toEqual([...Array.from({ length: statements - 1 }, () => 4), MIGRATIONS.length]);
  });

  test(`${KILLS} times at any moment loses nothing`, async () => {
    const startedAtMs = performance.now();
    await new Child("opener.ts", copy()).until((line) => line === "committed");
    const longestMs = performance.now() - startedAtMs;
    const left: number[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const file = copy();
      const child = new Child("opener.ts", "--leave", file);
      // Node itself takes about a third of the time to start, and some come to their end.
      await sleep((0.3 + Math.random() * 0.9) * longestMs);
      await child.kill();
      left.push(await check(file));
    }
    console.log(`formats that the killed have left: ${left.join(", ")}`);
  });
});
