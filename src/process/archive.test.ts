import { expect, test } from "vitest";
import type { Host } from "../host/host.ts";
import type { Archive } from "../store/archive.ts";
import type { Store } from "../store/contract.ts";
import { checkArchiveOwner } from "./archive.ts";

const page = (isEmpty: boolean) => () => Promise.resolve({ items: isEmpty ? [] : [{}], cursor: null });

function storeThat(isEmpty: boolean): Store {
  const queries = { headers: page(isEmpty), workflows: page(true) };
  return { capabilities: { incarnation: "this" }, queries } as unknown as Store;
}

/** Silent so many times, and then it says whose it is. */
function archiveOf(owner: string | null, silences: number): Archive {
  let left = silences;
  return {
    owner: () => (left-- > 0 ? Promise.reject(new Error("away")) : Promise.resolve(owner)),
  } as unknown as Archive;
}

/** Its time goes by while somebody sleeps, and at no other time. */
function sleeper(): Host {
  let nowMs = 0;
  const sleep = (ms: number): Promise<void> => {
    nowMs += ms;
    return Promise.resolve();
  };
  return { monotonicMs: () => nowMs, sleep } as unknown as Host;
}

test("a store is started if the archive is its own, or nobody's yet", async () => {
  for (const owner of ["this", null]) await checkArchiveOwner(archiveOf(owner, 0), storeThat(true), sleeper());
});

test("a store is refused if the archive is another one's", async () => {
  const check = checkArchiveOwner(archiveOf("another", 0), storeThat(false), sleeper());
  await expect(check).rejects.toMatchObject({ code: "STORE_LOST" });
});

test("a store with something in it does not wait for its archive", async () => {
  await checkArchiveOwner(archiveOf("another", 1), storeThat(false), sleeper());
});

test("an empty store waits until its archive says whether it was lost", async () => {
  await checkArchiveOwner(archiveOf("this", 5), storeThat(true), sleeper());
  const check = checkArchiveOwner(archiveOf("another", 5), storeThat(true), sleeper());
  await expect(check).rejects.toMatchObject({ code: "STORE_LOST" });
});

test("an empty store is not started when its archive stays away", async () => {
  const check = checkArchiveOwner(archiveOf("this", Infinity), storeThat(true), sleeper());
  await expect(check).rejects.toMatchObject({ code: "STORE_UNAVAILABLE", message: expect.stringContaining("archive") });
});
