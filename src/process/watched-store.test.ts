import { expect, test } from "vitest";
import type { Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";
import type { Log } from "./log.ts";
import { watched } from "./watched-store.ts";

/** A store whose answers a test decides, and what is said of it. */
function watchedStore(lastsMs: number) {
  const told: [level: string, message: string, fields: object][] = [];
  const world = { nowMs: 0, error: undefined as Error | undefined };
  const tasks = { lease: () => (world.error === undefined ? Promise.resolve([]) : Promise.reject(world.error)) };
  const say = (level: string) => (fields: object, message: string) => void told.push([level, message, fields]);
  const log = { error: say("error"), warn: say("warn") } as unknown as Log;
  const host = { monotonicMs: () => world.nowMs };
  const store = watched({ tasks } as unknown as Store, { host, log, called: "the store", lastsMs });
  const call = async (atMs: number, error?: Error): Promise<void> => {
    Object.assign(world, { nowMs: atMs, error });
    const lease = store.tasks.lease({} as never);
    if (error === undefined) expect(await lease).toEqual([]);
    else await expect(lease).rejects.toBe(error);
  };
  return { told, call };
}
const away = new StoreError("STORE_UNAVAILABLE", "The store cannot be reached: ECONNREFUSED");

test("a store that stays away is told once, and so is its return", async () => {
  const { told, call } = watchedStore(1_000);
  for (const atMs of [0, 500, 1_500, 2_500]) await call(atMs, away);
  expect(told).toEqual([["error", "the store cannot be used; trying again until it can", { trouble: away.message }]]);
  await call(7_200);
  await call(8_000);
  expect(told.slice(1)).toEqual([["warn", "the store can be used again", { seconds: 7.2 }]]);
  await call(9_000, away);
  await call(10_000, away);
  expect(told.length).toBe(3);
});

test("nothing is said of what passes at once, nor of a store that answers with a no", async () => {
  const { told, call } = watchedStore(1_000);
  await call(0, away);
  await call(900);
  await call(1_000, away);
  await call(1_100);
  const full = new StoreError("STORE_FULL", "full");
  for (const atMs of [2_000, 4_000]) await call(atMs, full);
  expect(told).toEqual([]);
});

test("a store that lets nobody in any more is told of like one that is away", async () => {
  const { told, call } = watchedStore(1_000);
  const forbidden = new StoreError("STORE_FORBIDDEN", "The password is wrong");
  for (const atMs of [0, 2_000]) await call(atMs, forbidden);
  expect(told).toMatchObject([
    ["error", "the store cannot be used; trying again until it can", { trouble: forbidden.message }],
  ]);
});

test("a server is told of at the first call that was given up", async () => {
  const { told, call } = watchedStore(0);
  await call(0, new Error("401: a valid key is needed"));
  expect(told.map(([level]) => level)).toEqual(["error"]);
});
