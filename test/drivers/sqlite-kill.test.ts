import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { Child } from "./sqlite/child.ts";
import { sightAfter, sightOf } from "./sqlite/history.ts";

const KILLS = 25;
/** Between being started and being well under way. */
const LONGEST_MS = 120;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-kill-"));
});
afterAll(() => rm(folder, { recursive: true }));

describe("a process that is killed while it commits", () => {
  test(`${KILLS} times at any moment loses nothing that was acknowledged, and leaves the file free at once`, async () => {
    const file = join(folder, "store.db");
    const acknowledgedByKill: number[] = [];
    let committed = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const child = new Child("committer.ts", file);
      // Every fifth time anywhere in its start, else somewhere in its work.
      if (kill % 5 !== 4) await child.until((line) => line.startsWith("open"));
      await sleep(Math.random() * LONGEST_MS);
      await child.kill();
      const numbers = child.lines.filter((line) => /^\d+$/.test(line)).map(Number);
      acknowledgedByKill.push(numbers.length);
      committed = await checkFile(file, (numbers.at(-1) ?? committed - 1) + 1);
    }
    expect(acknowledgedByKill.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(KILLS);
    console.log(`commits acknowledged before each kill: ${acknowledgedByKill.join(", ")}`);
  });
});

/** All commits that were acknowledged are there, and perhaps the one that was under way. Answers how many that are. */
async function checkFile(file: string, acknowledged: number): Promise<number> {
  const store = await openSqlite({ file, host: nodeHost });
  const owner = await acquire(store);
  const { seq } = owner.tenure;
  expect([acknowledged, acknowledged + 1]).toContain(seq);
  expect(await sightOf(store, seq)).toEqual(sightAfter(seq));
  await store.partitions.release(owner.fence);
  await store.close();
  const db = new DatabaseSync(file, { readOnly: true });
  expect(Object.values(db.prepare("pragma integrity_check").get()!)).toEqual(["ok"]);
  db.close();
  return seq;
}
