import { DatabaseError } from "pg";
import { describe, expect, test } from "vitest";
import { Gathering } from "./gathering.ts";

function databaseError(code: string): DatabaseError {
  const error = new DatabaseError("no", 2, "error");
  error.code = code;
  return error;
}

/** Doubles numbers, and remembers what was sent together. */
function doubling(fails: (numbers: readonly number[]) => unknown = () => undefined): {
  readonly gathering: Gathering<number, number>;
  readonly sent: (readonly number[])[];
} {
  const sent: (readonly number[])[] = [];
  const gathering = new Gathering<number, number>(async (numbers) => {
    sent.push(numbers);
    await Promise.resolve();
    const error = fails(numbers);
    if (error !== undefined) throw error;
    return numbers.map((number) => number * 2);
  });
  return { gathering, sent };
}

describe("a gathering", () => {
  test("sends what comes at once together, and gives everybody his own answers", async () => {
    const { gathering, sent } = doubling();
    const answers = await Promise.all([gathering.ask([1, 2]), gathering.ask([]), gathering.ask([3])]);
    expect(answers).toEqual([[2, 4], [], [6]]);
    expect(sent).toEqual([[1, 2, 3]]);
  });

  test("sends what comes meanwhile with the next, in order", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const sent: (readonly number[])[] = [];
    const gathering = new Gathering<number, number>(async (numbers) => {
      sent.push(numbers);
      await released;
      return numbers;
    });
    const first = gathering.ask([1]);
    while (sent.length === 0) await new Promise(setImmediate);
    const others = [gathering.ask([2]), gathering.ask([3])];
    release();
    expect(await Promise.all([first, ...others])).toEqual([[1], [2], [3]]);
    expect(sent).toEqual([[1], [2, 3]]);
  });

  test("sends no more than a statement should carry, and what is more than that alone", async () => {
    const { gathering, sent } = doubling();
    const many = Array.from({ length: 1500 }, (_, i) => i);
    await Promise.all([
      gathering.ask(many),
      gathering.ask(many),
      gathering.ask([...many, ...many]),
      gathering.ask([1]),
    ]);
    expect(sent.map(({ length }) => length)).toEqual([1500, 1500, 3000, 1]);
  });

  test("lets nobody fail because of another's value", async () => {
    const { gathering } = doubling((numbers) => (numbers.includes(0) ? databaseError("22P05") : undefined));
    const answers = await Promise.allSettled([gathering.ask([1]), gathering.ask([0]), gathering.ask([2])]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  test("tells everybody of trouble whose outcome nobody knows, and sends nothing twice", async () => {
    const { gathering, sent } = doubling(() => databaseError("57P01"));
    const answers = await Promise.allSettled([gathering.ask([1]), gathering.ask([2])]);
    expect(answers.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(sent).toHaveLength(1);
  });

  test("goes on after a failure", async () => {
    let isFailing = true;
    const { gathering } = doubling(() => (isFailing ? databaseError("57P01") : undefined));
    await expect(gathering.ask([1])).rejects.toThrow("no");
    isFailing = false;
    expect(await gathering.ask([1])).toEqual([2]);
  });
});
