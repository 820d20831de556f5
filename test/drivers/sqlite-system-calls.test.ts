import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { Child } from "./sqlite/child.ts";
import { sightAfter, sightOf } from "./sqlite/history.ts";
import { canTrace, trace } from "./sqlite/system-calls.ts";

let folder: string;
let file: string;
let child: Child;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-calls-"));
  file = join(folder, "store.db");
  child = new Child("committer.ts", file);
  await child.until((line) => line === "2");
});
afterEach(async () => {
  await child.kill();
  await rm(folder, { recursive: true });
});

const isNumber = (line: string): boolean => /^\d+$/.test(line);
const numbers = (): readonly number[] => child.lines.filter(isNumber).map(Number);

/** Two more commits are acknowledged from now on. */
async function goesOn(): Promise<void> {
  const last = numbers().at(-1)!;
  await child.until((line) => line === String(last + 2));
}

/** Every commit was acknowledged once, and is there whole. */
async function checkAll(): Promise<void> {
  await child.kill();
  expect(numbers()).toEqual(numbers().map((_, i) => i));
  const store = await openSqlite({ file, host: nodeHost });
  const { tenure } = await acquire(store);
  expect([numbers().length, numbers().length + 1]).toContain(tenure.seq);
  expect(await sightOf(store, tenure.seq)).toEqual(sightAfter(tenure.seq));
  await store.close();
}

describe.skipIf(!canTrace())("a process that commits", () => {
  test("has synced the log after the last write to it whenever it acknowledges", async () => {
    const log = join(folder, "calls");
    const stop = await trace(
      child.process.pid!,
      "-y",
      "-e",
      "trace=pwrite64,fsync,fdatasync,write",
      "-s",
      "16",
      "-o",
      log,
    );
    await sleep(500);
    await stop();
    const { acknowledged, unsynced } = readCalls(readFileSync(log, "utf8"));
    expect(acknowledged).toBeGreaterThan(0);
    expect(unsynced).toEqual([]);
    await checkAll();
  });

  test("is refused by a disk that became read-only, and goes on when it is not", async () => {
    const stop = await trace(child.process.pid!, "-e", "inject=pwrite64:error=EROFS", "-o", "/dev/null");
    await child.until((line) => line.startsWith("refused"));
    await sleep(100);
    await stop();
    await goesOn();
    expect(child.lines.some((line) => line.startsWith("unknown"))).toBe(false);
    await checkAll();
  });

  test("does not know what a failed sync has left, sends it again, and has it once", async () => {
    const stop = await trace(child.process.pid!, "-e", "inject=fsync,fdatasync:error=EIO", "-o", "/dev/null");
    await child.until((line) => line.startsWith("unknown"));
    await sleep(100);
    await stop();
    await goesOn();
    await checkAll();
  });

  test("goes on with everything else while the disk takes half a second to sync", async () => {
    const stop = await trace(child.process.pid!, "-e", "inject=fsync,fdatasync:delay_exit=500000", "-o", "/dev/null");
    const slow = await child.until((line) => line.startsWith("ticks") && Number(line.split(" ")[2]) > 400);
    await stop();
    // A loop that waits for the disk comes round once.
    expect(Number(slow.split(" ")[1])).toBeGreaterThan(20);
    await checkAll();
  });
});

/** Reads a trace of several threads: a call that waits stands in two lines. */
function readCalls(text: string): { readonly acknowledged: number; readonly unsynced: readonly string[] } {
  const syncing = new Set<string>();
  let isDirty = false;
  let acknowledged = 0;
  const unsynced: string[] = [];
  for (const line of text.split("\n")) {
    const pid = line.split(" ")[0]!;
    const isWal = line.includes("store.db-wal>");
    if (line.includes("pwrite64(") && isWal) isDirty = true;
    if (/f(data)?sync\(/.test(line) && isWal) {
      if (line.includes("unfinished")) syncing.add(pid);
      else if (line.includes("= 0")) isDirty = false;
    }
    if (/f(data)?sync resumed/.test(line) && syncing.delete(pid) && line.includes("= 0")) isDirty = false;
    if (!/write\(1<[^>]*>, "\d+\\n"/.test(line)) continue;
    acknowledged += 1;
    if (isDirty) unsynced.push(line);
  }
  return { acknowledged, unsynced };
}
