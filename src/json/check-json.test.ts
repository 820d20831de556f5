import { describe, expect, test } from "vitest";
import { checkJson } from "./check-json.ts";

const circle: { inner: { self?: unknown } } = { inner: {} };
circle.inner.self = circle;

const list: unknown[] = [];
list.push(list);

function deep(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

describe("checkJson", () => {
  test.each([
    [{ a: 1n }, "/a", "bigint"],
    [circle, "/inner/self", "is circular"],
    [list, "/0", "is circular"],
    [[1, Number.NaN], "/1", "NaN"],
    [{ a: [Number.POSITIVE_INFINITY] }, "/a/0", "Infinity"],
    ["a\0b", "", "NUL"],
    [{ text: "\ud800" }, "/text", "surrogate"],
    [{ "\0": 1 }, undefined, "key"],
    [deep(65), undefined, "deeper than 64"],
    [deep(5_000), undefined, "deeper than 64"],
    [JSON.parse('{"a":{"__proto__":1}}'), undefined, "__proto__"],
    [[undefined], "/0", "undefined"],
    [{ f: () => 1 }, "/f", "function"],
    [{ d: new Date(0) }, "/d", "Date"],
    [new Map(), "", "Map"],
    [{ s: Symbol("x") }, "/s", "symbol"],
    [undefined, "", "undefined"],
  ])("refuses %o", (value, pointer, says) => {
    const fault = checkJson(value);
    expect(fault?.reason).toContain(says);
    if (pointer !== undefined) expect(fault?.pointer).toBe(pointer);
  });

  test.each([
    null,
    0,
    "",
    "😀",
    true,
    [],
    {},
    { a: undefined },
    deep(64),
    { constructor: 1 },
    Object.create(null) as object,
  ])("accepts %o", (value) => {
    expect(checkJson(value)).toBeUndefined();
  });
});
