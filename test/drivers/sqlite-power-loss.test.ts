import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FileReader } from "../../src/drivers/sqlite/file/reader.ts";
import { FileWriter } from "../../src/drivers/sqlite/file/writer.ts";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { PAGE_BYTES } from "../../src/drivers/sqlite/file/open-file.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { read } from "../../src/store/conformance/things.ts";
import { partsOf, sightAfter, sightOf, sightOfFile } from "./sqlite/history.ts";

const COMMITS = 20;
const HEADER_BYTES = 32;
const FRAME_BYTES = 24 + PAGE_BYTES;

/** A thousand files are opened here, and what a sync does is made up for by cutting the log: memory will do. */
const ROOT = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A log as it lies on the disk, and how long it was when each commit was acknowledged. */
interface Log {
  /** The file before anything of the log was written into it. */
  readonly database: Buffer;
  /** And after. */
  readonly merged: Buffer;
  readonly bytes: Buffer;
  readonly acknowledgedAt: readonly number[];
}

let folder: string;
let log: Log;
beforeAll(async () => {
  folder = await mkdtemp(join(ROOT, "millrace-power-"));
  log = await writeLog(join(folder, "whole"));
});
afterAll(() => rm(folder, { recursive: true }));

/**
 * What a disk has when the power fails is all that was synced, and of the rest any part. The log is synced whole before a
 * commit is acknowledged, so it may end anywhere behind the last one.
 */
describe("a log that ends where the power failed", () => {
  const frames = (): readonly number[] => {
    const count = (log.bytes.length - HEADER_BYTES) / FRAME_BYTES;
    return Array.from({ length: count + 1 }, (_, k) => HEADER_BYTES + k * FRAME_BYTES);
  };

  test("holds every commit that was acknowledged before, whole, wherever it ends between two frames", () => {
    let cuts = 0;
    const seen = new Set<number>();
    for (const length of frames()) {
      seen.add(checkTwice(log.bytes.subarray(0, length), length));
      cuts++;
    }
    expect(seen).toEqual(new Set(Array.from({ length: COMMITS + 1 }, (_, count) => count)));
    console.log(`${cuts} logs cut between frames, ${COMMITS} commits`);
  });

  test("does so wherever it ends inside a frame", () => {
    for (let i = 0; i < 100; i++) {
      const length = Math.floor(Math.random() * log.bytes.length);
      checkTwice(log.bytes.subarray(0, length), length);
    }
  });

  test("does so when a frame was not written, but later ones were", () => {
    const ends = frames();
    for (let i = 0; i < 100; i++) {
      const at = ends[Math.floor(Math.random() * (ends.length - 1))]!;
      const bytes = Buffer.from(log.bytes);
      bytes.fill(i % 2 === 0 ? 0 : 0xa5, at, at + FRAME_BYTES);
      checkTwice(bytes, at);
    }
  });

  test("holds everything when the power fails while it is written into the file", () => {
    for (let i = 0; i < 30; i++) {
      // Of each page the old or the new: most were not there before.
      const database = Buffer.alloc(log.merged.length);
      log.database.copy(database);
      for (let at = 0; at < database.length; at += PAGE_BYTES) {
        if (Math.random() < 0.5) log.merged.copy(database, at, at, at + PAGE_BYTES);
      }
      const length = log.database.length + Math.random() * (database.length - log.database.length);
      const file = place("merging", log.bytes, database.subarray(0, length));
      expect([checkOnce(file), checkOnce(file)]).toEqual([COMMITS, COMMITS]);
    }
  });

  test("is opened by the store itself with the same result", async () => {
    for (const part of [1 / 4, 1 / 2, 3 / 4, 1]) {
      const length = Math.floor(log.bytes.length * part);
      const file = place("store", log.bytes.subarray(0, length));
      for (let times = 0; times < 2; times++) {
        const store = await openSqlite({ file, host: nodeHost });
        const { tenure, fence } = await acquire(store);
        expect(tenure.seq).toBe(acknowledgedWithin(length));
        expect(await sightOf(store, tenure.seq)).toEqual(sightAfter(tenure.seq));
        await store.partitions.release(fence);
        await store.close();
      }
    }
  });
});

async function writeLog(folder: string): Promise<Log> {
  const file = join(folder, "store.db");
  const store = await openSqlite({ file, host: nodeHost });
  const owner = await acquire(store);
  const acknowledgedAt: number[] = [];
  for (let k = 0; k < COMMITS; k++) {
    const { position } = await read(store);
    await owner.commit(partsOf(k, position));
    acknowledgedAt.push(statSync(`${file}-wal`).size);
  }
  const [database, bytes] = [readFileSync(file), readFileSync(`${file}-wal`)];
  await store.close();
  return { database, merged: readFileSync(file), bytes, acknowledgedAt };
}

/** How many commits were acknowledged when the log was this long. */
function acknowledgedWithin(length: number): number {
  return log.acknowledgedAt.filter((at) => at <= length).length;
}

function place(name: string, bytes: Buffer, database = log.database): string {
  rmSync(join(folder, name), { recursive: true, force: true });
  mkdirSync(join(folder, name));
  const file = join(folder, name, "store.db");
  writeFileSync(file, database);
  writeFileSync(`${file}-wal`, bytes);
  return file;
}

/** Opens it, and once more: what the first opening found must not depend on anything that it did. Answers the commits. */
function checkTwice(bytes: Buffer, intactBytes: number): number {
  const file = place("cut", bytes);
  const first = checkOnce(file);
  // A commit is valid by its last frame: what was acknowledged up to there is there, and nothing else.
  expect(first).toBe(acknowledgedWithin(intactBytes));
  expect(checkOnce(file)).toBe(first);
  return first;
}

function checkOnce(file: string): number {
  const writer = new FileWriter(file, "incarnation");
  const reader = new FileReader(writer.opened.file);
  const outcome = writer.acquire("owner", "nonce", 0, { storeTimeMs: 0, nowMs: 0 });
  const { seq } = outcome.kind === "acquired" ? outcome.tenure : expect.fail("nobody else has it");
  expect(sightOfFile(writer, reader, seq)).toEqual(sightAfter(seq));
  reader.close();
  writer.close();
  return seq;
}
