import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "./json.ts";
import { locateJson, positionsOf } from "./locate.ts";
import { pointerStep, pointerSteps } from "./pointer.ts";
import { valueEnd } from "./tokens.ts";

function everyPointer(root: Json): Map<string, Json> {
  const found = new Map<string, Json>();
  const left: [string, Json][] = [["", root]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [pointer, value] = next;
    found.set(pointer, value);
    if (typeof value === "object" && value !== null) {
      for (const [key, member] of Object.entries(value)) left.push([pointer + pointerStep(key), member]);
    }
  }
  return found;
}

describe("locateJson", () => {
  test("finds each value, and the key before it", () => {
    const text = '{\n  "nodes": [\n    { "id": "a" },\n    { "id": "b" }\n  ]\n}';
    const places = locateJson(text, ["/nodes/1/id", "/nodes/0", "", "/nodes/7"]);
    const { value, key } = places.get("/nodes/1/id")!;
    expect(text.slice(value, value + 3)).toBe('"b"');
    expect(text.slice(key, key + 4)).toBe('"id"');
    expect(positionsOf(text, [value, key])).toEqual(
      new Map([
        [key, { line: 4, column: 7 }],
        [value, { line: 4, column: 13 }],
      ]),
    );
    expect(places.has("/nodes/7")).toBe(false);
    expect(places.get("")).toEqual({ value: 0, key: 0 });
  });

  test("finds every value of any document at the right place", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 1, "\t"), (value, indent) => {
        const json = JSON.parse(JSON.stringify(value)) as Json;
        const text = JSON.stringify(json, undefined, indent);
        const expected = everyPointer(json);
        const places = locateJson(text, expected.keys());
        for (const [pointer, member] of expected) {
          const at = places.get(pointer)!.value;
          expect(JSON.parse(text.slice(at, valueEnd(text, at)))).toEqual(member);
        }
      }),
    );
  });

  test("pointers escape and unescape their steps", () => {
    expect(pointerStep("a/b~c")).toBe("/a~1b~0c");
    expect(pointerSteps("/a~1b~0c/0/")).toEqual(["a/b~c", "0", ""]);
  });
});
