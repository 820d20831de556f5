import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../json/json.ts";
import { FIELD_GUESSES, MAX_DEFINITION_BYTES, NODE_FIELDS, RETRY_FIELDS, WORKFLOW_FIELDS } from "./fields.ts";
import { checkDefinition, readDefinition } from "./read.ts";
import { catalogue } from "./test-catalogue.ts";

const handlers = catalogue({ work: {} });

describe("ids", () => {
  test.each([
    "a b",
    " a",
    "a/b",
    "..",
    ".a",
    "-a",
    "#a",
    "a:b",
    "{a}",
    "{{a}}",
    'a"b',
    "a'b",
    "a\\b",
    "a\nb",
    "a\0b",
    "\u202Ea",
    "a\u200Bb",
    "é",
    "e\u0301",
    "日本",
    "😀",
    "\ud800",
    "",
    "x".repeat(129),
    "x".repeat(10_000),
    "a[0]",
    "a,b",
    "a*",
    "$a",
  ])("%j is no id", (id) => {
    const report = checkDefinition({ name: "w", nodes: [{ id, handler: "work" }] }, { handlers });
    expect(report.errors.map(({ code, path }) => [code, path])).toEqual([["INVALID_NODE_ID", "/nodes/0/id"]]);
    expect(report.errors[0]!.message.length).toBeLessThan(200);
  });

  test.each([
    "a",
    "A",
    "9",
    "_",
    "a.b-c#1",
    "9-x",
    "in",
    "map",
    "my-node",
    "x".repeat(128),
    "output",
    "NFCORE_X.Y-1",
    "toString",
    "hasOwnProperty",
  ])("%s is an id", (id) => {
    expect(checkDefinition({ name: "w", nodes: [{ id, handler: "work" }] }, { handlers }).errors).toEqual([]);
  });

  test.each(["__proto__", "constructor", "prototype", "nodes", "secrets", "item", "index", "execution"])(
    "%s is reserved",
    (id) => {
      const list = readDefinition(JSON.stringify({ name: "w", nodes: [{ id, handler: "work" }] }), {
        format: "json",
        handlers,
      });
      expect(list.errors.map(({ code }) => code)).toEqual(["RESERVED_ID"]);
      expect(Object.keys(Object.prototype)).toEqual([]);
    },
  );

  test("as keys, the names of JavaScript's own are refused before anything else", () => {
    for (const key of ["__proto__", "constructor", "prototype"]) {
      const text = `{"name":"w","nodes":{"${key}":{"handler":"work"}}}`;
      const report = readDefinition(text, { format: "json", handlers });
      expect(report).toMatchObject({
        failure: "FORBIDDEN_KEY",
        errors: [{ code: "FORBIDDEN_KEY", path: `/nodes/${key}`, line: 1, column: 22 }],
      });
      expect(checkDefinition(JSON.parse(text) as Json, { handlers }).failure).toBe("FORBIDDEN_KEY");
      expect(({} as { handler?: string }).handler).toBeUndefined();
    }
  });

  test("ids that differ in case or in the way a letter is made are different", () => {
    const report = checkDefinition(
      {
        name: "w",
        nodes: [
          { id: "a", handler: "work" },
          { id: "A", handler: "work" },
        ],
      },
      { handlers },
    );
    expect(report.errors).toEqual([]);
  });
});

describe("text that cannot be read", () => {
  test.each([
    ['{"name":"w",}', "INVALID_JSON", 1, 13],
    ["{}\n\n x", "INVALID_JSON", 3, 2],
    ["\ufeff{}", "INVALID_JSON", 1, 1],
    ['{"a":1,\n"a":2}', "DUPLICATE_KEY", 2, 1],
    ["[".repeat(65) + "]".repeat(65), "JSON_TOO_DEEP", 1, 65],
  ])("%j is %s at %i:%i", (text, code, line, column) => {
    const report = readDefinition(text, { format: "json" });
    expect(report).toMatchObject({ failure: code, errors: [{ code, line, column }] });
    expect(report.workflow).toBeUndefined();
  });

  test("bytes that are not UTF-8", () => {
    const report = readDefinition(new Uint8Array([0x7b, 0xff, 0x7d]), { format: "json" });
    expect(report.failure).toBe("INVALID_JSON");
    const good = readDefinition(new TextEncoder().encode('{"name":"é","nodes":[{"id":"a","handler":"input"}]}'), {
      format: "json",
    });
    expect(good.workflow?.name).toBe("é");
  });

  test("more than 32 MiB of JSON, or 4 MiB of YAML", () => {
    const large = `{"name":"${"é".repeat(MAX_DEFINITION_BYTES / 2)}"}`;
    expect(readDefinition(large, { format: "json" }).failure).toBe("PAYLOAD_TOO_LARGE");
    expect(readDefinition("#".repeat(4 * 1_048_576 + 1), { format: "yaml" }).failure).toBe("PAYLOAD_TOO_LARGE");
  });
});

test("a value that contains itself, or is no data at all, is refused", () => {
  const loop: Record<string, unknown> = { name: "w" };
  loop["nodes"] = [loop, loop];
  expect(checkDefinition(loop as Json).failure).toBe("JSON_TOO_DEEP");
  expect(
    checkDefinition({ name: "w", nodes: [{ id: "a", handler: "work", config: { f: () => 1 } }] } as unknown as Json)
      .failure,
  ).toBe("INVALID_JSON");
  expect(checkDefinition(undefined as unknown as Json).failure).toBe("INVALID_JSON");
});

describe("nothing throws", () => {
  const names = [WORKFLOW_FIELDS, NODE_FIELDS, RETRY_FIELDS].flatMap((table) =>
    Object.entries(table).flatMap(([name, { aliases = [] }]) => [name, ...aliases]),
  );
  const key = fc.constantFrom(
    ...names,
    ...FIELD_GUESSES.keys(),
    "dag",
    "routes",
    "when",
    "to",
    "items",
    "url",
    "until",
    "x-a",
    "on",
    "mock",
    "form",
    "fields",
    "expression",
    "signal",
    "a",
    "b",
  );
  const leaf = fc.oneof(
    fc.constantFrom<Json>(
      null,
      true,
      0,
      -1,
      1.5,
      "",
      "a",
      "b",
      "{{ a.x }}",
      "{{",
      "{{ item }}",
      "quorum:2",
      "map",
      "router",
      "http",
      "llm",
      "work",
      "review",
      "wait",
      "workflow",
      "transform",
      "end",
      "data_processor",
      "external_service",
    ),
    fc.string({ maxLength: 5 }),
  );
  const { tree } = fc.letrec<{ tree: Json }>((tie) => ({
    tree: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      leaf,
      fc.array(tie("tree"), { maxLength: 4 }),
      fc.dictionary(key, tie("tree"), { maxKeys: 5 }),
    ),
  }));
  const node = fc
    .dictionary(key, tree, { maxKeys: 6 })
    .chain((fields) =>
      fc
        .record({ id: leaf, handler: leaf, config: tree, dependencies: tree }, { requiredKeys: [] })
        .map((known) => ({ ...fields, ...known })),
    );

  test("on random definitions, and every problem has a code, a pointer and a sentence", () => {
    const definition = fc.oneof(
      tree,
      fc
        .tuple(fc.dictionary(key, tree, { maxKeys: 4 }), fc.array(node, { maxLength: 5 }))
        .map(([fields, nodes]) => ({ ...fields, nodes })),
    );
    fc.assert(
      fc.property(definition, (value) => {
        const report = readDefinition(JSON.stringify(value), { format: "json", handlers });
        expect(report.workflow === undefined).toBe(report.errors.length > 0);
        for (const { message, path, line, column } of [...report.errors, ...report.warnings]) {
          expect(message).not.toMatch(/undefined|\[object/);
          expect(path === "" || path.startsWith("/")).toBe(true);
          expect([line, column].every((n) => Number.isSafeInteger(n) && n! > 0)).toBe(true);
        }
      }),
      { numRuns: 1_500 },
    );
  });

  test("on random text in both formats", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(..."[]{}:,-?&*!|>'\"%@`#\n a0<".split("")) })),
        (text) => {
          readDefinition(text, { format: "json" });
          readDefinition(text, { format: "yaml" });
        },
      ),
      { numRuns: 1_500 },
    );
  });
});
