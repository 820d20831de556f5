import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import type { Host } from "../../src/host/host.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { LONG_MS } from "../../src/store/conformance/harness.ts";
import { lease, settlement, task } from "../../src/store/conformance/things.ts";
import type { Heartbeat, LeasedTask, Store } from "../../src/store/contract.ts";

/** What a worker far away has of a server that has started again, with its tasks put back. */

let folder: string;
let store: Store;
let held: LeasedTask;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-restart-"));
  await open();
  await store.tasks.restore([task("a"), task("t")]);
  [, held] = (await lease(store, { worker: "far" })) as [LeasedTask, LeasedTask];
  await store.close();
  await open();
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

async function open(host: Host = nodeHost): Promise<void> {
  store = await openSqlite({ host, file: join(folder, "store.db") });
}

const beat = (of: Heartbeat): ReturnType<Store["tasks"]["heartbeat"]> =>
  store.tasks.heartbeat([{ ref: of.ref, token: of.token }], LONG_MS);
const OURS = { lost: [], cancelled: [] };
const LOST = { lost: ["t"], cancelled: [] };

test("its heartbeat keeps a task that was put back, and nobody else is given it", async () => {
  await store.tasks.restore([task("t")]);
  expect(await beat(held)).toEqual(OURS);
  expect(await lease(store, { worker: "another" })).toEqual([]);
  expect(await store.queries.counts()).toMatchObject({ queued: {}, leased: 1 });
  expect(await store.tasks.settle([settlement(held, "failed")])).toEqual(["settled"]);
  expect(await store.queries.counts()).toMatchObject({ queued: {}, leased: 0 });
});

test("its heartbeat keeps a task that is only put back after it", async () => {
  expect(await beat(held)).toEqual(OURS);
  await store.tasks.restore([task("t")]);
  expect(await lease(store, { worker: "another" })).toEqual([]);
  expect(await beat(held)).toEqual(OURS);
});

test("its result takes the task off the queue", async () => {
  await store.tasks.restore([task("t")]);
  expect(await store.tasks.settle([settlement(held, "failed")])).toEqual(["settled"]);
  expect(await lease(store, { worker: "another" })).toEqual([]);
});

test("it still has a task that it was given once more, under both names", async () => {
  await store.tasks.restore([task("t")]);
  const [again] = await lease(store, { worker: "far" });
  expect(await beat(held)).toEqual(OURS);
  expect(await beat(again!)).toEqual(OURS);
  expect(await store.tasks.settle([settlement(held, "failed")])).toEqual(["settled"]);
  expect(await beat(again!)).toEqual(LOST);
});

test("a task that another was given meanwhile is lost to it", async () => {
  await store.tasks.restore([task("t")]);
  const [theirs] = await lease(store, { worker: "another" });
  expect(await beat(held)).toEqual(LOST);
  expect(await beat(theirs!)).toEqual(OURS);
  expect(await store.tasks.settle([settlement(held, "failed")])).toEqual(["stale"]);
});

test("a task of this life that is gone is lost, from the first moment", async () => {
  await store.tasks.restore([task("t")]);
  const [leased] = await lease(store, { worker: "far" });
  await store.tasks.settle([settlement(leased!, "completed")]);
  expect(await beat(leased!)).toEqual(LOST);
});

test("what was said for an hour stands over a restart, also if the machine has slept for longer before", async () => {
  let sleptMs = 0;
  const host: Host = { ...nodeHost, wallMs: () => nodeHost.wallMs() + sleptMs };
  await store.close();
  await open(host);
  sleptMs = 8 * 3_600_000;
  const registration = { process: "far", role: "worker", text: "1" } as const;
  await store.records.register(registration, 3_600_000);
  await store.close();
  await open(host);
  expect(await store.records.registered()).toEqual([registration]);
});
