import { spawnSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { conformance } from "../../src/store/conformance/conformance.ts";
import { canBeFull, type Harness, LONG_MS, refusesCommits } from "../../src/store/conformance/harness.ts";
import { acquire, type Owner } from "../../src/store/conformance/owner.ts";
import { record } from "../../src/store/conformance/things.ts";
import type { CommitBatch, Store } from "../../src/store/contract.ts";
import { openSqliteHarness } from "./sqlite-harness.ts";
import { SmallDisk } from "./sqlite/small-disk.ts";

/** The store looks at the disk once a second. */
const NOTICED_MS = 1500;
const DISK_MIB = 16;

const disk = SmallDisk.mount(DISK_MIB);
afterEach(() => disk?.empty());
afterAll(() => disk?.unmount());

if (disk !== undefined) {
  conformance("sqlite without room", {
    open: () => openHarness(disk),
    only: ({ requires }) => requires === canBeFull || requires === refusesCommits,
  });
}

async function openHarness(disk: SmallDisk): Promise<Harness> {
  const harness = await openSqliteHarness(disk.folder);
  return {
    ...harness,
    setFull: async (isFull) => {
      // Less than a twentieth, and still enough for all that a case does.
      if (isFull) disk.fill(DISK_MIB * 1024 * 30);
      else disk.empty();
      await sleep(NOTICED_MS);
    },
    refuseCommits: async (isRefusing) => {
      if (isRefusing) disk.fill();
      else disk.empty();
    },
    close: async () => {
      disk.empty();
      await harness.close();
    },
  };
}

describe.skipIf(disk === undefined)("a disk that is full", () => {
  test("is what doctor tells first", () => {
    const bin = join(import.meta.dirname, "../../bin/millrace");
    const args = ["doctor", "--store", `sqlite:${join(disk!.folder, "m.db")}`];
    const doctor = (): string => spawnSync(bin, args, { encoding: "utf8" }).stdout;
    expect(doctor()).toContain("is made by the first");
    disk!.fill(DISK_MIB * 1024 * 30);
    expect(doctor()).toMatch(/✗ store .*: its disk is full, and nothing new begins\n +fix: make room on it\n/);
  });

  test("refuses all of a put that may be refused, also one of many messages to the writer", async () => {
    const folder = join(disk!.folder, "put");
    const store = await openSqlite({ file: join(folder, "store.db"), host: nodeHost });
    const records = Array.from({ length: 8 }, (_, i) => ({
      scope: "s",
      hash: `h${i}`,
      text: `${i}`.repeat(3_000_000),
    }));
    try {
      expect(await store.records.put(records, { refusable: true })).toBe("refused");
      expect(await store.records.get(records)).toEqual(records.map(() => null));
    } finally {
      await store.close();
      // What it has grown to would be missed by the next.
      await rm(folder, { recursive: true });
    }
  });

  const big = (owner: Owner, seq: number): CommitBatch => {
    const batch = owner.batch({ records: [{ ...record(`e/${seq}`, 1), text: JSON.stringify("x".repeat(100_000)) }] });
    return { ...batch, fence: { ...batch.fence, seq } };
  };
  const commitUntilRefused = async (owner: Owner, from: number): Promise<number> => {
    for (let seq = from; ; seq++) {
      const outcome = await owner.send(big(owner, seq));
      if (outcome.kind === "refused") return seq;
      expect(outcome).toEqual({ kind: "committed" });
    }
  };
  const loaded = async (store: Store, from: number, end: number): Promise<number> => {
    const keys = Array.from({ length: end - from + 1 }, (_, i) => ({ partition: 0, entity: `e/${from + i}` }));
    return (await store.journal.load(keys)).filter(({ records }) => records.length === 1).length;
  };

  test("refuses commits, and goes on as before when there is room again, three times over", async () => {
    const file = join(disk!.folder, "room", "store.db");
    const store = await openSqlite({ file, host: nodeHost });
    const owner = await acquire(store);
    let from = 0;
    for (let times = 0; times < 3; times++) {
      disk!.fill(1024 * 1024 * (3 - times));
      const end = await commitUntilRefused(owner, from);
      // Reading, renewing and being refused again work all the while, and what was acknowledged is there.
      expect(await loaded(store, from, end)).toBe(end - from);
      const renewed = await store.partitions.renew([owner.fence], LONG_MS);
      expect(renewed.partitions).toEqual([{ kind: "held", partition: 0, seq: end }]);
      const next = big(owner, end);
      expect((await owner.send(next)).kind).toBe("refused");
      disk!.empty();
      expect(await owner.send(next)).toEqual({ kind: "committed" });
      expect(await loaded(store, from, end)).toBe(end - from + 1);
      // Everything goes, so that there is room for the next time.
      const purge = owner.batch({ purge: Array.from({ length: end - from + 1 }, (_, i) => `e/${from + i}`) });
      expect(await owner.send({ ...purge, fence: { ...purge.fence, seq: end + 1 } })).toEqual({ kind: "committed" });
      expect(await loaded(store, from, end)).toBe(0);
      from = end + 2;
    }
    await store.close();
    const again = await openSqlite({ file, host: nodeHost });
    expect((await acquire(again)).tenure.seq).toBe(from);
    await again.close();
  });

  test("keeps out the one that is too large, not those that came with it", async () => {
    const store = await openSqlite({ file: join(disk!.folder, "group", "store.db"), host: nodeHost });
    const owner = await acquire(store);
    disk!.fill(1024 * 1024);
    const put = (hash: string, length: number): Promise<unknown> =>
      store.records.put([{ scope: "s", hash, text: "x".repeat(length) }], { refusable: true });
    // At once, so that they are in one transaction, whichever of them comes first.
    const outcomes = await Promise.all([
      put("large", 4 * 1024 * 1024),
      owner.send(owner.batch({ records: [record("e/1", 1)] })),
      put("small", 100),
    ]);
    expect(outcomes).toEqual(["refused", { kind: "committed" }, "stored"]);
    disk!.empty();
    expect(await put("large", 4 * 1024 * 1024)).toBe("stored");
    await store.close();
  });

  test("lets go of the store, and what was acknowledged is there when there is room", async () => {
    const file = join(disk!.folder, "closing", "store.db");
    const store = await openSqlite({ file, host: nodeHost });
    const owner = await acquire(store);
    disk!.fill(1024 * 1024);
    const count = await commitUntilRefused(owner, 0);
    await store.close();
    disk!.empty();
    const again = await openSqlite({ file, host: nodeHost });
    expect((await acquire(again)).tenure.seq).toBe(count);
    expect(await loaded(again, 0, count)).toBe(count);
    await again.close();
  });

  test("has no room to be opened on, and says so", async () => {
    disk!.fill();
    const opening = openSqlite({ file: join(disk!.folder, "store.db"), host: nodeHost });
    await expect(opening).rejects.toMatchObject({ code: expect.stringMatching(/STORE_(FULL|UNAVAILABLE)/) as string });
    disk!.empty();
    await (await openSqlite({ file: join(disk!.folder, "store.db"), host: nodeHost })).close();
  });
});
