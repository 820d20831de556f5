import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { ENTITY, record } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-thread-"));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const open = (): Promise<Store> => openSqlite({ file: join(folder, "store.db"), host: nodeHost });

describe.each([
  ["writer", 0],
  ["reader", 1],
] as const)("a %s that dies", (_name, place) => {
  test("is told, and what it has answered is there when the store is opened again", async () => {
    const posted = vi.spyOn(Worker.prototype, "postMessage");
    const store = await open();
    const owner = await acquire(store);
    await owner.commit({ records: [record(ENTITY, 1)] });
    // In the order in which they were first spoken to.
    const threads = [...new Set(posted.mock.contexts as Worker[])];
    await threads[place]!.terminate();
    const lost = await store.lost!;
    expect(lost).toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(lost.message).toMatch(/^A thread .* has ended: it exited\. .*start again$/);
    await store.close();

    const again = await open();
    const [loaded] = await again.journal.load([{ partition: 0, entity: ENTITY }]);
    expect(loaded!.records).toHaveLength(1);
    await again.close();
  });
});

test("a store that is closed is not lost", async () => {
  const store = await open();
  const lost = vi.fn();
  void store.lost!.then(lost);
  // Both threads are gone when it resolves.
  await store.close();
  expect(lost).not.toHaveBeenCalled();
});
