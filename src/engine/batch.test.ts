import { expect, test } from "vitest";
import { BatchBuilder } from "./batch.ts";

const FENCE = { partition: 0, incarnation: "i", epoch: 1, nonce: "n", seq: 0 };
const SEAL = { fence: FENCE, id: "id", behind: undefined, timeMs: 0, suspect: null };
const letter = { id: "x:1:a", class: "poison" as const, queue: "q", text: "{}" };

function decider(id: string): Parameters<BatchBuilder["add"]>[0] {
  return { key: `execution/${id}`, state: {}, written: null, machine: { eventFormat: 1 } };
}

function sealed(build: (builder: BatchBuilder) => void): { letters: string[]; discard: readonly string[] } {
  const builder = new BatchBuilder(1, 0, { partitionCount: 1 });
  build(builder);
  const { deadLetters, discard } = builder.seal(SEAL);
  return { letters: deadLetters.map(({ id }) => id), discard };
}

test("what a batch says of a letter is what it said last", () => {
  const write = (builder: BatchBuilder): void => builder.deadLetter("execution/x", letter, 0);
  const drop = (builder: BatchBuilder): void => builder.discardLetter(letter.id);
  const both = (...steps: readonly ((builder: BatchBuilder) => void)[]) =>
    sealed((builder) => {
      for (const step of steps) step(builder);
    });
  expect(both(write, drop)).toEqual({ letters: [], discard: [letter.id] });
  expect(both(drop, write)).toEqual({ letters: [letter.id], discard: [] });
  expect(both(write, drop, write)).toEqual({ letters: [letter.id], discard: [] });
});

test("the times of wakes are whole and finite: a store that refuses one would be asked for ever", () => {
  const builder = new BatchBuilder(1, 0, { partitionCount: 1 });
  builder.wake("execution/a", 1_234.56);
  builder.wake("execution/b", 1e300);
  builder.wake("execution/c", null);
  expect(builder.seal(SEAL).wakes).toEqual([
    { entity: "execution/a", atMs: 1_234 },
    { entity: "execution/b", atMs: Number.MAX_SAFE_INTEGER },
    { entity: "execution/c", atMs: null },
  ]);
});

test("values that are written beside a batch count for its size: what it holds is in memory at once", () => {
  const builder = new BatchBuilder(1, 0, { partitionCount: 1 });
  const blobs = [{ hash: "h", text: "x".repeat(5_000) }];
  builder.add(decider("x"), { events: [{ kind: "k", atMs: 1 }], blobs }, 1, 0);
  expect(builder.size).toBeGreaterThan(5_000);
});

test("a definition that many bring is written and counted once", () => {
  const builder = new BatchBuilder(1, 0, { partitionCount: 1 });
  const blobs = [{ scope: "definition", hash: "h", text: "x".repeat(5_000) }];
  for (const id of ["x", "y"]) builder.add(decider(id), { events: [{ kind: "k", atMs: 1 }], blobs }, 1, 0);
  expect(builder.blobs).toHaveLength(1);
  expect(builder.size).toBeLessThan(6_000);
});

test("an event of a batch can be read again, also one that came after another was", () => {
  const builder = new BatchBuilder(1, 0, { partitionCount: 1 });
  const event = (atMs: number): { kind: string; atMs: number } => ({ kind: "k", atMs });
  builder.events("execution/x", [event(1), event(2)], 5, 1);
  expect([4, 5, 6, 7].map((version) => builder.eventAt("execution/x", version)?.atMs)).toEqual([
    undefined,
    1,
    2,
    undefined,
  ]);
  builder.events("execution/x", [event(3)], 7, 1);
  builder.events("execution/y", [event(4)], 1, 1);
  expect(builder.eventAt("execution/x", 7)).toEqual(event(3));
  expect(builder.eventAt("execution/y", 1)).toEqual(event(4));
  expect(builder.seal(SEAL).records).toEqual([
    { entity: "execution/x", version: 5, count: 3, format: 1, text: JSON.stringify([event(1), event(2), event(3)]) },
    { entity: "execution/y", version: 1, count: 1, format: 1, text: JSON.stringify([event(4)]) },
  ]);
  expect([...builder.touched()]).toEqual(["execution/x", "execution/y"]);
});

test.each([undefined, true] as const)(
  "an answer has its text, but where it stays in the process (%s)",
  (sameProcess) => {
    const builder = new BatchBuilder(1, 0, { partitionCount: 1, ...(sameProcess && { sameProcess }) });
    const address = { process: "p", request: "r" };
    const ok = { ok: { execution_id: "x", status: "RUNNING" } };
    const refused = { refused: "ALREADY_RUNNING", execution: { status: "RUNNING" } };
    builder.reply(address, ok);
    builder.reply(address, refused);
    builder.reply(undefined, ok);
    expect(builder.seal(SEAL).replies).toEqual([
      sameProcess ? { ...address, text: "", answer: ok } : { ...address, text: JSON.stringify(ok) },
      { ...address, text: JSON.stringify(refused) },
    ]);
  },
);
