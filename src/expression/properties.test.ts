import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compileCondition, compileExpression } from "./condition.ts";
import { compileValue } from "./template.ts";
import { blob, failed, none, optionsOf, output, scopeOf } from "./test-scope.ts";
import type { Json } from "../json/json.ts";
import type { World } from "./test-scope.ts";

const objectBefore = Object.getOwnPropertyNames(Object.prototype).join();

/** Pieces of the language in any order: far more of these compile than of random characters. */
const piece = fc.constantFrom(
  ..."{{ }} { } ( ) [ ] . , | || && ! - + * / % == != < in ? : ' \" \\ \n 0 1 2.5 1u 0x1 n n.a n.l my-node input item index".split(
    " ",
  ),
  ..."execution.id secrets.A nodes __proto__ constructor has( size( .map(x, .filter(x, x .exists(x, true null default( upper join(".split(
    " ",
  ),
  ...'nodes["n"] like( string( .contains( 😀 \u0000 = ` ; process'.split(" "),
  " ",
);
const language = fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join(""));
const template = fc.oneof(
  fc.string({ unit: "binary" }),
  language,
  language.map((body) => `{{ ${body} }}`),
  language.map((body) => `a {{${body}}} b`),
);
const value = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
const config = fc.oneof(
  template,
  fc.array(template, { maxLength: 4 }),
  fc.dictionary(fc.string(), template, { maxKeys: 4 }),
) as fc.Arbitrary<Json>;

const world = fc
  .record({ n: value, l: fc.array(value), other: value, input: value, item: value })
  .map(({ n, l, other, input, item }): World => ({
    nodes: { n: output({ a: n, l, s: "text" }), "my-node": output(other), x: none, y: failed(other), z: blob("h") },
    input: output(input),
    item,
    index: 1,
  }));

test("compiling and resolving anything gives an answer and never throws, the same one twice", () => {
  fc.assert(
    fc.property(config, world, (config, world) => {
      const scope = scopeOf(world);
      const compiled = compileValue(config, optionsOf(world));
      const first = compiled.resolve(scope);
      expect(compileValue(config, optionsOf(world)).resolve(scope)).toEqual(first);
      if (compiled.problems.length > 0) expect(first.kind).toBe("failed");
      if (first.kind === "resolved") expect(JSON.stringify(first.value)).toBeTypeOf("string");
      expect(Object.getOwnPropertyNames(Object.prototype).join()).toBe(objectBefore);
    }),
    { numRuns: 3_000 },
  );
});

test("conditions and expressions of any text give an answer and never throw", () => {
  fc.assert(
    fc.property(fc.oneof(template, language), world, (text, world) => {
      const condition = compileCondition(text, optionsOf(world)).evaluate(scopeOf(world));
      if (condition.kind === "resolved") expect(typeof condition.value).toBe("boolean");
      const resolution = compileExpression(text, optionsOf(world)).resolve(scopeOf(world));
      if (resolution.kind === "resolved") expect(JSON.stringify(resolution.value)).toBeTypeOf("string");
    }),
    { numRuns: 3_000 },
  );
});

test("text without {{ is constant, whatever it is", () => {
  fc.assert(
    fc.property(value, (value) => {
      fc.pre(!JSON.stringify(value).includes("{{"));
      const compiled = compileValue(value, { nodeIds: new Set() });
      expect(compiled.constant).toBe(true);
      expect(compiled.resolve(scopeOf({}))).toEqual({ kind: "resolved", value, holes: [] });
    }),
  );
});

test("a path finds exactly the own value at that place", () => {
  const key = fc.oneof(
    fc.string(),
    fc.constantFrom("toString", "length", "valueOf", "0", "hasOwnProperty", "error", "output"),
  );
  fc.assert(
    fc.property(fc.dictionary(key, value, { maxKeys: 5 }), key, (data, key) => {
      fc.pre(!["__proto__", "constructor", "prototype"].includes(key));
      const world = { nodes: { n: output(data) } };
      const resolution = compileValue(`{{ n.output[${JSON.stringify(key)}] }}`, optionsOf(world)).resolve(
        scopeOf(world),
      );
      if (Object.hasOwn(data, key)) expect(resolution).toEqual({ kind: "resolved", value: data[key], holes: [] });
      else expect(resolution.kind).toBe("failed");
    }),
  );
});

test("a string value comes out of any template as it went in", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const world = { nodes: { n: output({ text }) } };
      const config = { lone: "{{ n.text }}", mixed: "<{{n.text}}>" };
      expect(compileValue(config, optionsOf(world)).resolve(scopeOf(world))).toEqual({
        kind: "resolved",
        value: { lone: text, mixed: `<${text}>` },
        holes: [],
      });
    }),
  );
});
