import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { Database } from "../../src/drivers/postgres/database.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import type { Host } from "../../src/host/host.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire, type Owner } from "../../src/store/conformance/owner.ts";
import { header, record } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";
import { postgresService } from "../support/services.ts";

const LONG_MS = 60_000;
/** In which nobody looks once a second: who is left waiting by mistake waits for good. */
const patient: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(ms >= 100 ? LONG_MS : ms, signal) };

let service: Service;
let store: Store;
let owner: Owner;
let looks = 0;
// oxlint-disable-next-line typescript/unbound-method -- called with what it is spied on
const { run } = Database.prototype;
beforeAll(async () => {
  service = await postgresService();
});
afterAll(() => service.stop());
beforeEach(async () => {
  store = await openPostgres({ url: service.url, schema: `test_${nodeHost.id()}`, host: patient, partitions: 4 });
  owner = await acquire(store);
  vi.spyOn(Database.prototype, "run").mockImplementation(function (this: Database, sql, values) {
    if (sql.includes(`"isOpen"`)) looks++;
    return run.call(this, sql, values);
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
});

/** Begins to wait, and has looked in vain. */
async function waiting(entity: string, above: number, end: boolean): Promise<{ readonly version: Promise<number> }> {
  looks = 0;
  const version = store.journal.watch(0, entity, above, LONG_MS, { end });
  await vi.waitFor(() => expect(looks).toBe(1));
  await sleep(50);
  return { version };
}

test("who waits for an end looks when it is there, and not before", async () => {
  await owner.commit({ records: [record("e/1", 1)], headers: [header("e/1", { class: "open" })] });
  const { version } = await waiting("e/1", 0, true);
  await owner.commit({ records: [record("e/1", 2)] });
  await owner.commit({ records: [record("e/1", 3), record("e/2", 1)], headers: [header("e/1", { class: "open" })] });
  await sleep(50);
  expect(looks).toBe(1);
  await owner.commit({ records: [record("e/1", 4)], headers: [header("e/1", { class: "endedWell" })] });
  expect(await version).toBe(4);
  expect(looks).toBe(2);
});

test("what has no header has ended with every version", async () => {
  const { version } = await waiting("e/1", 0, true);
  await owner.commit({ records: [record("e/1", 1)] });
  expect(await version).toBe(1);
});

test("who waits for any version is told of the next one of its own entity only", async () => {
  await owner.commit({ records: [record("e/1", 1)], headers: [header("e/1", { class: "open" })] });
  const { version } = await waiting("e/1", 1, false);
  await owner.commit({ records: [record("e/2", 1)] });
  await sleep(50);
  expect(looks).toBe(1);
  await owner.commit({ records: [record("e/1", 2)] });
  expect(await version).toBe(2);
});

test("an end that is committed while somebody looks is not missed", async () => {
  await owner.commit({ records: [record("e/1", 1)], headers: [header("e/1", { class: "open" })] });
  const looking = Promise.withResolvers<void>();
  const mayAnswer = Promise.withResolvers<void>();
  vi.spyOn(Database.prototype, "run").mockImplementationOnce(async function (this: Database, sql, values) {
    const found = await run.call(this, sql, values);
    looking.resolve();
    await mayAnswer.promise;
    return found;
  });
  const version = store.journal.watch(0, "e/1", 0, LONG_MS, { end: true });
  await looking.promise;
  await owner.commit({ records: [record("e/1", 2)], headers: [header("e/1", { class: "endedWell" })] });
  mayAnswer.resolve();
  expect(await version).toBe(2);
});
