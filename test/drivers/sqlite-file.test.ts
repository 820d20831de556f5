import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FileBatch } from "../../src/drivers/sqlite/file/commit.ts";
import { GroupCommit } from "../../src/drivers/sqlite/file/group-commit.ts";
import { FileReader } from "../../src/drivers/sqlite/file/reader.ts";
import { PAGE_BYTES } from "../../src/drivers/sqlite/file/open-file.ts";
import { FileWriter } from "../../src/drivers/sqlite/file/writer.ts";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { ENTITY, OTHER, record } from "../../src/store/conformance/things.ts";
import type { Fence } from "../../src/store/contract.ts";

const MOMENT = { storeTimeMs: 0, nowMs: 0 };
const ROWS_A_COMMIT = 200;

let folder: string;
let file: string;
let writer: FileWriter;
let reader: FileReader;
let group: GroupCommit;
let fence: Fence;

function open(): void {
  writer = new FileWriter(file, "incarnation");
  reader = new FileReader(writer.opened.file);
  group = new GroupCommit(writer.db, () => writer.remember());
  const outcome = writer.acquire("owner", "nonce", 0, MOMENT);
  fence = outcome.kind === "acquired" ? outcome.tenure : expect.fail("nobody else has it");
}

function close(): void {
  reader.close();
  writer.close();
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-file-"));
  file = join(folder, "store.db");
  open();
});
afterEach(async () => {
  close();
  await rm(folder, { recursive: true });
});

function batch(parts: Partial<FileBatch>): FileBatch {
  const seq = fence.seq;
  fence = { ...fence, seq: seq + 1 };
  return {
    fence: { ...fence, seq },
    id: `batch ${seq}`,
    behind: null,
    timeMs: seq,
    suspect: null,
    consumedMail: [],
    records: records(ENTITY, 1, 0),
    snapshots: [],
    headers: [],
    wakes: [],
    mail: [],
    discard: [],
    deadLetters: [],
    listings: [],
    purge: [],
    ...parts,
  };
}

function commit(parts: Partial<FileBatch>): void {
  expect(group.run([() => writer.commit([batch(parts)])])).toEqual([{ value: [{ kind: "committed" }] }]);
}

/** Records of one entity from a version on, as columns. */
function records(entity: string, from: number, count: number, text = '["x"]'): FileBatch["records"] {
  const numbers = Array.from({ length: count }, (_, i) => from + i);
  return [numbers.map(() => entity), numbers, numbers.map(() => 1), numbers.map(() => 1), numbers.map(() => text)];
}

function blobs(scope: string, count: number): FileBatch["records"] {
  const numbers = Array.from({ length: count }, (_, i) => i);
  return [numbers.map(() => scope), numbers.map((i) => `hash ${i}`), numbers.map((i) => `"blob ${i}"`)];
}

function rowsOf(table: "journal" | "records" | "purges"): number {
  return writer.db.get<{ count: number }>(`select count(*) as count from ${table}`)!.count;
}

/** Everything anybody could see of an entity. */
function sightOf(entity: string): unknown {
  const [loaded] = reader.load([{ partition: 0, entity, aboveVersion: 0 }]);
  return [loaded?.records.length, reader.version(entity), reader.records([{ scope: entity, hash: "hash 0" }])];
}

const NOTHING = [0, 0, [null]];

describe("a purge", () => {
  const fill = (): void => {
    commit({ records: records(ENTITY, 1, 500) });
    group.run([() => writer.put(blobs(ENTITY, 300))]);
    commit({ records: records(OTHER, 1, 3) });
    group.run([() => writer.put(blobs(OTHER, 3))]);
    expect(sightOf(ENTITY)).toEqual([500, 500, ['"blob 0"']]);
  };

  test("removes so many rows with its commit and the rest later, and nothing is seen from the start", () => {
    fill();
    commit({ purge: [ENTITY] });
    const left: number[] = [];
    do {
      expect(sightOf(ENTITY)).toEqual(NOTHING);
      expect(sightOf(OTHER)).toEqual([3, 3, ['"blob 0"']]);
      left.push(rowsOf("journal") + rowsOf("records") - 6);
    } while (writer.tidy());
    expect(left).toEqual([800 - ROWS_A_COMMIT, 400, 200, 0, 0]);
    expect(rowsOf("purges")).toBe(0);
  });

  test("of many entities removes so many rows in all", () => {
    for (let i = 0; i < 10; i++) commit({ records: records(`e/${i}`, 1, 50) });
    commit({ purge: Array.from({ length: 10 }, (_, i) => `e/${i}`) });
    expect(rowsOf("journal")).toBe(500 - ROWS_A_COMMIT);
    for (let i = 0; i < 10; i++) expect(sightOf(`e/${i}`)).toEqual(NOTHING);
    while (writer.tidy());
    expect([rowsOf("journal"), rowsOf("purges")]).toEqual([0, 0]);
  });

  test("goes on after a restart", () => {
    fill();
    commit({ purge: [ENTITY] });
    close();
    open();
    expect(sightOf(ENTITY)).toEqual(NOTHING);
    while (writer.tidy());
    expect([rowsOf("journal"), rowsOf("records")]).toEqual([3, 3]);
  });

  test("that is not finished leaves nothing to an entity that begins anew, by its records or by its blobs", () => {
    fill();
    commit({ purge: [ENTITY] });
    commit({ records: records(ENTITY, 1, 1) });
    expect(sightOf(ENTITY)).toEqual([1, 1, [null]]);
    expect([rowsOf("journal"), rowsOf("purges")]).toEqual([4, 0]);
    commit({ records: records("e/x", 1, 300) });
    group.run([() => writer.put(blobs("e/x", 1))]);
    commit({ purge: ["e/x"] });
    group.run([() => writer.put(blobs("e/x", 1))]);
    while (writer.tidy());
    expect(sightOf("e/x")).toEqual([0, 0, ['"blob 0"']]);
  });

  test("that is said twice before it is finished still finds all of it", () => {
    fill();
    commit({ purge: [ENTITY] });
    commit({ records: records("e/x", 1, ROWS_A_COMMIT) });
    // A wake alone is no life.
    commit({ wakes: [[ENTITY], [5]] });
    commit({ purge: ["e/x", OTHER, ENTITY] });
    while (writer.tidy());
    expect([rowsOf("journal"), rowsOf("records"), rowsOf("purges")]).toEqual([0, 0, 0]);
  });

  test("of a journal that was cut takes nothing of another's", () => {
    fill();
    commit({ cut: [{ entity: ENTITY, belowVersion: 400 }] });
    expect([sightOf(ENTITY), rowsOf("journal")]).toEqual([[101, 500, ['"blob 0"']], 104]);
    commit({ purge: [ENTITY] });
    while (writer.tidy());
    expect([rowsOf("journal"), rowsOf("records")]).toEqual([3, 3]);
    expect(sightOf(OTHER)).toEqual([3, 3, ['"blob 0"']]);
  });

  test("that was rolled back is not forgotten by what is known of it outside the file", () => {
    fill();
    commit({ purge: [ENTITY] });
    writer.db.script(`create trigger stop before delete on purges begin select raise(abort, 'no'); end`);
    expect(() => {
      while (writer.tidy());
    }).toThrow("no");
    expect(rowsOf("purges")).toBe(1);
    writer.db.script("drop trigger stop");
    commit({ records: records(ENTITY, 1, 1) });
    expect(sightOf(ENTITY)).toEqual([1, 1, [null]]);
  });

  test("makes the file smaller when most of it is free", () => {
    for (let i = 0; i < 20; i++) commit({ records: records(`e/${i}`, 1, 50, JSON.stringify("x".repeat(20_000))) });
    commit({ purge: Array.from({ length: 20 }, (_, i) => `e/${i}`) });
    const pages = (): number => Number(writer.db.pragma("page_count"));
    const before = pages();
    while (writer.tidy());
    expect(pages()).toBeLessThan(before / 2);
    writer.db.script("pragma wal_checkpoint(truncate)");
    expect(statSync(file).size).toBe(pages() * PAGE_BYTES);
  });

  test("comes to its end by itself while the store is open", async () => {
    close();
    const store = await openSqlite({ file, host: nodeHost });
    const owner = await acquire(store);
    await owner.commit({ records: Array.from({ length: 700 }, (_, i) => record(ENTITY, i + 1)) });
    await owner.commit({ purge: [ENTITY] });
    // Another program looks into the file meanwhile.
    const db = new DatabaseSync(file, { readOnly: true });
    const left = db.prepare("select (select count(*) from journal) + (select count(*) from purges) as count");
    await expect.poll(() => left.get()).toEqual({ count: 0 });
    db.close();
    await store.close();
    open();
  });
});

describe("a group", () => {
  const put =
    (scope: string, length = 10) =>
    (): void =>
      writer.put([[scope], ["hash 0"], ["x".repeat(length)]]);
  const isThere = (scope: string): boolean => reader.records([{ scope, hash: "hash 0" }])[0] !== null;

  test("is one transaction: everybody else sees all of it or nothing", () => {
    const seen: boolean[] = [];
    const look = (): void => void seen.push(isThere("a"), isThere("b"));
    group.run([put("a"), look, put("b"), look]);
    expect(seen).toEqual([false, false, false, false]);
    expect([isThere("a"), isThere("b")]).toEqual([true, true]);
  });

  test("loses only the one that fails by its own fault", () => {
    const wrong = (): unknown => writer.commit([batch({ records: records(ENTITY, 5, 1) })]);
    const done = group.run([put("a"), wrong, put("b")]);
    expect(done.map((one) => ("failure" in one ? one.failure.isRefusal : "done"))).toEqual(["done", false, "done"]);
    expect([isThere("a"), isThere("b"), reader.version(ENTITY)]).toEqual([true, true, 0]);
  });

  test("in which somebody asks for more than there is room for leaves the others what there is", () => {
    const limit = Number(writer.db.pragma("page_count")) + 20;
    writer.db.script(`pragma max_page_count = ${limit}`);
    const done = group.run([put("a"), put("large", 1024 * 1024), put("b")]);
    expect(done.map((one) => ("failure" in one ? one.failure.isRefusal : "done"))).toEqual(["done", true, "done"]);
    expect([isThere("a"), isThere("large"), isThere("b")]).toEqual([true, false, true]);
    writer.db.script("pragma max_page_count = 1000000");
    expect(group.run([put("large", 1024 * 1024)])).toEqual([{ value: undefined }]);
    expect(isThere("large")).toBe(true);
  });

  test("that fails leaves the lease of the partition as it was", () => {
    const acquired = (): unknown => writer.acquire("second", "another nonce", 1000, MOMENT);
    const fails = (): never => {
      acquired();
      throw new Error("a fault of its own");
    };
    expect(group.run([fails])).toMatchObject([{ failure: { isRefusal: false } }]);
    expect(group.run([put("a"), fails])).toMatchObject([{}, { failure: { isRefusal: false } }]);
    expect(group.run([acquired])).toMatchObject([{ value: { kind: "acquired" } }]);
    expect(group.run([acquired])).toMatchObject([{ value: { kind: "held", by: "second" } }]);
  });
});
