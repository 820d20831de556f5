import { expect, test } from "vitest";
import type { Message } from "../core/message.ts";
import { isYoung, mayBeRecalled } from "./recall.ts";

const MINUTE = 60_000;
const NOW = 1_750_000_000_000;

function start(keyAtMs?: number): Message {
  const body = { kind: "start", workflow: "w", definition: "d", input: { json: null }, bodyHash: "", keyAtMs };
  return { id: "m", to: "execution/e", by: "test", trace: "", tenant: "default", body } as Message;
}

test.each([
  ["drawn just now", NOW, true],
  ["a minute younger than what is kept", NOW - 9 * MINUTE + 1, true],
  ["nearly as old as what is kept", NOW - 9 * MINUTE, false],
  ["ahead as far as clocks differ", NOW + MINUTE, true],
  ["further ahead", NOW + MINUTE + 1, false],
  ["of a key that does not tell", undefined, false],
])("a start is young or not: %s", (_, keyAtMs, isSo) => {
  expect(isYoung(start(keyAtMs), NOW - 60 * MINUTE, NOW, 10 * MINUTE)).toBe(isSo);
});

test("a key that may be older than the tenure says nothing: the store may have been made again in between", () => {
  expect(isYoung(start(NOW - 2 * MINUTE), NOW - 3 * MINUTE, NOW, 10 * MINUTE)).toBe(true);
  expect(isYoung(start(NOW - 2 * MINUTE), NOW - 3 * MINUTE + 1, NOW, 10 * MINUTE)).toBe(false);
});

test.each([
  ["completed", true],
  ["failed", false],
  ["cancelled", false],
])("the archive is asked for the parent of a child that ended %s: %s", (status, isSo) => {
  const body = { kind: "childEnded", child: "execution/c", generation: 2, instance: "n", status } as const;
  expect(mayBeRecalled({ ...start(), body })).toBe(isSo);
});
