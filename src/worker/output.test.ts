import { describe, expect, test } from "vitest";
import { Concealment } from "./concealment.ts";
import { COUNTED_BYTES, MAX_OUTPUT_BYTES, smallOutput, storableOutput } from "./output.ts";

const NOTHING = new Concealment();

function fails(): never {
  throw new Error("no");
}

/** A getter that says something else when it is asked again. */
function fickle(first: unknown, then: unknown): object {
  let asked = 0;
  return Object.defineProperty({}, "a", { enumerable: true, get: () => (asked++ === 0 ? first : then) });
}

const circle: { self?: unknown } = {};
circle.self = circle;

const inheritsToJson: object = Object.create(Object.assign(Object.create(null) as object, { toJSON: fails })) as object;

describe("an output that throws while it is read, or changes, is invalid", () => {
  test.each<[string, unknown]>([
    ["a getter that throws", Object.defineProperty({}, "a", { enumerable: true, get: fails })],
    ["a toJSON of its own", { toJSON: fails }],
    ["a toJSON that it inherits", inheritsToJson],
    ["a proxy that throws", new Proxy({}, { ownKeys: fails })],
    ["a proxy of an array that throws", new Proxy([1], { get: fails })],
    ["a NUL the second time", fickle("good", "b\0d")],
    ["half a pair the second time", fickle("good", "\ud800")],
    ["a BigInt the second time", fickle(1, 1n)],
  ])("%s", (_, output) => {
    expect(storableOutput(output, NOTHING)).toMatchObject({ error: { code: "OUTPUT_INVALID", retryable: false } });
  });
});

test.each<[string, unknown, string]>([
  ["a circle", circle, 'the value at "/self" is circular: it contains itself'],
  ["a BigInt", 1n, "the result is a bigint, which JSON cannot write"],
  ["a BigInt in it", { n: 1n }, 'the value at "/n" is a bigint, which JSON cannot write'],
])("%s is told by its place", (_, output, reason) => {
  const message = `The output cannot be stored: ${reason}`;
  expect(storableOutput(output, NOTHING)).toMatchObject({ error: { message } });
});

test("what is checked is what is posted", () => {
  expect(storableOutput(fickle("good", "other"), NOTHING)).toMatchObject({
    json: { a: "other" },
    text: '{"a":"other"}',
  });
});

describe("a small output is copied as it is read the first time", () => {
  test.each<[string, unknown, unknown]>([
    ["nothing", undefined, null],
    ["a getter", fickle("good", "b\0d"), { a: "good" }],
    ["a member that is undefined", { a: undefined, b: 1 }, { b: 1 }],
  ])("%s", (_, output, copy) => {
    expect(smallOutput(output, NOTHING)).toStrictEqual(copy);
  });

  test.each<[string, unknown]>([
    ["a getter that throws", Object.defineProperty({}, "a", { enumerable: true, get: fails })],
    ["a proxy that throws", new Proxy({}, { ownKeys: fails })],
    ["a proxy that throws when its prototype is asked for", new Proxy({}, { getPrototypeOf: fails })],
    ["a circle", circle],
  ])("%s is left to others", (_, output) => {
    expect(smallOutput(output, NOTHING)).toBeUndefined();
  });

  test("without its secrets", () => {
    const concealment = new Concealment();
    concealment.add("s3cret");
    expect(smallOutput({ "a s3cret": ["s3cret"] }, concealment)).toEqual({ "a ***": ["***"] });
  });

  test("one whose bytes are counted is not small", () => {
    expect(smallOutput("x".repeat(COUNTED_BYTES - 2), NOTHING)).toBeUndefined();
    expect(smallOutput("x".repeat(COUNTED_BYTES / 8), NOTHING)).toBeDefined();
  });
});

test("nothing is null", () => {
  expect(storableOutput(undefined, NOTHING)).toEqual({ json: null, text: "null", bytes: 4 });
});

test.each<[string, string, boolean]>([
  ["as much as is allowed", "x".repeat(MAX_OUTPUT_BYTES - 2), true],
  ["one byte more", "x".repeat(MAX_OUTPUT_BYTES - 1), false],
])("%s", (_, output, fits) => {
  expect("error" in storableOutput(output, NOTHING)).toBe(!fits);
});

test("secrets are cut out of the output, and out of what is said about it", () => {
  const concealment = new Concealment();
  concealment.add("s3cret");
  expect(storableOutput({ a: "s3cret" }, concealment)).toEqual({ json: { a: "***" }, text: '{"a":"***"}', bytes: 11 });
  const faulty = storableOutput({ "key of s3cret": 1n }, concealment);
  expect(JSON.stringify(faulty)).not.toContain("s3cret");
});
