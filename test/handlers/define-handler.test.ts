import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import type { ExecutionSummary } from "../../src/core/execution/test-summary.ts";
import { type DefinitionReport, readDefinition } from "../../src/definition/read.ts";
import { TestWorld } from "../../src/engine/test-engine.ts";
import { type DefinedHandler, defineHandler, HandlerInvalid } from "../../src/handlers/define-handler.ts";
import { testCall } from "../../src/handlers/test-server.ts";
import type { Json, JsonObject } from "../../src/json/json.ts";
import { type ReadyHandlers, readyHandlers } from "../../src/sdk/handlers.ts";

/** As a worker that was given them has them. */
function readyOf(...defined: readonly DefinedHandler[]): ReadyHandlers {
  return readyHandlers(Object.fromEntries(defined.map((one) => [one.name, one])));
}

function read(nodes: Json, { entries }: ReadyHandlers): DefinitionReport {
  const handlers = { get: (name: string) => entries.get(name), names: () => entries.keys(), allowMissing: false };
  return readDefinition(JSON.stringify({ name: "test", nodes }), { format: "json", handlers });
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
  const ready = readyOf(defined);

  test("is known to definitions", () => {
    expect(read([{ id: "a", handler: "area", config: { width: 2 } }], ready).errors).toEqual([]);
  });

  test("has its config checked at submit, templates aside", () => {
    const at = (config: Json): unknown => read([{ id: "a", handler: "area", config }], ready).errors;
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
        ready,
      ).errors;
    expect(reading("{{ a.area }}")).toEqual([]);
    expect(reading("{{ a.aera }}")).toMatchObject([
      { code: "TEMPLATE_UNKNOWN_FIELD", hint: expect.stringContaining('"area"') as string },
    ]);
  });

  test("is suggested for a name that is nearly its own", () => {
    expect(read([{ id: "a", handler: "aera", config: {} }], ready).errors).toMatchObject([
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

describe("in an engine", () => {
  let world: TestWorld;
  beforeEach(() => {
    world = new TestWorld();
    world.engine();
  });
  afterEach(() => world.close());

  async function run(nodes: Json, ready: ReadyHandlers): Promise<ExecutionSummary> {
    const { workflow, errors } = read(nodes, ready);
    expect(errors).toEqual([]);
    world.worker(Object.fromEntries(ready.handlers), { heartbeatMs: 5_000 });
    try {
      return await world.ended(await world.start(workflow!, { text: "one two three" }));
    } finally {
      ready.close();
    }
  }

  test("data flows from one handler to the next", async () => {
    const upper = defineHandler({
      name: "words.upper",
      config: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      run: (config) => (config as { readonly text: string }).text.toUpperCase(),
    });
    const count = defineHandler({
      name: "words.count",
      config: z.object({ text: z.string(), atLeast: z.int().min(1).default(1) }),
      output: z.object({ words: z.int() }),
      run: ({ text, atLeast }) => ({ words: text.split(" ").filter((word) => word.length >= atLeast).length }),
    });
    const nodes: Json = [
      { id: "up", handler: "words.upper", config: { text: "{{ input.text }}" } },
      { id: "n", handler: "words.count", dependencies: ["up"], config: { text: "{{ up }}", atLeast: 4 } },
    ];
    expect(await run(nodes, readyOf(upper, count))).toMatchObject({ status: "COMPLETED", output: { n: { words: 1 } } });
  });

  test("a handler of a module runs in the worker, or in a process of its own", async () => {
    const module = new URL("./modules/double.ts", import.meta.url);
    const config = z.object({ n: z.number() });
    const ready = readyOf(
      defineHandler({ name: "here", module, config }),
      defineHandler({ name: "apart", module, config, isolate: "process", memoryMb: 128 }),
    );
    const nodes: Json = [
      { id: "a", handler: "here", config: { n: 2 } },
      { id: "b", handler: "apart", dependencies: ["a"], config: { n: "{{ a.twice }}" } },
    ];
    const view = await run(nodes, ready);
    expect(view.nodes["a"]!.output).toEqual({ json: { twice: 4, pid: process.pid } });
    expect(view.nodes["b"]!.output).toMatchObject({ json: { twice: 8 } });
    expect(view.nodes["b"]!.output).not.toMatchObject({ json: { pid: process.pid } });
  });

  test("what a handler says of its time limit counts for nodes that say nothing", () => {
    const slow = defineHandler({ name: "slow", timeoutSeconds: 600, run: () => null });
    const { workflow } = read([{ id: "a", handler: "slow" }], readyOf(slow));
    expect(workflow!.nodes[0]!.timeout_seconds).toBe(600);
  });
});
