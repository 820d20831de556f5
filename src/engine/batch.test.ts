import { expect, test } from "vitest";
import { BatchBuilder } from "./batch.ts";

const FENCE = { partition: 0, incarnation: "i", epoch: 1, nonce: "n", seq: 0 };
const letter = { id: "x:1:a", class: "poison" as const, queue: "q", text: "{}" };

function sealed(build: (builder: BatchBuilder) => void): { letters: string[]; discard: readonly string[] } {
  const builder = new BatchBuilder(1, 0, { partitionCount: 1 });
  build(builder);
  const { deadLetters, discard } = builder.seal(FENCE, "id", 0, null);
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
