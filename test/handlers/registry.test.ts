import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import type { ExecutionSummary } from "../../src/core/execution/view.ts";
import { type DefinitionReport, readDefinition } from "../../src/definition/read.ts";
import { TestWorld } from "../../src/engine/test-engine.ts";
import { type DefinedHandler, defineHandler, HandlerInvalid } from "../../src/handlers/define-handler.ts";
import { HandlerRegistry } from "../../src/handlers/registry.ts";
import { testCall } from "../../src/handlers/test-server.ts";
import type { Json, JsonObject } from "../../src/json/json.ts";

const words = new URL("./modules/words.ts", import.meta.url);

function read(nodes: Json, registry: HandlerRegistry): DefinitionReport {
  return readDefinition(JSON.stringify({ name: "test", nodes }), { format: "json", handlers: registry });
}

async function call(defined: DefinedHandler, config: JsonObject): Promise<Json> {
  return defined.handler(testCall(config));
}

const area = defineHandler({
  name: "area",
  config: z.object({
    width: z.number().positive(),
    height: z.number().default(1),
    unit: z.enum(["m", "cm"]).optional(),
  }),
  output: z.object({ area: z.number(), unit: z.string().default("m") }),
  run: ({ width, height, unit }, { config }) => ({
    area: width * height * (config.width / width),
    ...(unit && { unit }),
  }),
});

const areaOfJson = defineHandler({
  name: "area",
  config: {
    type: "object",
    properties: { width: { type: "number", exclusiveMinimum: 0 } },
    required: ["width"],
    additionalProperties: false,
  },
  output: { type: "object", properties: { area: { type: "number" } }, required: ["area"], additionalProperties: false },
  run: (config) => ({ area: (config as { width: number }).width }),
});

describe.each([
  ["Zod", area],
  ["JSON Schema", areaOfJson],
])("a handler described by %s", (_, defined) => {
  const registry = new HandlerRegistry().add(defined);

  test("is known to definitions", () => {
    expect(read([{ id: "a", handler: "area", config: { width: 2 } }], registry).errors).toEqual([]);
  });

  test("has its config checked at submit, templates aside", () => {
    const at = (config: Json): unknown => read([{ id: "a", handler: "area", config }], registry).errors;
    expect(at({ width: "2" })).toMatchObject([{ code: "CONFIG_INVALID", path: "/nodes/0/config/width" }]);
    expect(at({})).toMatchObject([{ code: "CONFIG_INVALID", message: expect.stringContaining('"width"') as string }]);
    expect(at({ width: "{{ input.width }}" })).toEqual([]);
  });

  test("has its config checked when it is called", async () => {
    await expect(call(defined, { width: "{{ 2 }}" })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      retryable: false,
      details: { errors: [{ path: "/width" }] },
    });
    await expect(call(defined, { width: -1 })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    expect(await call(defined, { width: 3 })).toMatchObject({ area: 3 });
  });

  test("has the templates that read its output checked at submit", () => {
    const reading = (template: string): unknown =>
      read(
        [
          { id: "a", handler: "area", config: { width: 2 } },
          { id: "b", handler: "transform", dependencies: ["a"], config: { value: template } },
        ],
        registry,
      ).errors;
    expect(reading("{{ a.area }}")).toEqual([]);
    expect(reading("{{ a.aera }}")).toMatchObject([
      { code: "TEMPLATE_UNKNOWN_FIELD", hint: expect.stringContaining('"area"') as string },
    ]);
  });

  test("is suggested for a name that is nearly its own", () => {
    expect(read([{ id: "a", handler: "aera", config: {} }], registry).errors).toMatchObject([
      { code: "UNKNOWN_HANDLER", hint: expect.stringContaining('"area"') as string },
    ]);
  });
});

describe("what Zod makes of a value", () => {
  test("is what the handler is given, and what it is taken to have returned", async () => {
    expect(await call(area, { width: 2, more: true })).toEqual({ area: 2, unit: "m" });
    expect(await call(area, { width: 2, height: 3, unit: "cm" })).toEqual({ area: 6, unit: "cm" });
  });

  test("counts also where JSON Schema has no words for it", async () => {
    const even = defineHandler({
      name: "even",
      config: z.object({ n: z.number().refine((n) => n % 2 === 0, "must be even") }),
      run: ({ n }) => n,
    });
    expect(await call(even, { n: 2 })).toBe(2);
    await expect(call(even, { n: 3 })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      details: { errors: [{ path: "/n", message: "must be even" }] },
    });
  });

  test("has types", () => {
    defineHandler({
      name: "typed",
      config: z.object({ n: z.number(), s: z.string().optional() }),
      output: z.object({ twice: z.number() }),
      run: ({ n, s }, { config, signal }) => {
        const number: number = n + config.n;
        const text: string | undefined = s;
        const flag: boolean = signal.aborted;
        // @ts-expect-error -- a config has only what its schema says
        const other: unknown = config.other;
        return { twice: number, ...(flag && { text, other }) };
      },
      mock: () => ({ twice: 4 }),
    });
    // @ts-expect-error -- an output is what its schema says
    defineHandler({ name: "wrong", output: z.object({ twice: z.number() }), run: () => ({ twice: "4" }) });
    // @ts-expect-error -- a handler does something
    expect(() => defineHandler({ name: "nothing" })).toThrow(HandlerInvalid);
    defineHandler({ name: "free", run: (config: Json) => config });
  });
});

describe("an output that its handler did not promise", () => {
  test.each<[string, Json]>([
    ["of another type", { area: "6" }],
    ["with something missing", {}],
    ["of another kind", null],
  ])("%s fails the node for good", async (_, output) => {
    const lying = defineHandler({
      name: "lying",
      output: z.object({ area: z.number() }),
      run: () => output as { area: number },
    });
    await expect(call(lying, {})).rejects.toMatchObject({ code: "OUTPUT_INVALID", retryable: false });
  });
});

describe("a mock of a registered handler", () => {
  const mocked = defineHandler({
    name: "mocked",
    config: z.object({ n: z.number() }),
    output: z.object({ n: z.number() }),
    run: () => ({ n: 0 }),
    mock: ({ n }) => ({ n: -n }),
  });

  test("is its own, or the value that the config gives", async () => {
    expect(await call(mocked, { n: 1 })).toEqual({ n: 0 });
    expect(await call(mocked, { n: 1, mock: false })).toEqual({ n: 0 });
    expect(await call(mocked, { n: 1, mock: true })).toEqual({ n: -1 });
    expect(await call(mocked, { mock: { other: 1 } })).toEqual({ other: 1 });
  });

  test("that it does not have cannot be asked for", async () => {
    await expect(call(area, { width: 1, mock: true })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      details: { errors: [{ path: "/mock", message: expect.stringContaining("has no mock of its own") as string }] },
    });
  });
});

describe("a handler cannot be registered", () => {
  test.each<[string, () => unknown, string]>([
    ["under a built-in name", () => defineHandler({ name: "http", run: () => 1 }), "built in"],
    ["under another name of one", () => defineHandler({ name: "llm_service", run: () => 1 }), "built in"],
    ["without a name", () => defineHandler({ name: "", run: () => 1 }), "1 to 128"],
    ["with a name without end", () => defineHandler({ name: "x".repeat(129), run: () => 1 }), "1 to 128"],
    ["twice", () => new HandlerRegistry().add(area, areaOfJson), "registered twice"],
    [
      "with a schema that is none",
      () => defineHandler({ name: "x", config: { type: "nonsense" }, run: () => 1 }),
      'The config schema of "x" cannot be used: "/type" must be one of',
    ],
    [
      "with a pattern that takes for ever",
      () => defineHandler({ name: "x", output: { pattern: "(?=a)b" }, run: () => 1 }),
      'The output schema of "x" cannot be used',
    ],
  ])("%s", (_, register, message) => {
    expect(register).toThrow(HandlerInvalid);
    expect(register).toThrow(message);
  });
});

describe("a module", () => {
  test("brings what it exports", async () => {
    const registry = await new HandlerRegistry().load(words);
    expect([...registry.names()]).toEqual(["words.count", "words.upper"]);
    expect(registry.get("words.count")).toMatchObject({ outputSchema: { properties: { words: {}, long: {} } } });
    expect([...registry.handlers().keys()]).toEqual(["words.count", "words.upper"]);
  });

  test("may bring plain functions by name", async () => {
    const registry = await new HandlerRegistry().load(new URL("./modules/plain.ts", import.meta.url).href);
    expect([...registry.names()]).toEqual(["plain.twice", "plain.key", "plain.checked"]);
    expect(await registry.handlers().get("plain.twice")!(testCall({ n: 4 }))).toBe(8);
    expect(await registry.handlers().get("plain.key")!(testCall({}))).toBe("e1/a/1");
    const half = async (n: Json): Promise<Json> => registry.handlers().get("plain.checked")!(testCall({ n }));
    expect(await half(4)).toEqual({ half: 2 });
    await expect(half("4")).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    await expect(half(5)).rejects.toMatchObject({ code: "OUTPUT_INVALID" });
    expect(registry.get("plain.checked")).toMatchObject({ defaultTimeoutSeconds: 5 });
  });

  test("that brings nothing is a mistake", async () => {
    const loading = new HandlerRegistry().load(new URL("./modules/none.ts", import.meta.url));
    await expect(loading).rejects.toThrow("exports no handler");
  });

  test("that brings something else is one too", async () => {
    const loading = new HandlerRegistry().load(new URL("./modules/wrong.ts", import.meta.url));
    await expect(loading).rejects.toThrow('The handler "wrong.kind" is not a function');
  });

  test("that is not there is one too", async () => {
    await expect(new HandlerRegistry().load(new URL("./modules/missing.ts", import.meta.url))).rejects.toThrow(
      "missing.ts",
    );
  });
});

describe("in an engine", () => {
  let world: TestWorld;
  let registry: HandlerRegistry;
  beforeEach(() => {
    world = new TestWorld();
    world.engine();
    registry = new HandlerRegistry();
  });
  afterEach(async () => {
    await world.close();
    registry.close();
  });

  async function run(nodes: Json): Promise<ExecutionSummary> {
    const { workflow, errors } = read(nodes, registry);
    expect(errors).toEqual([]);
    world.worker(Object.fromEntries(registry.handlers()), { heartbeatMs: 5_000 });
    return world.ended(await world.start(workflow!, { text: "one two three" }));
  }

  test("data flows through handlers of a module", async () => {
    await registry.load(words);
    const view = await run([
      { id: "up", handler: "words.upper", config: { text: "{{ input.text }}" } },
      { id: "n", handler: "words.count", dependencies: ["up"], config: { text: "{{ up }}", atLeast: 4 } },
    ]);
    expect(view).toMatchObject({ status: "COMPLETED", output: { n: { words: 1, long: false } } });
  });

  test("a handler of a module runs in the worker, or in a process of its own", async () => {
    const module = new URL("./modules/double.ts", import.meta.url);
    const config = z.object({ n: z.number() });
    registry.add(
      defineHandler({ name: "here", module, config }),
      defineHandler({ name: "apart", module, config, isolate: "process", memoryMb: 128 }),
    );
    const view = await run([
      { id: "a", handler: "here", config: { n: 2 } },
      { id: "b", handler: "apart", dependencies: ["a"], config: { n: "{{ a.twice }}" } },
    ]);
    expect(view.nodes["a"]!.output).toEqual({ json: { twice: 4, pid: process.pid } });
    expect(view.nodes["b"]!.output).toMatchObject({ json: { twice: 8 } });
    expect(view.nodes["b"]!.output).not.toMatchObject({ json: { pid: process.pid } });
  });

  test("what a handler says of its time limit counts for nodes that say nothing", () => {
    registry.add(defineHandler({ name: "slow", timeoutSeconds: 600, run: () => null }));
    const { workflow } = read([{ id: "a", handler: "slow" }], registry);
    expect(workflow!.nodes[0]!.timeout_seconds).toBe(600);
  });
});
