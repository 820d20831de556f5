import { afterEach, beforeEach, expect, test } from "vitest";
import { createManualHost, type ManualHost } from "../../../test/drivers/manual-host.ts";
import { type MemoryStore, openMemory } from "../../drivers/memory/memory-store.ts";
import { Ingress } from "./ingress.ts";

let host: ManualHost;
let store: MemoryStore;
beforeEach(() => {
  host = createManualHost();
  store = openMemory({ host });
});
afterEach(() => store.close());

const LIMIT = { limit: 3, windowSeconds: 60 };

test("the window slides: what has left it may come again, each for itself", async () => {
  const ingress = new Ingress(store, host, LIMIT);
  const take = (): Promise<number | undefined> => ingress.take("a");
  expect(await take()).toBeUndefined();
  await host.advance(20_000);
  expect(await take()).toBeUndefined();
  expect(await take()).toBeUndefined();
  expect(await take()).toBe(40);
  expect(await ingress.take("b")).toBeUndefined();
  await host.advance(39_000);
  expect(await take()).toBe(1);
  await host.advance(1_000);
  expect(await take()).toBeUndefined();
  expect(await take()).toBe(20);
});

test("a clock that is set back keeps nobody out for longer than a window", async () => {
  const ingress = new Ingress(store, host, LIMIT);
  for (let i = 0; i < 3; i++) await ingress.take("a");
  host.setWallBack(3_600_000);
  expect(await ingress.take("a")).toBeUndefined();
  expect(await ingress.take("a")).toBeUndefined();
  expect(await ingress.take("a")).toBeUndefined();
  expect(await ingress.take("a")).toBe(60);
});

test("what others have let in counts here too", async () => {
  const [first, second] = [new Ingress(store, host, LIMIT), new Ingress(store, host, LIMIT)];
  for (let i = 0; i < 3; i++) await first.take("a");
  await host.advance(1_001);
  await first.take("b");
  expect(await second.take("a")).toBeGreaterThan(0);
  expect(await second.take("c")).toBeUndefined();
  await host.advance(61_000);
  expect(await second.take("a")).toBeUndefined();
});

test("a store that does not answer does not close the door", async () => {
  const ingress = new Ingress(store, host, LIMIT);
  await store.close();
  for (let i = 0; i < 3; i++) expect(await ingress.take("a")).toBeUndefined();
  expect(await ingress.take("a")).toBeGreaterThan(0);
});
