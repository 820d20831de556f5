import { afterEach, beforeEach, expect, test } from "vitest";
import { createManualHost, type ManualHost } from "../../../test/drivers/manual-host.ts";
import { type MemoryStore, openMemory } from "../../drivers/memory/memory-store.ts";
import type { Store } from "../../store/contract.ts";
import { HandlerDirectory } from "./handler-directory.ts";

let host: ManualHost;
let store: MemoryStore;
beforeEach(() => {
  host = createManualHost();
  store = openMemory({ host });
});
afterEach(() => store.close());

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `handler-${i}`);

test("a worker that names ever more handlers does not fill what everybody reads", async () => {
  const directory = new HandlerDirectory(store, host);
  await directory.note(names(6_000));
  await directory.note(["handler-1", "one-more"]);
  expect(await store.records.registered()).toHaveLength(5_000);
});

test("what the store did not take is told again", async () => {
  let isAway = true;
  const register: Store["records"]["register"] = async (...args) => {
    if (isAway) throw new Error("away");
    return store.records.register(...args);
  };
  const records = { registered: () => store.records.registered(), register };
  const directory = new HandlerDirectory({ records } as unknown as Store, host);
  await expect(directory.note(["a"])).rejects.toThrow("away");
  isAway = false;
  await directory.note(["a"]);
  expect((await directory.refresh()).entries.has("a")).toBe(true);
});

test("many new handlers are told together: a store that syncs its disk does it once for all of them", async () => {
  const waiting: (() => void)[] = [];
  let told = 0;
  const register: Store["records"]["register"] = () => (told++, new Promise((resolve) => waiting.push(resolve)));
  const records = { registered: () => store.records.registered(), register };
  const directory = new HandlerDirectory({ records } as unknown as Store, host);
  const noting = directory.note([...names(250), "handler-1"]);
  let rounds = 0;
  for (; told < 250 || waiting.length > 0; rounds++) {
    await new Promise((resolve) => setImmediate(resolve));
    for (const resolve of waiting.splice(0)) resolve();
  }
  await noting;
  expect([told, rounds]).toEqual([250, 3]);
});

test("the time limit that a handler brings is known wherever its worker is, and while that restarts", async () => {
  const register = (process: string, told: object): Promise<void> =>
    store.records.register({ process, role: "worker", text: JSON.stringify(told) }, 15_000);
  const slow = { name: "slow", timeout_seconds: 600 };
  await register("worker-1", { handlers: [slow, { name: "odd", timeout_seconds: -1 }], queues: ["slow", "odd"] });
  // A worker over HTTP names its handlers and knows nothing of them.
  await register("worker-2", { handlers: ["slow", "plain"], queues: ["slow", "plain"] });
  await register("worker-3", { handlers: [{ name: "slow" }], queues: ["slow"] });
  const limits = async (directory: HandlerDirectory): Promise<unknown> =>
    [...(await directory.refresh()).entries]
      .map(([name, entry]) => [name, entry.defaultTimeoutSeconds])
      .toSorted(([a], [b]) => String(a).localeCompare(String(b)));
  const known = [
    ["odd", undefined],
    ["plain", undefined],
    ["slow", 600],
  ];
  expect(await limits(new HandlerDirectory(store, host))).toEqual(known);
  await host.advance(60_000);
  const other = new HandlerDirectory(store, host);
  // Whoever hears of it over HTTP meanwhile forgets nothing of it.
  await other.note(["slow"]);
  expect(await limits(other)).toEqual(known);
  expect((await other.entries()).alive.size).toBe(0);
});
