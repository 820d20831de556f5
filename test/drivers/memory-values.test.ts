import { expect, test } from "vitest";
import { openMemory } from "../../src/drivers/memory/memory-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";

const result = (token: string, messageChars: number) => ({
  ref: "r",
  token,
  partition: 0,
  outcome: "completed" as const,
  text: "",
  message: { token },
  messageChars,
});
const request = { partition: 0, after: null, limit: 100, maxChars: 1_000 };

test("a result that was handed over as a value is read as that very value, among texts", async () => {
  const store = openMemory({ host: nodeHost });
  const handed = result("a", 10);
  await store.inbox.append([{ partition: 0, start: false, text: "first" }]);
  await store.tasks.settle([handed]);
  const [read] = await store.inbox.read([request], 0);
  expect(read!.messages).toEqual(["first", ""]);
  expect(read!.values![1]).toBe(handed.message);
  expect([read!.values![0], read!.isPartial]).toEqual([undefined, undefined]);
});

test("values count for as long as their texts would be, and a read that stops says that there may be more", async () => {
  const store = openMemory({ host: nodeHost });
  await store.tasks.settle([result("a", 600), result("b", 600), result("c", 100)]);
  const [read] = await store.inbox.read([request], 0);
  expect(read!.values).toEqual([{ token: "a" }]);
  expect(read!.isPartial).toBe(true);
  const [rest] = await store.inbox.read([{ ...request, after: read!.position }], 0);
  expect(rest!.values).toEqual([{ token: "b" }, { token: "c" }]);
  expect(rest!.isPartial).toBeUndefined();
});

test("the list of values is its reader's: another read of the same messages has them all", async () => {
  const store = openMemory({ host: nodeHost });
  await store.tasks.settle([result("a", 10)]);
  const [first] = await store.inbox.read([request], 0);
  first!.values!.fill(undefined);
  const [second] = await store.inbox.read([request], 0);
  expect(second!.values).toEqual([{ token: "a" }]);
});
