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
