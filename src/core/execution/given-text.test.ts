import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileValue } from "../../expression/template.ts";
import { contentHash } from "../../json/hash.ts";
import type { Json } from "../../json/json.ts";
import { GivenText } from "./given-text.ts";

const NO_IDS = { nodeIds: { has: () => false } };
const json = fc.jsonValue() as fc.Arbitrary<Json>;

describe("what a node is given is written as JSON.stringify would", () => {
  test("where the config is always the same", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), fc.array(fc.option(json, { nil: undefined })), (raw, all) => {
        // As a definition is read: what cannot be written is not there.
        const config = JSON.parse(JSON.stringify(raw).replaceAll("{{", "")) as Json;
        const given = new GivenText(compileValue(config, NO_IDS));
        for (const inputs of all) {
          const text = given.write(config, [], inputs, false);
          expect(text).toBe(JSON.stringify({ config, holes: [], inputs }));
          expect(given.hash(text)).toBe(contentHash(text).slice(0, 32));
        }
      }),
    );
  });

  test("where it has templates, or was changed for this once", () => {
    const templated = new GivenText(compileValue({ a: "{{ input.a }}" }, NO_IDS));
    expect(templated.write({ a: 1 }, [], undefined, false)).toBe('{"config":{"a":1},"holes":[]}');
    expect(templated.write({ a: 2 }, [], [3], false)).toBe('{"config":{"a":2},"holes":[],"inputs":[3]}');
    const constant = new GivenText(compileValue({ a: 1 }, NO_IDS));
    expect(constant.write({ a: 1 }, [], undefined, false)).toBe('{"config":{"a":1},"holes":[]}');
    expect(constant.write({ a: 1, model: "m" }, [], undefined, true)).toBe('{"config":{"a":1,"model":"m"},"holes":[]}');
    expect(constant.write({ a: 1 }, [], {}, false)).toBe('{"config":{"a":1},"holes":[],"inputs":{}}');
  });
});

test("another text has another hash, and the one before has its own again", () => {
  const given = new GivenText(compileValue({}, NO_IDS));
  const long = "x".repeat(10_000);
  for (const text of ["a", "a", "b", long, "b", "a", long]) {
    expect(given.hash(text)).toBe(contentHash(text).slice(0, 32));
  }
});
