import { describe, expect, test } from "vitest";
import type { Json } from "./json.ts";
import { Schema } from "./schema.ts";

function faults(schema: Json, value: Json, isAny?: (value: Json) => boolean): string[] {
  const compiled = Schema.compile(schema);
  if (!(compiled instanceof Schema)) throw new Error(JSON.stringify(compiled));
  return compiled.check(value, isAny).map(({ pointer, keyword }) => `${pointer} ${keyword}`);
}

describe("a schema checks a value", () => {
  const person = { type: "object", required: ["name"], properties: { name: { type: "string", minLength: 1 } } };
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  const choice = { if: { type: "string" }, then: { minLength: 2 }, else: { minimum: 2 } };
  test.each<[Json, Json, string[]]>([
    [person, { name: "a" }, []],
    [person, {}, [" required"]],
    [person, { name: "" }, ["/name minLength"]],
    [person, [], [" type"]],
    [{ required: ["a"] }, {}, [" required"]],
    [{ required: ["a"] }, 5, []],
    [{ minimum: 3 }, 2, [" minimum"]],
    [{ minimum: 3 }, "x", []],
    [{ exclusiveMinimum: 0, maximum: 1 }, 0, [" exclusiveMinimum"]],
    [{ exclusiveMaximum: 1 }, 1, [" exclusiveMaximum"]],
    [{ multipleOf: 0.5 }, 0.75, [" multipleOf"]],
    [{ multipleOf: 0.01 }, 19.99, []],
    [{ multipleOf: 0.01 }, -19.99, []],
    [{ multipleOf: 0.01 }, 19.991, [" multipleOf"]],
    [{ multipleOf: 3 }, 10_000_000_000_000_002, []],
    [{ multipleOf: 3 }, 10_000_000_000_000_000, [" multipleOf"]],
    [{ multipleOf: 1e-7 }, 1e300, []],
    [{ type: "integer" }, 1.5, [" type"]],
    [{ type: "integer" }, 2 ** 60, []],
    [{ type: ["string", "null"] }, null, []],
    [{ enum: [1, { a: 1 }] }, { a: 1 }, []],
    [{ enum: [1] }, "1", [" enum"]],
    [{ const: { a: [1] } }, { a: [1] }, []],
    [{ const: null }, 0, [" const"]],
    [{ maxLength: 1 }, "😀", []],
    [{ pattern: "^a+$" }, "aab", [" pattern"]],
    [{ items: { type: "number" } }, [1, "2"], ["/1 type"]],
    [{ prefixItems: [{ type: "string" }], items: false }, ["a", 1], ["/1 false"]],
    [
      { minItems: 1, uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      [" uniqueItems"],
    ],
    [{ minItems: 1 }, [], [" minItems"]],
    [{ maxItems: 1 }, [1, 2], [" maxItems"]],
    [{ properties: { a: true }, additionalProperties: false }, { a: 1, b: 2 }, [" additionalProperties"]],
    [{ patternProperties: { "^x-": { type: "number" } }, additionalProperties: false }, { "x-a": "b" }, ["/x-a type"]],
    [{ additionalProperties: { type: "number" } }, { a: "b" }, ["/a type"]],
    [{ propertyNames: { maxLength: 1 } }, { ab: 1 }, [" maxLength"]],
    [{ minProperties: 1 }, {}, [" minProperties"]],
    [{ maxProperties: 0 }, { a: 1 }, [" maxProperties"]],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, 3, [" maximum"]],
    [{ anyOf: [{ type: "string" }, { minimum: 5 }] }, 3, [" minimum"]],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, 3, [" anyOf"]],
    [{ oneOf: [{ type: "number" }, { minimum: 3 }] }, 5, [" oneOf"]],
    [{ oneOf: [{ type: "number" }, { type: "string" }] }, 5, []],
    [{ not: { type: "string" } }, "a", [" not"]],
    [choice, "a", [" minLength"]],
    [choice, 1, [" minimum"]],
    [{ $ref: "#/$defs/n", $defs: { n: { type: "number" } } }, "a", [" type"]],
    [{ properties: { next: { $ref: "#" } }, required: ["v"] }, { v: 1, next: {} }, ["/next required"]],
    [{ properties: { a: { $ref: "#/definitions/a" } }, definitions: { a: { pattern: "^x" } } }, { a: "xy" }, []],
    [
      { properties: { a: { $ref: "#/x-a" } }, "x-a": { patternProperties: { b: false } } },
      { a: { b: 1 } },
      ["/a/b false"],
    ],
    [{ contains: { const: 3 } }, [1, 3], []],
    [{ contains: { const: 3 } }, [1], [" contains"]],
    [{ contains: { const: 3 } }, "3", []],
    [{ contains: { const: 3 }, minContains: 2 }, [3, 1, 3], []],
    [{ contains: { const: 3 }, minContains: 2 }, [3, 1], [" contains"]],
    [{ contains: { const: 3 }, minContains: 0 }, [], []],
    [{ contains: { const: 3 }, maxContains: 1 }, [3, 3], [" maxContains"]],
    [{ contains: { const: 3 }, maxContains: 1 }, [3, 1], []],
    [{ minContains: 2, maxContains: 0 }, [1], []],
    [{ dependentRequired: { a: ["b", "c"] } }, { a: 1, c: 1 }, [" dependentRequired"]],
    [{ dependentRequired: { a: ["b"] } }, { c: 1 }, []],
    [{ dependentSchemas: { a: { required: ["b"] } } }, { a: 1 }, [" required"]],
    [{ dependentSchemas: { a: { properties: { b: { minimum: 3 } } } } }, { a: 1, b: 2 }, ["/b minimum"]],
    [{ dependentSchemas: { a: false } }, { b: 1 }, []],
    [{ dependencies: { a: ["b"] } }, { a: 1 }, [" dependencies"]],
    [{ dependencies: { a: { required: ["b"] } } }, { a: 1 }, [" required"]],
    [{ dependencies: { a: ["b"] } }, { b: 1 }, []],
    [{ unevaluatedProperties: true, $dynamicRef: null }, { a: 1 }, []],
    [{ format: "date-time", unknownKeyword: 1 }, "x", []],
    [{ minLength: null, enum: null }, "", []],
    [true, 1, []],
    [false, 1, [" false"]],
  ])("case %# of each keyword", (schema, value, expected) => {
    expect(faults(schema, value)).toEqual(expected);
  });
});

test("a value that stands for any other fits everything around it too", () => {
  const isAny = (value: Json): boolean => value === "{{ x }}";
  expect(
    faults({ type: "object", properties: { n: { type: "number", minimum: 3 } } }, { n: "{{ x }}" }, isAny),
  ).toEqual([]);
  expect(faults({ type: "object" }, "{{ x }}", isAny)).toEqual([]);
  expect(faults({ oneOf: [{ required: ["a"] }, { required: ["b"] }] }, { a: "{{ x }}", b: 1 }, isAny)).toEqual([]);
  expect(faults({ not: { properties: { a: { const: 1 } } } }, { a: "{{ x }}" }, isAny)).toEqual([]);
  expect(faults({ required: ["a", "b"] }, { a: "{{ x }}" }, isAny)).toEqual([" required"]);
  expect(faults({ contains: { const: 3 } }, [1, "{{ x }}"], isAny)).toEqual([]);
  expect(faults({ contains: { const: 3 }, maxContains: 1 }, [3, "{{ x }}"], isAny)).toEqual([]);
});

test.each<[Json, string]>([
  [5, ""],
  [{ type: "strng" }, "/type"],
  [{ properties: { a: 5 } }, "/properties/a"],
  [{ properties: [] }, "/properties"],
  [{ anyOf: {} }, "/anyOf"],
  [{ required: "a" }, "/required"],
  [{ pattern: "(?=a)" }, "/pattern"],
  [{ pattern: "(" }, "/pattern"],
  [{ items: { $ref: "other.json" } }, "/items/$ref"],
  [{ $ref: "#/$defs/missing" }, "/$ref"],
  [{ $ref: "#/definitions/a", definitions: { a: { pattern: "(" } } }, "/definitions/a/pattern"],
  [{ $ref: "#/definitions/a", definitions: { a: { items: { $ref: "#/nowhere" } } } }, "/definitions/a/items/$ref"],
  [{ minimum: "5" }, "/minimum"],
  [{ exclusiveMinimum: true }, "/exclusiveMinimum"],
  [{ minLength: -1 }, "/minLength"],
  [{ maxItems: 1.5 }, "/maxItems"],
  [{ multipleOf: 0 }, "/multipleOf"],
  [{ enum: "a" }, "/enum"],
  [{ uniqueItems: "yes" }, "/uniqueItems"],
  [{ contains: 5 }, "/contains"],
  [{ contains: true, minContains: -1 }, "/minContains"],
  [{ contains: true, maxContains: "2" }, "/maxContains"],
  [{ dependentRequired: { a: "b" } }, "/dependentRequired"],
  [{ dependentRequired: ["a"] }, "/dependentRequired"],
  [{ dependentSchemas: { a: ["b"] } }, "/dependentSchemas/a"],
  [{ dependentSchemas: { a: { pattern: "(" } } }, "/dependentSchemas/a/pattern"],
  [{ dependencies: ["a"] }, "/dependencies"],
  [{ dependencies: { a: "b" } }, "/dependencies/a"],
  [{ dependencies: { a: { pattern: "(" } } }, "/dependencies/a/pattern"],
  [{ items: { unevaluatedProperties: false } }, "/items/unevaluatedProperties"],
  [{ unevaluatedItems: { type: "string" } }, "/unevaluatedItems"],
  [{ $dynamicRef: "#node" }, "/$dynamicRef"],
  [{ $recursiveRef: "#" }, "/$recursiveRef"],
])("schema %# cannot be checked by, and says where", (schema, pointer) => {
  const compiled = Schema.compile(schema);
  expect(compiled).not.toBeInstanceOf(Schema);
  expect((compiled as readonly { pointer: string }[])[0]!.pointer).toBe(pointer);
});

test.each<[Json, string]>([
  [{ type: [] }, "/type"],
  [{ enum: [] }, "/enum"],
  [{ anyOf: [] }, "/anyOf"],
  [{ items: { oneOf: [] } }, "/items/oneOf"],
])("schema %# is refused while it is new, and checked by when it is not", (schema, pointer) => {
  expect(Schema.compile(schema, { isNew: true })).toEqual([expect.objectContaining({ pointer })]);
  expect(faults(schema, [1])).toHaveLength(1);
  expect(Schema.ofStored(schema).check([1])).toHaveLength(1);
});

test("a schema that leads back to itself, or multiplies, ends", () => {
  expect(faults({ $ref: "#" }, 1)).toEqual([" "]);
  const $defs: Record<string, Json> = { d0: { type: "null" } };
  for (let i = 1; i <= 30; i++)
    $defs[`d${i}`] = { anyOf: Array.from({ length: 3 }, () => ({ $ref: `#/$defs/d${i - 1}` })) };
  expect(faults({ $ref: "#/$defs/d30", $defs }, 1)).toHaveLength(1);
});

test("a large value may take as many steps as it has parts", () => {
  const list = Array.from({ length: 300_000 }, (_, i) => (i === 299_999 ? "x" : i));
  expect(faults({ items: { type: "number" } }, list)).toEqual(["/299999 type"]);
});

test("a pattern made to run for ever takes no time", () => {
  expect(faults({ pattern: "^(a+)+$" }, `${"a".repeat(5_000)}!`)).toEqual([" pattern"]);
});

describe("a check stands in nobody's way", () => {
  const huge = `(${"a".repeat(990)}){1000}`;
  const slow = "[a-z]{0,900}[0-9]";

  test("patterns that ask for a million steps are refused before anybody makes them", () => {
    const refused = [
      expect.objectContaining({ pointer: "/pattern", reason: expect.stringMatching(/too much/) as string }),
    ];
    expect(Schema.compile({ pattern: huge })).toEqual(refused);
    expect(Schema.compile({ pattern: "^.{1,1000}$" })).toBeInstanceOf(Schema);
    expect(Schema.ofStored({ pattern: huge, minLength: 2 }).check("b")).toHaveLength(1);
  });

  test("and so are many that do so together", () => {
    const allOf = Array.from({ length: 100 }, (_, i) => ({ pattern: `^${i}.{1,1000}$` }));
    expect(Schema.compile({ allOf: allOf.slice(0, 40) })).toBeInstanceOf(Schema);
    expect(Schema.compile({ allOf })).not.toBeInstanceOf(Schema);
    const same = Array.from({ length: 100 }, () => ({ pattern: "^.{1,1000}$" }));
    expect(Schema.compile({ allOf: same })).toBeInstanceOf(Schema);
  });

  test.each<[string, Json, Json]>([
    ["a slow pattern on a long text", { pattern: slow }, "a".repeat(1_000_000)],
    ["on many", { items: { not: { pattern: slow } } }, Array.from({ length: 1_000 }, () => "a".repeat(1_000))],
    ["on names", { patternProperties: { [slow]: true } }, { ["a".repeat(1_000_000)]: 1 }],
    ["within a `not`", { not: { pattern: slow } }, "a".repeat(1_000_000)],
    ["as an alternative", { anyOf: [{ pattern: slow }, { type: "string" }] }, "a".repeat(1_000_000)],
    [
      "names that must be there, of many",
      { items: { not: { required: Array.from({ length: 20_000 }, (_, i) => `n${i}`) } } },
      Array.from({ length: 100_000 }, () => ({})),
    ],
    [
      "lengths of a long text",
      { allOf: Array.from({ length: 10_000 }, () => ({ minLength: 1 })) },
      "a".repeat(1_000_000),
    ],
  ])("%s is given up, and that is no yes", (_, schema, value) => {
    const began = performance.now();
    expect(faults(schema, value).map((fault) => fault.split(" ")[1])).toEqual([""]);
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  test.each<[string, Json, Json, number]>([
    [
      "many options for many",
      { items: { enum: Array.from({ length: 20_000 }, (_, i) => ({ i })) } },
      Array.from({ length: 50_000 }, (_, i) => ({ i: i % 20_000 })),
      0,
    ],
    [
      "a large constant for many",
      { items: { not: { const: Array.from({ length: 20_000 }, (_, i) => i) } } },
      Array.from({ length: 50_000 }, () => [1]),
      0,
    ],
    [
      "many names that are not known",
      {
        properties: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`p${i}`, true])),
        additionalProperties: false,
      },
      Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`q${i}`, 1])),
      20,
    ],
    [
      "a branch for each of many",
      { allOf: Array.from({ length: 1_000 }, () => ({ if: false, else: true })) },
      Array.from({ length: 100_000 }, () => 1),
      0,
    ],
  ])("%s takes no time", (_, schema, value, count) => {
    const began = performance.now();
    expect(faults(schema, value)).toHaveLength(count);
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  test("an ordinary pattern may look at a megabyte", () => {
    expect(faults({ pattern: "^[A-Za-z0-9+/]+={0,2}$" }, "a".repeat(1_000_000))).toEqual([]);
    const ids = Array.from({ length: 25_000 }, () => "0f8fad5b-d9cb-469f-a165-70867728950e");
    expect(faults({ items: { pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" } }, ids)).toEqual([]);
  });
});

describe("a schema that an earlier release has taken is checked by as far as it is understood", () => {
  const person = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
  test.each<[string, Json, Json, string[]]>([
    ["beside a keyword that is refused now", { ...person, unevaluatedProperties: false }, { n: "1" }, ["/n type"]],
    [
      "around one",
      { properties: { a: { unevaluatedItems: false }, b: { minimum: 2 } } },
      { a: 1, b: 1 },
      ["/b minimum"],
    ],
    ["beside a pattern of another language", { pattern: "(?=a)", minLength: 2 }, "b", [" minLength"]],
    ["beside one for names", { patternProperties: { "(?=a)": false }, additionalProperties: false }, { a: 1 }, []],
    ["beside a type that there is not", { type: "any", minimum: 2 }, 1, [" minimum"]],
    ["beside a reference to elsewhere", { $ref: "https://example.com/x", minimum: 2 }, 1, [" minimum"]],
    ["beside a keyword of the wrong kind", { minimum: "2", maximum: 2 }, 3, [" maximum"]],
    [
      "behind more faults than are told",
      { allOf: Array.from({ length: 30 }, () => ({ minimum: "2" })), properties: { a: { pattern: "^x" } } },
      { a: "y" },
      ["/a pattern"],
    ],
    ["unless it is none", 5, { n: 1 }, []],
  ])("%s", (_, schema, value, expected) => {
    expect(Schema.compile(schema)).not.toBeInstanceOf(Schema);
    const found = Schema.ofStored(schema).check(value);
    expect(found.map(({ pointer, keyword }) => `${pointer} ${keyword}`)).toEqual(expected);
  });
});
