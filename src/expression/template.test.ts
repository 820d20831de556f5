import { describe, expect, test } from "vitest";
import { blob, failed, none, optionsOf, output, scopeOf } from "./test-scope.ts";
import { compileValue } from "./template.ts";
import type { Json } from "../json/json.ts";
import type { Resolution } from "./scope.ts";
import type { World } from "./test-scope.ts";

const WORLD: World = {
  nodes: {
    fetch_data: output({ result: { total: 12.5, rows: [{ id: 1 }, { id: 2 }], note: null }, "content-type": "json" }),
    fetch: output({ output: "inner", error: "key of the output", text: "hi", list: [1, "a", null], empty: [] }),
    "my-node": output({ x: 1 }),
    "1st": output({ x: 2 }),
    "2024-01": output({ x: 3 }),
    "a.b#c": output({ x: 4 }),
    node: output({ key: "v" }),
    map: output({ x: 5 }),
    in: output({ x: 6 }),
    process: output({ result: 7 }),
    number: output(42),
    words: output("some text"),
    nothing: output(null),
    skipped: none,
    broken: failed({ code: "HTTP_500", message: "down" }),
  },
  input: output({ name: "Ada", output: "not special", age: 36 }),
  item: { sku: "x1" },
  index: 3,
};

function resolve(value: Json, world: World = WORLD): Resolution<Json> {
  const compiled = compileValue(value, optionsOf(world));
  expect(compiled.problems).toEqual([]);
  return compiled.resolve(scopeOf(world));
}

function valueOf(value: Json, world: World = WORLD): Json {
  const resolution = resolve(value, world);
  expect(resolution).toMatchObject({ kind: "resolved" });
  return (resolution as { value: Json }).value;
}

function failureOf(value: Json, world: World = WORLD): { code: string; message: string; pointer: string } {
  const resolution = resolve(value, world);
  expect(resolution).toMatchObject({ kind: "failed" });
  return (resolution as { failure: { code: string; message: string; pointer: string } }).failure;
}

function problemsOf(value: Json, world: World = WORLD): readonly { code: string; hint?: string; pointer: string }[] {
  return compileValue(value, optionsOf(world)).problems;
}

describe("a lone template keeps its type", () => {
  test.each<[string, Json]>([
    ["{{ fetch_data.result }}", { total: 12.5, rows: [{ id: 1 }, { id: 2 }], note: null }],
    ["{{fetch_data.result.total}}", 12.5],
    ["{{node.key}}", "v"],
    ["{{ fetch_data.result.rows[1].id }}", 2],
    ["{{ fetch_data.result.rows.1.id }}", 2],
    ['{{ fetch_data["content-type"] }}', "json"],
    ["{{ fetch_data['content-type'] }}", "json"],
    ["{{ fetch_data.content-type }}", "json"],
    ["{{ fetch_data.result.note }}", null],
    ["{{ my-node.x }}", 1],
    ["{{ 1st.x }}", 2],
    ["{{ 2024-01.x }}", 3],
    ['{{ nodes["a.b#c"].x }}', 4],
    ['{{ nodes["fetch"].text }}', "hi"],
    ["{{ map.x }}", 5],
    ["{{ in.x }}", 6],
    ["{{ process.result }}", 7],
    ["{{ number }}", 42],
    ["{{ number.output }}", 42],
    ["{{ nothing }}", null],
    ["{{ input.name }}", "Ada"],
    ["{{ input.output }}", "not special"],
    ["{{ item.sku }}", "x1"],
    ["{{ item }}", { sku: "x1" }],
    ["{{ index }}", 3],
    ["{{ execution.id }}", "exec-1"],
    ["{{ true }}", true],
    ["{{ -1.5 }}", -1.5],
    ["{{ [1, 'a', null] }}", [1, "a", null]],
    ['{{ {"a": {"b": input.age}} }}', { a: { b: 36 } }],
    ['{{ "}}" }}', "}}"],
    ["{{ '{{ input.name }}' }}", "{{ input.name }}"],
  ])("%s", (template, expected) => {
    expect(valueOf(template)).toEqual(expected);
  });
});

describe("the first step", () => {
  test.each<[string, Json]>([
    ["{{ fetch.output.output }}", "inner"],
    ["{{ fetch.error }}", "key of the output"],
    ["{{ fetch.output.error }}", "key of the output"],
    ["{{ broken.error }}", { code: "HTTP_500", message: "down" }],
    ["{{ broken.error.code }}", "HTTP_500"],
  ])("%s", (template, expected) => {
    expect(valueOf(template)).toEqual(expected);
  });

  test("`output` is the whole output, even if the output has a key of that name", () => {
    expect(valueOf("{{ fetch.output }}")).toEqual(valueOf("{{ fetch }}"));
  });

  test("a failed node has an error and no output, also under `output.error`", () => {
    for (const template of ["{{ broken }}", "{{ broken.output }}", "{{ broken.output.error }}", "{{ broken.x }}"]) {
      expect(failureOf(template)).toMatchObject({ code: "TEMPLATE_UNRESOLVED" });
    }
  });

  test("a node called `input` wins over the input of the execution", () => {
    const world: World = { nodes: { input: output({ name: "of the node" }) }, input: output({ name: "raw" }) };
    expect(valueOf("{{ input.name }}", world)).toBe("of the node");
  });
});

describe("mixed text", () => {
  test.each<[string, string]>([
    ["Hello {{ input.name }}!", "Hello Ada!"],
    ["{{ input.name }}{{ input.age }}", "Ada36"],
    [" {{ number }}", " 42"],
    ["{{ number }}\n", "42\n"],
    ["rows: {{ fetch_data.result.rows }}", 'rows: [{"id":1},{"id":2}]'],
    ["{{ nothing }}.", "null."],
    ["{{ number + 1 }} of {{ 2 * 3 }}", "43 of 6"],
    ["}} and { and {x} stay", "}} and { and {x} stay"],
  ])("%j", (template, expected) => {
    expect(valueOf(template)).toBe(expected);
  });
});

describe("the walk through a config", () => {
  test("fills templates at any place, copies only what it must, and leaves the definition as it was", () => {
    const constant = { deep: ["unchanged"] };
    const config = {
      url: "{{ input.name }}",
      constant,
      list: [1, { k: ["{{ number }}", "b"] }],
      "a/b~c": "{{ number }}",
    };
    const before = JSON.stringify(config);
    const value = valueOf(config) as { constant: Json };
    expect(value).toEqual({ url: "Ada", constant, list: [1, { k: [42, "b"] }], "a/b~c": 42 });
    expect(value.constant).toBe(constant);
    expect(JSON.stringify(config)).toBe(before);
    expect(Object.keys(value)).toEqual(["url", "constant", "list", "a/b~c"]);
  });

  test("keys are never templates", () => {
    expect(valueOf({ "{{ input.name }}": "{{ number }}" })).toEqual({ "{{ input.name }}": 42 });
  });

  test("a constant is given back as it is", () => {
    const config = { a: [1, "b", null, { c: "}} {" }] };
    const compiled = compileValue(config, optionsOf(WORLD));
    expect(compiled.constant).toBe(true);
    expect(compiled.resolve(scopeOf(WORLD))).toEqual({ kind: "resolved", value: config, holes: [] });
    expect((compiled.resolve(scopeOf(WORLD)) as { value: Json }).value).toBe(config);
  });

  test("pointers of problems and failures are escaped as JSON pointers", () => {
    expect(problemsOf({ "a/b~c": ["ok", "{{ nope.x }}"] })[0]?.pointer).toBe("/a~1b~0c/1");
    expect(failureOf({ "a/b~c": ["ok", "{{ fetch.nope }}"] }).pointer).toBe("/a~1b~0c/1");
    expect(failureOf("{{ fetch.nope }}").pointer).toBe("");
  });

  test("64 levels are walked, the 65th is a problem, and a million levels are no recursion", () => {
    const nested = (levels: number): Json => {
      let value: Json = "{{ number }}";
      for (let level = 0; level < levels; level += 1) value = [value];
      return value;
    };
    expect(problemsOf(nested(64))).toEqual([]);
    expect(problemsOf(nested(65))[0]?.code).toBe("EXPRESSION_TOO_COMPLEX");
    expect(problemsOf(nested(1_000_000))[0]?.code).toBe("EXPRESSION_TOO_COMPLEX");
  });

  test("an own key `__proto__` stays an own key", () => {
    const config = JSON.parse('{"__proto__": "{{ number }}", "b": {"__proto__": {"c": "{{ number }}"}}}') as Json;
    const value = valueOf(config) as object;
    expect(JSON.stringify(value)).toBe('{"__proto__":42,"b":{"__proto__":{"c":42}}}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });
});

describe("what is missing", () => {
  test.each<[string, RegExp]>([
    ["{{ fetch.txt }}", /`fetch` has no key "txt"; the nearest is "text"/],
    ["{{ fetch_data.result.totl }}", /`fetch_data.result` has no key "totl"; the nearest is "total"/],
    ["{{ fetch_data.result.rows[2] }}", /`fetch_data.result.rows` has 2 elements, none at index 2/],
    ["{{ fetch_data.result.rows.length }}", /is a list/],
    ["{{ fetch_data.result.rows.01 }}", /is a list/],
    ["{{ fetch_data.result.rows['-1'] }}", /is a list/],
    ["{{ fetch_data.result[0] }}", /has no key "0"/],
    ["{{ fetch_data.total-fetch_data.tax }}", /spaces around the minus/],
    ["{{ fetch_data.result.note.deeper }}", /is null/],
    ["{{ words.length }}", /is a string/],
    ["{{ words[0] }}", /is a string/],
    ["{{ number.toFixed }}", /is a number/],
    ["{{ fetch.hasOwnProperty }}", /has no key/],
    ["{{ skipped.x }}", /"skipped" has no output/],
    ["{{ skipped }}", /"skipped" has no output/],
    ["{{ broken.x }}", /"broken" has no output: it failed/],
    ["{{ skipped.error.code }}", /"skipped" has no output/],
    ["{{ broken.error.cod }}", /`broken.error` has no key "cod"; the nearest is "code"/],
    ["{{ fetch.empty | first }}", /empty/],
  ])("%s", (template, message) => {
    const failure = failureOf({ at: template });
    expect(failure).toMatchObject({ code: "TEMPLATE_UNRESOLVED", pointer: "/at" });
    expect(failure.message).toMatch(message);
    expect(failure.message).toContain(template);
    expect(failureOf({ at: `text ${template}` }).code).toBe("TEMPLATE_UNRESOLVED");
  });

  test("item and index are missing outside a map, the input if there is none", () => {
    for (const template of ["{{ item }}", "{{ item.x }}", "{{ index }}", "{{ input }}", "{{ input.x }}"]) {
      expect(failureOf(template, { nodes: {} }).code).toBe("TEMPLATE_UNRESOLVED");
    }
  });

  test("a default stands in for what is missing or null, and for nothing else", () => {
    const cases: [string, Json][] = [
      ["{{ skipped.x | default(1) }}", 1],
      ["{{ skipped | default([]) }}", []],
      ["{{ broken | default({}) }}", {}],
      ["{{ fetch.nope.deeper | default('none') }}", "none"],
      ["{{ fetch_data.result.note | default(0) }}", 0],
      ["{{ fetch_data.result.rows[9] | default(null) }}", null],
      ["{{ number | default(1) }}", 42],
      ["{{ fetch.empty | first | default(7) }}", 7],
      ["{{ fetch.empty | default(7) }}", []],
      ["{{ fetch.nope | upper | default('x') | upper }}", "X"],
    ];
    for (const [template, expected] of cases) expect(valueOf(template)).toEqual(expected);
  });
});

describe("problems found at submit", () => {
  test.each<[string, string]>([
    ["{{ fetc.x }}", "TEMPLATE_UNKNOWN_NODE"],
    ["{{ fetc }}", "TEMPLATE_UNKNOWN_NODE"],
    ["{{ no-such.x }}", "TEMPLATE_UNKNOWN_NODE"],
    ["{{ fetc.x | default(1) }}", "TEMPLATE_UNKNOWN_NODE"],
    ['{{ nodes["fetc"].x }}', "TEMPLATE_UNKNOWN_NODE"],
    ["{{ fetc.x + 1 }}", "TEMPLATE_UNKNOWN_NODE"],
    ["{{ nodes }}", "TEMPLATE_SYNTAX"],
    ["{{ nodes[input.which] }}", "TEMPLATE_SYNTAX"],
    ["{{ execution }}", "TEMPLATE_SYNTAX"],
    ["{{ execution.name }}", "TEMPLATE_SYNTAX"],
    ["{{ index.x }}", "TEMPLATE_SYNTAX"],
    ["{{", "TEMPLATE_SYNTAX"],
    ["a {{ b", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x }", "TEMPLATE_SYNTAX"],
    ["{{ }}", "TEMPLATE_SYNTAX"],
    ["{{}}", "TEMPLATE_SYNTAX"],
    ["{{ {{ fetch.x }} }}", "TEMPLATE_SYNTAX"],
    ["{{{ fetch.x }}}", "TEMPLATE_SYNTAX"],
    ["{{ fetch. }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch..x }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x | }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x | nope }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x | toString }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x | default }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x | default(fetch.y) }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x | upper(1) }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x | join }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x | round(99) }}", "TEMPLATE_SYNTAX"],
    ["{{ fetch.x + 1 | upper }}", "TEMPLATE_SYNTAX"],
    ["{{ it's }}", "TEMPLATE_SYNTAX"],
  ])("%s", (template, code) => {
    expect(problemsOf({ at: template })).toMatchObject([{ code, pointer: "/at" }]);
  });

  test("every template of a config is reported, not only the first", () => {
    expect(problemsOf({ a: "{{ x.y }} {{ z.y }}", b: ["{{ fetch.__proto__ }}"] }).map((each) => each.code)).toEqual([
      "TEMPLATE_UNKNOWN_NODE",
      "TEMPLATE_UNKNOWN_NODE",
      "TEMPLATE_FORBIDDEN_PATH",
    ]);
  });

  test("the nearest name is the hint", () => {
    const options = { ...optionsOf(WORLD), nearest: (name: string) => (name === "fetc" ? "fetch" : undefined) };
    for (const template of ["{{ fetc.x }}", "{{ fetc.x + 1 }}", '{{ nodes["fetc"].x }}']) {
      expect(compileValue(template, options).problems[0]?.hint).toContain('"fetch"');
    }
  });

  test("a value with problems fails when resolved, and does not throw", () => {
    expect(compileValue("{{ a {{", optionsOf(WORLD)).resolve(scopeOf(WORLD))).toMatchObject({ kind: "failed" });
  });

  test("1 MB of `{{` and its relatives are answered fast", () => {
    const payloads = ["{{", "{{ '", "{{ (", "{{{", "{", "{{ a", "{{ \\", '{{ """', "{{ a }} "];
    const started = performance.now();
    for (const payload of payloads) problemsOf(payload.repeat(Math.ceil(1_000_000 / payload.length)));
    problemsOf(`{{ ${"(".repeat(1_000_000)} }}`);
    // Linear code needs about 0.3 s for all of them together; quadratic code would need hours.
    expect(performance.now() - started).toBeLessThan(60_000);
    expect(problemsOf("{{".repeat(500_000))).toMatchObject([{ code: "TEMPLATE_SYNTAX" }]);
  });
});

describe("references", () => {
  const node = { kind: "node", optional: false, whole: false, error: false } as const;
  test.each<[Json, readonly object[]]>([
    ["{{ fetch }}", [{ ...node, id: "fetch", path: [], whole: true }]],
    ["{{ fetch.output }}", [{ ...node, id: "fetch", path: [], whole: true }]],
    ["{{ fetch | json }}", [{ ...node, id: "fetch", path: [] }]],
    ["a {{ fetch }}", [{ ...node, id: "fetch", path: [] }]],
    ["{{ fetch.output.a[0]['b'] }}", [{ ...node, id: "fetch", path: ["a", 0, "b"] }]],
    ["{{ fetch.a | default(1) }}", [{ ...node, id: "fetch", path: ["a"], optional: true }]],
    ["{{ fetch.error.code }}", [{ ...node, id: "fetch", path: ["error", "code"], error: true }]],
    ["{{ fetch.output.error }}", [{ ...node, id: "fetch", path: ["error"] }]],
    ["{{ input.a | default(1) }}", [{ kind: "input", path: ["a"], optional: true }]],
    ["{{ item.a }}{{ index }}{{ execution.id }}", [{ kind: "item" }, { kind: "index" }, { kind: "execution" }]],
    ["Bearer {{ secrets.TOKEN }}", [{ kind: "secret", name: "TOKEN" }]],
    [
      "{{ fetch.a + input.b[0] }}",
      [
        { ...node, id: "fetch", path: ["a"] },
        { kind: "input", path: ["b", 0], optional: false },
      ],
    ],
    ["{{ fetch.list.map(fetch, fetch.x) }}", [{ ...node, id: "fetch", path: ["list"] }]],
    ["{{ fetch.list[index].x }}", [{ ...node, id: "fetch", path: ["list"] }, { kind: "index" }]],
    ['{{ nodes["my-node"].x + 1 }}', [{ ...node, id: "my-node", path: ["x"] }]],
    [
      "{{ has(fetch.a) ? fetch.a.b : 1 }}",
      [
        { ...node, id: "fetch", path: ["a"], optional: true },
        { ...node, id: "fetch", path: ["a", "b"], optional: true },
      ],
    ],
  ])("%j", (template, expected) => {
    expect(compileValue(template, optionsOf(WORLD)).references).toEqual(expected);
  });
});

describe("blobs", () => {
  const world: World = { nodes: { big: blob("h1"), other: blob("h2"), small: output(1) }, input: blob("h3") };

  test("a lone whole output passes by reference", () => {
    expect(resolve({ a: "{{ big }}", b: ["{{ other.output }}"], c: "{{ input }}", d: "{{ small }}" }, world)).toEqual({
      kind: "resolved",
      value: { a: null, b: [null], c: null, d: 1 },
      holes: [
        { pointer: "/a", kind: "blob", ref: { hash: "h1", bytes: 70_000 } },
        { pointer: "/b/0", kind: "blob", ref: { hash: "h2", bytes: 70_000 } },
        { pointer: "/c", kind: "blob", ref: { hash: "h3", bytes: 70_000 } },
      ],
    });
  });

  test("count towards what a config may be, though they stay where they are", () => {
    const fits = Array.from({ length: 59 }, () => "{{ big }}");
    expect(resolve(fits, world)).toMatchObject({ kind: "resolved" });
    expect(failureOf([...fits, "{{ big }}"], world).code).toBe("RESOLVED_INPUT_TOO_LARGE");
  });

  test("every other read lists all blobs that it needs, each once", () => {
    const config = {
      a: "{{ big.x }}",
      b: "{{ big.y | default(1) }} {{ input.z }}",
      c: "{{ size(other) }}",
      d: "{{ big }}",
    };
    const needs = resolve(config, world) as { blobs: readonly { hash: string }[] };
    expect(needs).toMatchObject({ kind: "needs" });
    expect(needs.blobs.map((each) => each.hash)).toEqual(["h1", "h3", "h2"]);
  });

  test.each([
    "{{ big | json }}",
    "x {{ big }}",
    "{{ big.x }}",
    "{{ big.error }}",
    "{{ has(big.x) }}",
    "{{ big == 1 }}",
  ])("%s needs the blob", (template) => {
    expect(resolve(template, world)).toMatchObject({ kind: "needs", blobs: [{ hash: "h1" }] });
  });

  test("a fetched blob is read, and a lone whole one still passes by reference", () => {
    const fetched: World = { nodes: { big: blob("h1", { x: 5 }) } };
    expect(valueOf({ a: "{{ big.x }}", b: "{{ big }}", c: "- {{ big }}" }, fetched)).toEqual({
      a: 5,
      b: null,
      c: '- {"x":5}',
    });
  });
});

describe("secrets", () => {
  test("a secret leaves a hole made of the template", () => {
    expect(resolve({ headers: { auth: "Bearer {{ secrets.TOKEN }}-{{ number }}", key: "{{ secrets.K }}" } })).toEqual({
      kind: "resolved",
      value: { headers: { auth: null, key: null } },
      holes: [
        {
          pointer: "/headers/auth",
          kind: "secret",
          parts: [{ text: "Bearer " }, { secret: "TOKEN" }, { text: "-" }, { text: "42" }],
        },
        { pointer: "/headers/key", kind: "secret", parts: [{ secret: "K" }] },
      ],
    });
  });

  test("an upstream output that looks like a secret is text, alone and beside a real one", () => {
    const world: World = { nodes: { page: output({ body: "{{ secrets.TOKEN }} {{ page.body }}" }) } };
    const text = "{{ secrets.TOKEN }} {{ page.body }}";
    expect(resolve("{{ page.body }}", world)).toEqual({ kind: "resolved", value: text, holes: [] });
    expect(resolve("> {{ page.body }}", world)).toEqual({ kind: "resolved", value: `> ${text}`, holes: [] });
    expect(resolve("{{ page.body + '!' }}", world)).toEqual({ kind: "resolved", value: `${text}!`, holes: [] });
    expect(resolve("{{ secrets.A }}{{ page.body }}", world)).toMatchObject({
      value: null,
      holes: [{ parts: [{ secret: "A" }, { text }] }],
    });
  });

  test.each<[string, string]>([
    ["{{ secrets.A | upper }}", "EXPRESSION_FORBIDDEN"],
    ["{{ secrets.A | default('x') }}", "EXPRESSION_FORBIDDEN"],
    ["{{ secrets.A + 'x' }}", "EXPRESSION_FORBIDDEN"],
    ["{{ size(secrets.A) }}", "EXPRESSION_FORBIDDEN"],
    ["{{ has(secrets.A) }}", "EXPRESSION_FORBIDDEN"],
    ["{{ secrets['A'] == 'x' }}", "EXPRESSION_FORBIDDEN"],
    ["{{ [1].map(x, secrets.A) }}", "EXPRESSION_FORBIDDEN"],
    ["{{ secrets }}", "TEMPLATE_SYNTAX"],
    ["{{ secrets.A.B }}", "TEMPLATE_SYNTAX"],
    ["{{ secrets[input.x] }}", "TEMPLATE_SYNTAX"],
    ["{{ [secrets] }}", "TEMPLATE_SYNTAX"],
  ])("%s is refused", (template, code) => {
    expect(problemsOf(template)).toMatchObject([{ code }]);
  });
});

describe("the size of a resolved config", () => {
  const mega = "x".repeat(1_048_576);
  const world: World = { nodes: { big: output({ text: mega, list: [mega] }), tiny: output("x") } };

  test("1 MB used 1,000 times fails before it is built", () => {
    const many = Array.from({ length: 1_000 }, () => "{{ big.text }}");
    for (const config of [
      many,
      many.join(" "),
      many.map((each) => `- ${each}`),
      "{{ [" + "big,".repeat(200) + "big] }}",
    ]) {
      expect(failureOf(config, world).code).toBe("RESOLVED_INPUT_TOO_LARGE");
    }
    expect(failureOf("{{ big.list | json | json }} ".repeat(5), world).code).toBe("RESOLVED_INPUT_TOO_LARGE");
  });

  test("json upon json, which doubles its escapes, stops at the limit", () => {
    const quotes: World = { nodes: { q: output('"'.repeat(1_000)) } };
    expect(failureOf(`{{ q ${"| json ".repeat(16)} }}`, quotes).code).toBe("RESOLVED_INPUT_TOO_LARGE");
  });

  test("the constant part counts too, and secrets and blobs do not hide text", () => {
    expect(failureOf([...Array.from({ length: 4 }, () => mega), "{{ tiny }}"], world).code).toBe(
      "RESOLVED_INPUT_TOO_LARGE",
    );
    expect(
      failureOf(
        Array.from({ length: 5 }, () => mega),
        world,
      ).code,
    ).toBe("RESOLVED_INPUT_TOO_LARGE");
    expect(failureOf("{{ secrets.A }}- {{ big.text }}{{ big.text }}{{ big.text }}{{ big.text }}", world).code).toBe(
      "RESOLVED_INPUT_TOO_LARGE",
    );
  });

  test("just under the limit passes", () => {
    expect(valueOf(["{{ big.text }}", "{{ big.text }}", "{{ big.text }}"], world)).toEqual([mega, mega, mega]);
  });

  test("bytes are counted, not characters", () => {
    const wide: World = { nodes: { big: output("€".repeat(1_048_576)) } };
    expect(failureOf(["{{ big }}", "{{ big }}"], wide).code).toBe("RESOLVED_INPUT_TOO_LARGE");
    expect(resolve("{{ big }}", wide).kind).toBe("resolved");
  });
});
