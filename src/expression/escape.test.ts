import { afterEach, describe, expect, test } from "vitest";
import { compileCondition, compileExpression } from "./condition.ts";
import { compileValue } from "./template.ts";
import { optionsOf, output, scopeOf } from "./test-scope.ts";
import type { Json } from "../json/json.ts";
import type { World } from "./test-scope.ts";

const hostile = JSON.parse(
  '{"__proto__": {"polluted": 1}, "constructor": {"name": "own"}, "a": {"b": [1]}, "f": "x"}',
) as Json;
const WORLD: World = {
  nodes: {
    n: output({ a: { b: [1, 2] }, s: "text", l: [1, 2], k: "constructor", p: "__proto__" }),
    h: output(hostile),
  },
  input: output({ k: "constructor", p: "__proto__", t: "toString" }),
};

const prototypes = [Object.prototype, Array.prototype, String.prototype, Number.prototype, Function.prototype];
const before = prototypes.map((each) => Object.getOwnPropertyNames(each).join());
afterEach(() => {
  expect(prototypes.map((each) => Object.getOwnPropertyNames(each).join())).toEqual(before);
});

const codesOf = (body: string): string[] => [
  ...compileValue(`{{ ${body} }}`, optionsOf(WORLD)).problems.map((each) => each.code),
  ...compileValue(`text {{ ${body} }}`, optionsOf(WORLD)).problems.map((each) => each.code),
  ...compileCondition(body, optionsOf(WORLD)).problems.map((each) => each.code),
  ...compileExpression(body, optionsOf(WORLD)).problems.map((each) => each.code),
];

describe("paths into a prototype are TEMPLATE_FORBIDDEN_PATH", () => {
  test.each([
    "n.__proto__",
    "n.__proto__.polluted",
    "n.constructor",
    "n.constructor.constructor",
    "n.a.constructor.prototype",
    "n.prototype",
    "n.output.__proto__",
    "n.error.constructor",
    'n["__proto__"]',
    "n['constructor']['prototype']",
    "n.a['__proto__'].b",
    "n.l[0].constructor",
    "n.s.constructor",
    "input.__proto__",
    "input.constructor.name",
    "item.__proto__",
    'nodes["__proto__"]',
    'nodes["constructor"].x',
    "nodes.__proto__.x",
    "__proto__",
    "__proto__.polluted",
    "constructor",
    "constructor.constructor",
    "prototype.x",
    "n.constructor | json",
    "n.__proto__ | default(1)",
    "secrets.__proto__",
    "secrets['constructor']",
    "h.constructor.name",
    "n.a.b.constructor == 1",
    "n.l.map(x, x.constructor)",
    "n.l.map(x, x['__proto__'])",
    "n.l.map(constructor, 1)",
    "[1, 2].constructor",
    "'a'.constructor",
    "{'a': 1}.__proto__",
    "{'__proto__': {'polluted': 1}}",
    "{'constructor': 1}",
    "has(n.constructor)",
    "has(n.a.__proto__)",
    "size(n.__proto__)",
    "n.l.exists(x, has(x.constructor))",
    "constructor.constructor('return process')()",
    "n.constructor.constructor('return this')()",
    "n.a.b.constructor.constructor(`x`)",
    "''.constructor.constructor('return process.env')()",
    "n['\\x5f_proto__'] == 1",
    "n['\\u005f\\u005fproto__']",
  ])("%s", (body) => {
    const codes = codesOf(body);
    expect(codes).toHaveLength(4);
    expect(new Set(codes)).toEqual(new Set(["TEMPLATE_FORBIDDEN_PATH"]));
  });
});

describe("reaching for JavaScript is EXPRESSION_FORBIDDEN", () => {
  test.each([
    "process",
    "process.env",
    "process.mainModule.require('child_process')",
    "process.binding('fs')",
    "globalThis",
    "globalThis.process",
    "globalThis['process'].exit(1)",
    "global.process",
    "window.alert(1)",
    "this",
    "this.x",
    "self.x",
    "require('fs')",
    "require('child_process').execSync('id')",
    "module.exports",
    "import('fs')",
    "import x from 'fs'",
    "eval('1')",
    "Function('return 1')()",
    "new Function('return 1')()",
    "new Date()",
    "Date.now()",
    "Math.random()",
    "Object.keys(n)",
    "Reflect.ownKeys(n)",
    "Symbol.iterator",
    "JSON.stringify(n)",
    "`a`",
    "`${n.a}`",
    "n.a = 1",
    "n.a += 1",
    "n.a++",
    "x => x",
    "(x => x)(1)",
    "function () { return 1 }",
    "() => { while (true) {} }",
    "n.a; n.b",
    "delete n.a",
    "typeof n",
    "await n",
    "async () => 1",
    "n.toString()",
    "n.hasOwnProperty('a')",
    "n.l.push(1)",
    "n.l.reduce(a, b)",
    "n.s.replace('a', 'b')",
    "n.s.matches('(a+)+$')",
    "'a'.repeat(1000000)",
    "n.valueOf()",
    "n.l.toString.call(n)",
    "n.l.at(0)",
    "n.s.bind(n)",
    "setTimeout(1, 2)",
    "fetch('http://169.254.169.254')",
    "now()",
    "random()",
    "uuid()",
    "timestamp(n.s)",
    "bytes(n.s)",
    "b'x'.json()",
    "cel.bind(x, n, x)",
  ])("%s", (body) => {
    const codes = codesOf(body);
    expect(codes).toHaveLength(4);
    expect(new Set(codes)).toEqual(new Set(["EXPRESSION_FORBIDDEN"]));
  });
});

describe("at run time only own properties are read", () => {
  test.each([
    "n.toString",
    "n.valueOf",
    "n.hasOwnProperty",
    "n.__defineGetter__",
    "n.__lookupGetter__",
    "n.l.length",
    "n.l.map",
    "n.l.at",
    "n.l['length']",
    "n.l['0x0']",
    "n.l['1e0']",
    "n.l['-0']",
    "n.l[' 0']",
    "n.s.length",
    "n.s[0]",
    "n.s['0']",
    "n.a.b.length",
    "n[input.k]",
    "n[input.p]",
    "n[input.t]",
    "n['con' + 'structor']",
    "n['__pro' + 'to__'].polluted",
    "n[n.k][n.k]",
    "n.l[input.k]",
    "n.s[input.k]",
    "n.l['len' + 'gth']",
    "n.l.map(x, x[input.k])",
    "{'a': 1}[input.k]",
    "{'a': 1}[input.p]",
    "[1][input.t]",
    "h.polluted",
  ])("%s is missing", (body) => {
    const compiled = compileValue(`{{ ${body} }}`, optionsOf(WORLD));
    expect(compiled.problems).toEqual([]);
    expect(compiled.resolve(scopeOf(WORLD))).toMatchObject({
      kind: "failed",
      failure: { code: "TEMPLATE_UNRESOLVED" },
    });
  });

  test("inherited names are not `in` an object, and has() does not see them", () => {
    for (const body of [
      "'toString' in n",
      "input.k in n",
      "input.p in n",
      "has(n.toString)",
      "has(n.l.length)",
      "has(n.s.length)",
    ]) {
      expect(compileCondition(body, optionsOf(WORLD)).evaluate(scopeOf(WORLD))).toMatchObject({ value: false });
    }
  });

  test("an own key `__proto__` in data is data: it is found by a computed key, and pollutes nothing", () => {
    const resolve = (body: string): unknown => compileExpression(body, optionsOf(WORLD)).resolve(scopeOf(WORLD));
    expect(resolve("h[input.p]")).toMatchObject({ value: { polluted: 1 } });
    expect(resolve("h[input.k].name")).toMatchObject({ value: "own" });
    const made = resolve("{input.p: {'polluted': 1}, 'n': 1}") as { value: object };
    expect(JSON.stringify(made.value)).toBe('{"__proto__":{"polluted":1},"n":1}');
    expect(Object.getPrototypeOf(made.value)).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test("a value that inherits from another shows only what is its own", () => {
    const inherited = Object.create({ secret: "inherited" }) as Json;
    const world: World = { nodes: { n: output(inherited) } };
    expect(compileValue("{{ n.secret | default('none') }}", optionsOf(world)).resolve(scopeOf(world))).toMatchObject({
      value: "none",
    });
    expect(compileExpression("has(n.secret)", optionsOf(world)).resolve(scopeOf(world))).toMatchObject({
      value: false,
    });
  });
});

describe("an output is never evaluated again", () => {
  const payloads = [
    "{{ secrets.TOKEN }}",
    "{{ n.other }}",
    "{{ 1 + 1 }}",
    "{{ n.__proto__ }}",
    "{{",
    "}}",
    "{{ {{ n.a }} }}",
    "${process.env}",
    "{% raw %}",
  ];
  test.each(payloads)("%s", (payload) => {
    const world: World = {
      nodes: { n: output({ a: payload, list: [payload], other: "leaked" }) },
      input: output({ [payload]: payload }),
    };
    const config = {
      lone: "{{ n.a }}",
      mixed: "<{{ n.a }}|{{ n.a }}>",
      filtered: "{{ n.list | join('') }}",
      fallback: "{{ n.nope | default('{{ n.other }}') }}",
      expression: "{{ n.a + n.a }}",
      whole: "{{ input }}",
    };
    expect(compileValue(config, optionsOf(world)).resolve(scopeOf(world))).toEqual({
      kind: "resolved",
      value: {
        lone: payload,
        mixed: `<${payload}|${payload}>`,
        filtered: payload,
        fallback: "{{ n.other }}",
        expression: payload + payload,
        whole: { [payload]: payload },
      },
      holes: [],
    });
  });
});
