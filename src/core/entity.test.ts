import { expect, test } from "vitest";
import { entityId, entityKey, entityKind, isCalled, partitionOf } from "./entity.ts";

test("a key is kind and id, and an id may hold a slash", () => {
  expect(entityKey("execution", "a/b")).toBe("execution/a/b");
  expect([entityKind("execution/a/b"), entityId("execution/a/b")]).toEqual(["execution", "a/b"]);
});

test("what was called is told by its name from what came from outside", () => {
  const hash = "0123456789abcdef".repeat(2);
  expect(isCalled(`execution/${hash}`)).toBe(true);
  const others = [
    "execution/01989d3e-8c00-7a1b-8c2d-0123456789ab",
    `gate/${hash}`,
    `execution/${hash}0`,
    "execution/x",
  ];
  expect(others.filter(isCalled)).toEqual([]);
});

// Stored data lives where these numbers say: a change of the hash would lose it.
test.each([
  ["execution/0198", 1, 0],
  ["execution/0198", 32, 0],
  ["execution/0199", 32, 19],
  ["gate/openai", 32, 21],
  ["", 32, 5],
])("%s of %i partitions lives in %i, for ever", (key, count, partition) => {
  expect(partitionOf(key, count)).toBe(partition);
});
