import { expect, test } from "vitest";
import type { Host } from "../../host/host.ts";
import { KEPT_LEASE_MS, MAX_KEPT_LEASE_BYTES, MAX_KEPT_LEASES } from "../limits.ts";
import { KeptLeases } from "./kept-leases.ts";

interface Answer {
  readonly bytes: number;
}

function world() {
  let nowMs = 0;
  const kept = new KeptLeases<Answer>({ monotonicMs: () => nowMs } as Host);
  return {
    kept,
    pass: (ms: number) => void (nowMs += ms),
    add: async (name: string, bytes: number) => {
      kept.add(name, { body: name, answer: Promise.resolve({ bytes }) });
      await Promise.resolve();
    },
  };
}

test("an answer is given again, also while it is on its way", async () => {
  const { kept } = world();
  const answer = Promise.resolve({ bytes: 1 });
  kept.add("a", { body: "x", answer });
  expect(kept.get("a")?.answer).toBe(answer);
  await answer;
  expect(kept.get("a")).toMatchObject({ body: "x", answer });
});

test("one that failed is not kept", async () => {
  const { kept } = world();
  const answer = Promise.reject<Answer>(new Error("no"));
  kept.add("a", { body: "x", answer });
  await answer.catch(() => undefined);
  expect(kept.get("a")).toBeUndefined();
});

test("the oldest go when they are too many bytes together, but never the newest", async () => {
  const { kept, add } = world();
  for (const name of ["a", "b", "c"]) await add(name, MAX_KEPT_LEASE_BYTES / 2);
  expect(["a", "b", "c"].filter((name) => kept.get(name) !== undefined)).toEqual(["b", "c"]);
  await add("large", MAX_KEPT_LEASE_BYTES * 2);
  expect(["b", "c", "large"].filter((name) => kept.get(name) !== undefined)).toEqual(["large"]);
  await add("small", 1);
  expect(kept.get("large")).toBeUndefined();
  expect(kept.bytes).toBe(1);
});

test("the oldest go when they are too many", async () => {
  const { kept, add } = world();
  for (let i = 0; i <= MAX_KEPT_LEASES; i++) await add(String(i), 0);
  expect(kept.get("0")).toBeUndefined();
  expect(kept.get("1")).toBeDefined();
});

test("an answer that nobody can be waiting for any more goes", async () => {
  const { kept, add, pass } = world();
  await add("a", 5);
  pass(KEPT_LEASE_MS / 2);
  await add("b", 7);
  expect(kept.get("a")).toBeDefined();
  pass(KEPT_LEASE_MS / 2);
  expect(kept.get("a")).toBeUndefined();
  expect(kept.get("b")).toBeDefined();
  expect(kept.bytes).toBe(7);
});
