import { expect, test } from "vitest";
import { DeadlineBound } from "./deadline-bound.ts";

const drained = (committedBatch: number) => ({ count: 1, isDrained: true, committedBatch });
const full = (committedBatch: number, count = 250) => ({ count, isDrained: false, committedBatch });

test("deadlines may fire up to the last moment at which nothing was left unread", () => {
  const bound = new DeadlineBound();
  expect(bound.upToMs("a", 10)).toBe(-Infinity);
  bound.noteRead(drained(0), 20);
  bound.noteRead(full(0), 30);
  expect([bound.upToMs("a", 10), bound.upToMs("a", 40)]).toEqual([10, 20]);
});

test("who was released waits for the end of a read that was sent after the commit, and nobody else does", () => {
  const bound = new DeadlineBound();
  bound.noteRead(drained(0), 10);
  bound.hold("a", 5);
  bound.noteRead(drained(4), 20);
  expect([bound.upToMs("a", 100), bound.upToMs("b", 100)]).toEqual([-Infinity, 20]);
  bound.noteRead(full(5), 30);
  expect(bound.upToMs("a", 100)).toBe(-Infinity);
  bound.noteRead(drained(5), 40);
  expect(bound.upToMs("a", 100)).toBe(40);
});

test("who is released again waits again", () => {
  const bound = new DeadlineBound();
  bound.hold("a", 5);
  bound.hold("a", 7);
  bound.noteRead(drained(6), 10);
  expect(bound.upToMs("a", 100)).toBe(-Infinity);
  bound.noteRead(drained(7), 20);
  expect(bound.upToMs("a", 100)).toBe(20);
});

test("under a load that never ends nobody waits for ever, and who was released has the whole backlog read first", () => {
  const bound = new DeadlineBound();
  bound.noteRead(full(0, 20_001), 10);
  expect(bound.upToMs("a", 100)).toBe(10);
  bound.hold("a", 1);
  bound.noteRead(full(0, 20_001), 20);
  bound.noteRead(full(1, 20_000), 30);
  expect([bound.upToMs("a", 100), bound.upToMs("b", 100)]).toEqual([-Infinity, 30]);
  bound.noteRead(full(1, 1), 40);
  expect(bound.upToMs("a", 100)).toBe(40);
});
