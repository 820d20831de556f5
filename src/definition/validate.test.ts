import { describe, expect, test } from "vitest";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerSteps } from "../json/pointer.ts";
import { checkDefinition, type DefinitionReport, readDefinition } from "./read.ts";
import { catalogue } from "./test-catalogue.ts";

const handlers = catalogue({
  work: {},
  typed: {
    configSchema: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
    outputSchema: {
      type: "object",
      properties: {
        total: { type: "number" },
        lines: { type: "array", items: { properties: { sku: {} } } },
        open: { type: "object" },
      },
    },
  },
});

function check(value: Json): DefinitionReport {
  return checkDefinition(value, { handlers });
}

/** A workflow of nodes that run on a worker, unless they say otherwise. */
function nodes(...list: readonly JsonObject[]): JsonObject {
  return { name: "w", nodes: list.map((node) => ({ handler: "work", ...node })) };
}

const FORM = { type: "object", properties: { n: { type: "integer" } } };

const found = (report: DefinitionReport): string[] => report.errors.map(({ code, path }) => `${code} ${path}`);
const warned = (report: DefinitionReport): string[] => report.warnings.map(({ code, path }) => `${code} ${path}`);

/** As text, the same definition has the same problem, shown where the pointer leads: at the value, or at its key. */
function expectPlace(value: Json): void {
  const text = JSON.stringify(value, undefined, 2);
  const [error] = readDefinition(text, { format: "json", handlers }).errors;
  const rest = text
    .split("\n")
    .slice(error!.line! - 1)
    .join("\n")
    .slice(error!.column! - 1);
  let at: Json | undefined = value;
  let owner: Json | undefined = value;
  const steps = pointerSteps(error!.path);
  for (const step of steps) {
    owner = at;
    at = isJsonObject(at) || Array.isArray(at) ? (at as JsonObject)[step] : undefined;
  }
  // A pointer to what is missing is shown at the object that should have it.
  const shown = at ?? owner!;
  const isContainer = typeof shown === "object" && shown !== null;
  const asValue = isContainer ? (Array.isArray(shown) ? "[" : "{") : JSON.stringify(shown);
  const atKey = error!.code === "UNKNOWN_FIELD" || error!.code === "REPEATED_FIELD";
  expect(rest.startsWith(atKey ? JSON.stringify(steps.at(-1)) : asValue)).toBe(true);
}

describe("each error has its code, its pointer and a hint", () => {
  test.each<[Json, string, string | undefined]>([
    [{ name: "w", nodes: [] }, "EMPTY_WORKFLOW /nodes", 'Add a node to "nodes".'],
    [{ name: "w" }, "EMPTY_WORKFLOW ", 'Add a node to "nodes".'],
    [{ name: "w", steps: {} }, "EMPTY_WORKFLOW /steps", 'Add a node to "nodes".'],
    [[], "INVALID_TYPE ", undefined],
    [{ name: "w", nodes: "a" }, "INVALID_TYPE /nodes", undefined],
    [{ name: "w", nodes: [5] }, "INVALID_TYPE /nodes/0", undefined],
    [nodes({ id: "a" }, { id: "a" }), "DUPLICATE_NODE_ID /nodes/1/id", "Ids are compared exactly"],
    [nodes({ id: "a b" }), "INVALID_NODE_ID /nodes/0/id", 'For instance "a_b".'],
    [nodes({}), "INVALID_NODE_ID /nodes/0", 'Add "id".'],
    [nodes({ id: 1 }), "INVALID_NODE_ID /nodes/0/id", 'Write it in quotes: "1".'],
    [{ name: "w", steps: { a: { handler: "work", id: "b" } } }, "INVALID_NODE_ID /steps/a/id", 'Leave the "id" out'],
    [nodes({ id: "item" }), "RESERVED_ID /nodes/0/id", 'Call it "item_1".'],
    [nodes({ id: "input" }), "RESERVED_ID /nodes/0/id", 'use "handler": "input"'],
    [{ ...nodes({ id: "a" }), name: "" }, "INVALID_NAME /name", undefined],
    [{ ...nodes({ id: "a" }), name: "a/b" }, "INVALID_NAME /name", undefined],
    [{ ...nodes({ id: "a" }), name: "." }, "INVALID_NAME /name", undefined],
    [{ ...nodes({ id: "a" }), name: ".." }, "INVALID_NAME /name", undefined],
    [{ ...nodes({ id: "a" }), name: "a\u0000b" }, "INVALID_NAME /name", undefined],
    [{ ...nodes({ id: "a" }), name: "\ud800" }, "INVALID_NAME /name", undefined],
    [{ ...nodes({ id: "a" }), name: "x".repeat(129) }, "INVALID_NAME /name", undefined],
    [{ ...nodes({ id: "a" }), name: "😀".repeat(129) }, "INVALID_NAME /name", undefined],
    [{ ...nodes({ id: "a" }), name: 5 }, "INVALID_TYPE /name", undefined],
    [{ ...nodes({ id: "a" }), on_eror: "continue" }, "UNKNOWN_FIELD /on_eror", 'Did you mean "on_error"?'],
    [nodes({ id: "a", depends_on: ["b"] }), "UNKNOWN_FIELD /nodes/0/depends_on", 'Did you mean "dependencies"?'],
    [nodes({ id: "a", timeout: 5 }), "UNKNOWN_FIELD /nodes/0/timeout", 'Did you mean "timeout_seconds"?'],
    [
      nodes({ id: "a", retry: { max_attempt: 5 } }),
      "UNKNOWN_FIELD /nodes/0/retry/max_attempt",
      'Did you mean "max_attempts"?',
    ],
    [
      nodes({ id: "a" }, { id: "b", dependencies: [{ id: "a", when: 1 }] }),
      "UNKNOWN_FIELD /nodes/1/dependencies/0/when",
      "x-",
    ],
    [nodes({ id: "a", node_id: "a" }), "REPEATED_FIELD /nodes/0/node_id", 'Keep "id" and remove "node_id".'],
    [
      { ...nodes({ id: "a" }), dag: { steps: [] } },
      "REPEATED_FIELD /dag/steps",
      'Keep "nodes" and remove "dag.steps".',
    ],
    [{ ...nodes({ id: "a" }), on_error: "fail-fast" }, "INVALID_TYPE /on_error", 'Did you mean "fail_fast"?'],
    [nodes({ id: "a", inputs: "yes" }), "INVALID_TYPE /nodes/0/inputs", undefined],
    [nodes({ id: "a", config: [] }), "INVALID_TYPE /nodes/0/config", undefined],
    [nodes({ id: "a", dependencies: "b" }), "INVALID_TYPE /nodes/0/dependencies", 'Write it as a list: ["b"].'],
    [nodes({ id: "a", dependencies: [5] }), "INVALID_TYPE /nodes/0/dependencies/0", undefined],
    [nodes({ id: "a", condition: true }), "INVALID_TYPE /nodes/0/condition", undefined],
    [nodes({ id: "a", repeat: { max: 3 } }), "INVALID_TYPE /nodes/0/repeat/until", undefined],
    [nodes({ id: "a", limit: 5 }), "INVALID_TYPE /nodes/0/limit", undefined],
    [
      nodes({ id: "fetch" }, { id: "b", dependencies: ["fecth"] }),
      "UNKNOWN_DEPENDENCY /nodes/1/dependencies/0",
      'Did you mean "fetch"?',
    ],
    [nodes({ id: "a", dependencies: ["a"] }), "SELF_DEPENDENCY /nodes/0/dependencies/0", 'use "retry" or "repeat"'],
    [
      nodes({ id: "a", dependencies: ["b"] }, { id: "b", dependencies: ["a"] }),
      "CYCLE_DETECTED /nodes/0",
      'for instance "b" from those of "a"',
    ],
    [nodes({ id: "a", handler: "htpt" }), "UNKNOWN_HANDLER /nodes/0/handler", 'Did you mean "http"?'],
    [{ name: "w", nodes: [{ id: "a", type: "REVIEW" }] }, "UNKNOWN_HANDLER /nodes/0", '"handler": "review"'],
    [
      nodes({ id: "a", handler: "http", config: { ulr: "x", url: "y" } }),
      "CONFIG_INVALID /nodes/0/config/ulr",
      'Did you mean "url"?',
    ],
    [nodes({ id: "a", handler: "http" }), "CONFIG_INVALID /nodes/0/config", undefined],
    [nodes({ id: "a", handler: "wait", config: { until: "tomorrow" } }), "CONFIG_INVALID /nodes/0/config", undefined],
    // JavaScript's Date takes each of these for some day.
    [nodes({ id: "a", handler: "wait", config: { until: "5" } }), "CONFIG_INVALID /nodes/0/config", undefined],
    [nodes({ id: "a", handler: "wait", config: { until: "day 5" } }), "CONFIG_INVALID /nodes/0/config", undefined],
    [nodes({ id: "a", handler: "wait", config: { until: "2030-02-30" } }), "CONFIG_INVALID /nodes/0/config", undefined],
    [
      nodes({ id: "a", handler: "wait", config: { until: "2030-02-30T10:00Z" } }),
      "CONFIG_INVALID /nodes/0/config",
      undefined,
    ],
    [
      nodes({
        id: "a",
        handler: "review",
        config: { form: FORM, on_due: { decision: "approve", data: { n: "one" } } },
      }),
      "CONFIG_INVALID /nodes/0/config/on_due/data/n",
      undefined,
    ],
    [nodes({ id: "a", handler: "typed", config: { n: 1.5 } }), "CONFIG_INVALID /nodes/0/config/n", undefined],
    [
      nodes({ id: "a", handler: "llm", config: { prompt: "x", output_schema: { type: "obj" } } }),
      "CONFIG_INVALID /nodes/0/config/output_schema/type",
      undefined,
    ],
    [{ ...nodes({ id: "a" }), input_schema: { properties: 5 } }, "CONFIG_INVALID /input_schema/properties", undefined],
    [{ ...nodes({ id: "a" }), input_schema: { type: [] } }, "CONFIG_INVALID /input_schema/type", undefined],
    [
      nodes({ id: "a", handler: "llm", config: { prompt: "x", output_schema: { properties: { y: { enum: [] } } } } }),
      "CONFIG_INVALID /nodes/0/config/output_schema/properties/y/enum",
      undefined,
    ],
    [{ ...nodes({ id: "a" }), input_schema: "x" }, "INVALID_TYPE /input_schema", undefined],
    [nodes({ id: "a", join: "any" }), "INVALID_JOIN /nodes/0/join", undefined],
    [nodes({ id: "a" }, { id: "b", dependencies: ["a"], join: "quorum:2" }), "INVALID_JOIN /nodes/1/join", undefined],
    [nodes({ id: "a", join: "quorum:0" }), "INVALID_JOIN /nodes/0/join", undefined],
    [nodes({ id: "a", queue: "a b" }), "INVALID_NAME /nodes/0/queue", undefined],
    [{ ...nodes({ id: "a" }), max_parallel_nodes: 0 }, "NUMBER_OUT_OF_RANGE /max_parallel_nodes", undefined],
    [nodes({ id: "a", priority: 1.5 }), "NUMBER_OUT_OF_RANGE /nodes/0/priority", undefined],
    [nodes({ id: "a", config: { x: "{{ a" } }), "TEMPLATE_SYNTAX /nodes/0/config/x", undefined],
    [
      nodes({ id: "fetch" }, { id: "b", dependencies: ["fetch"], config: { x: ["{{ fecth.y }}"] } }),
      "TEMPLATE_UNKNOWN_NODE /nodes/1/config/x/0",
      'Did you mean "fetch"?',
    ],
    [
      nodes({ id: "a" }, { id: "b", config: { q: "-", x: { y: "{{ a.z }}" } } }),
      "TEMPLATE_REF_NOT_ANCESTOR /nodes/1/config/x/y",
      'Add "a" to the dependencies of "b".',
    ],
    [
      nodes(
        { id: "a", config: { x: "{{ c.z }}" } },
        { id: "b", dependencies: ["a"] },
        { id: "c", dependencies: ["b"] },
      ),
      "TEMPLATE_REF_NOT_ANCESTOR /nodes/0/config/x",
      'It can be read by nodes that come after "c".',
    ],
    [nodes({ id: "a", handler: "h".repeat(129) }), "INVALID_NAME /nodes/0/handler", undefined],
    [nodes({ id: "a", handler: "h\u0000" }), "INVALID_NAME /nodes/0/handler", undefined],
    [nodes({ id: "a", handler: "\ud800" }), "INVALID_NAME /nodes/0/handler", undefined],
    [
      nodes({ id: "a", handler: "map", config: { items: [1], handler: "h\u0000", config: {} } }),
      "INVALID_NAME /nodes/0/config/handler",
      undefined,
    ],
    [nodes({ id: "a", config: { x: "{{ a.z }}" } }), "TEMPLATE_REF_NOT_ANCESTOR /nodes/0/config/x", "repeat.until"],
    [nodes({ id: "a" }, { id: "b", condition: "a.z > 1" }), "TEMPLATE_REF_NOT_ANCESTOR /nodes/1/condition", 'Add "a"'],
    [
      nodes(
        { id: "a", handler: "typed", config: { n: 1 } },
        { id: "b", dependencies: ["a"], config: { x: "{{ a.totl }}" } },
      ),
      "TEMPLATE_UNKNOWN_FIELD /nodes/1/config/x",
      'Did you mean "total"?',
    ],
    [
      nodes(
        { id: "a", handler: "typed", config: { n: 1 } },
        { id: "b", dependencies: ["a"], config: { x: "{{ a.lines[0].sk }}" } },
      ),
      "TEMPLATE_UNKNOWN_FIELD /nodes/1/config/x",
      'Did you mean "sku"?',
    ],
    [
      nodes(
        { id: "a", handler: "http", config: { url: "u" } },
        { id: "b", dependencies: ["a"], config: { x: "{{ a.data }}" } },
      ),
      "TEMPLATE_UNKNOWN_FIELD /nodes/1/config/x",
      'It has "status", "headers", "body".',
    ],
    [
      {
        ...nodes({ id: "a", config: { x: "{{ input.ulr }}" } }),
        input_schema: { properties: { url: {} }, additionalProperties: false },
      },
      "TEMPLATE_UNKNOWN_FIELD /nodes/0/config/x",
      'Did you mean "url"?',
    ],
    [
      nodes({ id: "a", config: { x: "{{ input.__proto__.y }}" } }),
      "TEMPLATE_FORBIDDEN_PATH /nodes/0/config/x",
      undefined,
    ],
    [
      nodes({ id: "a", condition: `${"(".repeat(100)}1${")".repeat(100)} == 1` }),
      "EXPRESSION_TOO_COMPLEX /nodes/0/condition",
      undefined,
    ],
    [nodes({ id: "a", condition: "process.exit() == 1" }), "EXPRESSION_FORBIDDEN /nodes/0/condition", undefined],
    [nodes({ id: "a", config: { x: "{{ item.y }}" } }), "TEMPLATE_UNKNOWN_NODE /nodes/0/config/x", undefined],
    [
      nodes({ id: "a", handler: "output", config: { x: ["Bearer {{ secrets.TOKEN }}"] } }),
      "CONFIG_INVALID /nodes/0/config/x/0",
      "Read it in the config of a node that a worker runs.",
    ],
    [
      nodes({ id: "a", handler: "map", config: { items: ["{{ secrets.TOKEN }}"], handler: "work" } }),
      "CONFIG_INVALID /nodes/0/config/items/0",
      "Read it in the config of a node that a worker runs.",
    ],
    [
      nodes({
        id: "a",
        handler: "map",
        config: { items: [1], handler: "workflow", config: { name: "other", input: "{{ secrets.TOKEN }}" } },
      }),
      "CONFIG_INVALID /nodes/0/config/config/input",
      "Read it in the config of a node that a worker runs.",
    ],
    [
      nodes({ id: "a", cache: { key: "{{ secrets.TOKEN }}" } }),
      "CONFIG_INVALID /nodes/0/cache/key",
      "Read it in the config of a node that a worker runs.",
    ],
    [
      { ...nodes({ id: "a" }), concurrency: { limit: 1, key: "{{ secrets.TOKEN }}" } },
      "CONFIG_INVALID /concurrency/key",
      undefined,
    ],
    [
      nodes(
        { id: "r", handler: "router", config: { mode: "inclusive", routes: [{ when: "true", to: "b" }] } },
        { id: "b" },
      ),
      "CONFIG_INVALID /nodes/0/config/routes/0/to",
      'Add "r" to the dependencies of "b".',
    ],
    [
      nodes(
        { id: "a" },
        { id: "r", handler: "router", dependencies: ["a"], config: { routes: [{ when: "true", to: "a" }], else: "b" } },
        { id: "b", dependencies: ["r"] },
      ),
      "CONFIG_INVALID /nodes/1/config/routes/0/to",
      "A router sends to nodes that come after it, and list it in their dependencies.",
    ],
    [
      nodes(
        { id: "r", handler: "router", config: { routes: [{ when: "true", to: ["x", "zz"] }], else: "x" } },
        { id: "x", dependencies: ["r"] },
      ),
      "CONFIG_INVALID /nodes/0/config/routes/0/to/1",
      undefined,
    ],
    [
      nodes(
        { id: "r", handler: "router", config: { mode: "inclusive", routes: [{ when: "zz.x", to: "b" }] } },
        { id: "b", dependencies: ["r"] },
      ),
      "TEMPLATE_UNKNOWN_NODE /nodes/0/config/routes/0/when",
      undefined,
    ],
    [
      nodes({ id: "m", handler: "map", config: { items: [], handler: "nope" } }),
      "UNKNOWN_HANDLER /nodes/0/config/handler",
      "--allow-missing-handlers",
    ],
    [
      nodes({ id: "m", handler: "map", config: { items: [], handler: "map" } }),
      "CONFIG_INVALID /nodes/0/config/handler",
      undefined,
    ],
    [
      nodes({ id: "m", handler: "map", config: { items: "{{ item }}", handler: "work" } }),
      "TEMPLATE_UNKNOWN_NODE /nodes/0/config/items",
      undefined,
    ],
    [
      nodes({
        id: "m",
        handler: "map",
        config: { items: [], nodes: [{ id: "x", handler: "work", dependencies: ["y"] }] },
      }),
      "UNKNOWN_DEPENDENCY /nodes/0/config/nodes/0/dependencies/0",
      undefined,
    ],
    [
      nodes({ id: "m", handler: "map", config: { items: [], nodes: [] } }),
      "EMPTY_WORKFLOW /nodes/0/config/nodes",
      undefined,
    ],
    [
      nodes(
        { id: "o" },
        {
          id: "m",
          handler: "map",
          config: { items: [], nodes: [{ id: "x", handler: "work", config: { v: "{{ o.y }}" } }] },
        },
      ),
      "TEMPLATE_REF_NOT_ANCESTOR /nodes/1/config/nodes/0/config/v",
      'Add "o" to the dependencies of "m".',
    ],
    [
      nodes({
        id: "m",
        handler: "map",
        config: { items: [], nodes: { x: { handler: "work", config: { v: "{{ m }}" } } } },
      }),
      "TEMPLATE_REF_NOT_ANCESTOR /nodes/0/config/nodes/x/config/v",
      undefined,
    ],
    [
      nodes({ id: "t", handler: "transform", config: { fields: { a: "nope.x" } } }),
      "TEMPLATE_UNKNOWN_NODE /nodes/0/config/fields/a",
      undefined,
    ],
    [
      nodes({ id: "t", handler: "transform", config: { expression: "nope.x" } }),
      "TEMPLATE_UNKNOWN_NODE /nodes/0/config/expression",
      undefined,
    ],
    [
      nodes({ id: "t", handler: "data_processor", config: { a: ["{{ nope.x }}"] } }),
      "TEMPLATE_UNKNOWN_NODE /nodes/0/config/a/0",
      undefined,
    ],
  ])("%#", (value, expected, hint) => {
    const report = check(value);
    expect(found(report)).toEqual([expected]);
    expect(report.failure).toBe("INVALID_DEFINITION");
    expect(report.workflow).toBeUndefined();
    const [error] = report.errors;
    expect(error!.message.length).toBeGreaterThan(15);
    expectPlace(value);
    if (hint !== undefined) expect(error!.hint).toContain(hint);
  });
});

describe("numbers out of bounds", () => {
  test.each<[JsonObject, string]>([
    [{ timeout_seconds: 0 }, "INVALID_TIMEOUT /nodes/0/timeout_seconds"],
    [{ timeout_seconds: -1 }, "INVALID_TIMEOUT /nodes/0/timeout_seconds"],
    [{ timeout_seconds: 1e12 }, "INVALID_TIMEOUT /nodes/0/timeout_seconds"],
    [{ timeout_seconds: "30" }, "INVALID_TYPE /nodes/0/timeout_seconds"],
    [{ timeout_seconds: -0 }, "NUMBER_OUT_OF_RANGE /nodes/0/timeout_seconds"],
    [{ timeout_seconds: 2 ** 53 + 2 }, "NUMBER_OUT_OF_RANGE /nodes/0/timeout_seconds"],
    [{ queue_timeout_seconds: 0 }, "INVALID_TIMEOUT /nodes/0/queue_timeout_seconds"],
    [{ join_timeout_seconds: 0 }, "INVALID_TIMEOUT /nodes/0/join_timeout_seconds"],
    [{ repeat: { until: "true", every_seconds: -1 } }, "INVALID_TIMEOUT /nodes/0/repeat/every_seconds"],
    [{ repeat: { until: "true", max: 0 } }, "NUMBER_OUT_OF_RANGE /nodes/0/repeat/max"],
    [{ retry: { max_attempts: 0 } }, "INVALID_RETRY_POLICY /nodes/0/retry/max_attempts"],
    [{ retry: { max_attempts: 101 } }, "INVALID_RETRY_POLICY /nodes/0/retry/max_attempts"],
    [{ retry: { max_attempts: 1e9 } }, "INVALID_RETRY_POLICY /nodes/0/retry/max_attempts"],
    [{ retry: { max_attempts: 1.5 } }, "INVALID_RETRY_POLICY /nodes/0/retry/max_attempts"],
    [{ retry_config: { max_retries: 100 } }, "INVALID_RETRY_POLICY /nodes/0/retry_config/max_retries"],
    [{ max_retries: -1 }, "INVALID_RETRY_POLICY /nodes/0/max_retries"],
    [{ retry: { max_retries: 1, max_attempts: 2 } }, "REPEATED_FIELD /nodes/0/retry/max_retries"],
    [{ max_retries: 1, retry: { max_attempts: 2 } }, "REPEATED_FIELD /nodes/0/max_retries"],
    [{ max_retries: 1, retry_config: { max_retries: 2 } }, "REPEATED_FIELD /nodes/0/max_retries"],
    [{ retry: { base_delay_seconds: -1 } }, "INVALID_RETRY_POLICY /nodes/0/retry/base_delay_seconds"],
    [{ retry: { exponential_base: 0 } }, "INVALID_RETRY_POLICY /nodes/0/retry/exponential_base"],
    [{ retry: { exponential_base: 0.5 } }, "INVALID_RETRY_POLICY /nodes/0/retry/exponential_base"],
    [{ retry: { jitter: 2 } }, "INVALID_RETRY_POLICY /nodes/0/retry/jitter"],
    [{ retry: { jitter_factor: -1 } }, "INVALID_RETRY_POLICY /nodes/0/retry/jitter_factor"],
    [{ retry: { jitter: "some" } }, "INVALID_TYPE /nodes/0/retry/jitter"],
    [
      { retry: { base_delay_seconds: 5, max_delay_seconds: 1 } },
      "INVALID_RETRY_POLICY /nodes/0/retry/max_delay_seconds",
    ],
    [{ retry: { initial_delay: 5, max_delay: 1 } }, "INVALID_RETRY_POLICY /nodes/0/retry/max_delay"],
    [{ retry: 5 }, "INVALID_TYPE /nodes/0/retry"],
  ])("%j", (fields, expected) => {
    expect(found(check(nodes({ id: "a", ...fields })))).toEqual([expected]);
  });

  test("NaN is no timeout", () => {
    expect(found(check(nodes({ id: "a", timeout_seconds: Number.NaN })))).toContain(
      "INVALID_TIMEOUT /nodes/0/timeout_seconds",
    );
  });

  test.each(["1e999", "-1e999", "1e-400"])("%s does not fit, wherever it stands", (number) => {
    const text = `{"name":"w","nodes":[{"id":"a","handler":"work","timeout_seconds":${number},"config":{"x":${number}}}]}`;
    const report = readDefinition(text, { format: "json", handlers });
    expect(found(report).filter((each) => each.startsWith("NUMBER"))).toEqual([
      "NUMBER_OUT_OF_RANGE /nodes/0/timeout_seconds",
      "NUMBER_OUT_OF_RANGE /nodes/0/config/x",
    ]);
    expect(report.errors[0]).toMatchObject({ line: 1, column: 67 });
  });

  test("a workflow may have no timeout, a node may have part of a second", () => {
    const report = check({ ...nodes({ id: "a", timeout_seconds: 0.5 }), timeout_seconds: 0 });
    expect(report.workflow).toMatchObject({ timeout_seconds: 0, nodes: [{ timeout_seconds: 0.5 }] });
  });
});

describe("warnings leave the workflow accepted", () => {
  const cond = { id: "c", dependencies: ["a"], condition: "a.x > 1" };
  test.each<[string, JsonObject, string[]]>([
    [
      "a dependency listed twice",
      nodes({ id: "a" }, { id: "b", dependencies: ["a", "a"] }),
      ["DUPLICATE_DEPENDENCY /nodes/1/dependencies/1"],
    ],
    [
      "the same parent on another ending",
      nodes({ id: "a" }, { id: "b", dependencies: ["a", { id: "a", on: "failed" }], join: "one_success" }),
      [],
    ],
    ["no name", { nodes: [{ id: "a", handler: "work" }] }, ["UNNAMED "]],
    [
      "fields of other tools",
      { ...nodes({ id: "a" }), id: "x", metadata: {} },
      ["IGNORED_FIELD /id", "IGNORED_FIELD /metadata"],
    ],
    [
      "an exclusive router without else",
      nodes(
        { id: "r", handler: "router", config: { routes: [{ when: "true", to: "b" }] } },
        { id: "b", dependencies: ["r"] },
      ),
      ["ROUTE_WITHOUT_ELSE /nodes/0/config"],
    ],
    [
      "an inclusive one",
      nodes(
        { id: "r", handler: "router", config: { mode: "inclusive", routes: [{ when: "true", to: "b" }] } },
        { id: "b", dependencies: ["r"] },
      ),
      [],
    ],
    [
      "a delay beyond the timeout",
      { ...nodes({ id: "d", handler: "delay", config: { seconds: 100 } }), timeout_seconds: 50 },
      ["WAIT_EXCEEDS_TIMEOUT /nodes/0/config/seconds"],
    ],
    [
      "a review beyond the timeout",
      { ...nodes({ id: "d", handler: "review", config: { due_seconds: 100 } }), timeout_seconds: 50 },
      ["WAIT_EXCEEDS_TIMEOUT /nodes/0/config/due_seconds"],
    ],
    [
      "a signal by default beyond the timeout",
      { ...nodes({ id: "d", handler: "wait", config: { signal: "s" } }), timeout_seconds: 50 },
      [],
    ],
    [
      "rounds beyond the timeout",
      { ...nodes({ id: "d", repeat: { until: "true", every_seconds: 60, max: 3 } }), timeout_seconds: 50 },
      ["WAIT_EXCEEDS_TIMEOUT /nodes/0/repeat"],
    ],
    [
      "a wait without any timeout",
      { ...nodes({ id: "d", handler: "delay", config: { seconds: 100 } }), timeout_seconds: 0 },
      [],
    ],
    [
      "labels that executions do not get",
      {
        ...nodes({ id: "a" }),
        labels: { team: "a", size: 7, hot: true, none: null, "not one": 1, list: [1], empty: "", "millrace/x": "y" },
      },
      [
        "LABEL_NOT_USED /labels/not one",
        "LABEL_NOT_USED /labels/list",
        "LABEL_NOT_USED /labels/empty",
        "LABEL_NOT_USED /labels/millrace~1x",
      ],
    ],
    [
      "more labels than an execution has",
      { ...nodes({ id: "a" }), labels: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`l${i}`, i])) },
      ["LABEL_NOT_USED /labels/l16"],
    ],
    [
      "what is for tasks, on a node that the engine runs",
      nodes({
        id: "r",
        handler: "review",
        timeout_seconds: 5,
        queue_timeout_seconds: 5,
        retry_config: { max_attempts: 2 },
        max_retries: null,
        queue: "people",
      }),
      [
        "FIELD_WITHOUT_EFFECT /nodes/0/timeout_seconds",
        "FIELD_WITHOUT_EFFECT /nodes/0/queue_timeout_seconds",
        "FIELD_WITHOUT_EFFECT /nodes/0/retry_config",
        "FIELD_WITHOUT_EFFECT /nodes/0/queue",
      ],
    ],
    [
      "the same on a map of nodes, and on one of what the engine runs",
      nodes(
        { id: "m", handler: "map", max_retries: 1, config: { items: [1], nodes: [{ id: "x", handler: "work" }] } },
        { id: "n", handler: "map", config: { items: [1], handler: "delay", config: { seconds: 1 }, retry: {} } },
      ),
      ["FIELD_WITHOUT_EFFECT /nodes/0/max_retries", "FIELD_WITHOUT_EFFECT /nodes/1/config/retry"],
    ],
    [
      "inputs for a map of tasks, which its items are not given",
      nodes({ id: "m", handler: "map", inputs: true, config: { items: [1], handler: "work" } }),
      ["FIELD_WITHOUT_EFFECT /nodes/0/inputs"],
    ],
    [
      "the same on a map of tasks, and inherited",
      {
        ...nodes(
          {
            id: "m",
            handler: "map",
            timeout_seconds: 5,
            retry: {},
            queue: "q",
            config: { items: [1], handler: "work" },
          },
          { id: "d", handler: "delay", timeout_seconds: null, queue_timeout_seconds: 86_400, config: { seconds: 1 } },
        ),
        retry: { max_attempts: 7 },
      },
      [],
    ],
    [
      "a read of a node with a condition, by one that also runs without it",
      nodes({ id: "a" }, cond, { id: "d", dependencies: ["a", "c"], config: { x: "{{ c.y }}" } }),
      ["TEMPLATE_MAYBE_SKIPPED /nodes/2/config/x"],
    ],
    [
      "the same with a default",
      nodes({ id: "a" }, cond, { id: "d", dependencies: ["a", "c"], config: { x: "{{ c.y | default(1) }}" } }),
      [],
    ],
    [
      "the same by a node that runs only after it",
      nodes({ id: "a" }, cond, { id: "d", dependencies: ["c"], config: { x: "{{ c.y }}" } }),
      [],
    ],
    [
      "the same with all_success",
      nodes({ id: "a" }, cond, { id: "d", dependencies: ["a", "c"], join: "all_success", config: { x: "{{ c.y }}" } }),
      [],
    ],
    [
      "both branches of a diamond behind the condition",
      nodes(
        { id: "a" },
        cond,
        { id: "l", dependencies: ["c"] },
        { id: "r", dependencies: ["c"] },
        { id: "j", dependencies: ["l", "r"], config: { x: "{{ c.y }}" } },
      ),
      [],
    ],
    [
      "one branch of a diamond",
      nodes(
        { id: "a" },
        cond,
        { id: "l", dependencies: ["c"] },
        { id: "j", dependencies: ["l", "a"], config: { x: "{{ l.y }}" } },
      ),
      ["TEMPLATE_MAYBE_SKIPPED /nodes/3/config/x"],
    ],
    [
      "the target of a route",
      nodes(
        { id: "r", handler: "router", config: { routes: [{ when: "true", to: "b" }], else: "c" } },
        { id: "b", dependencies: ["r"] },
        { id: "c", dependencies: ["r"] },
        { id: "d", dependencies: ["b", "c"], config: { x: "{{ b.y }}" } },
      ),
      ["TEMPLATE_MAYBE_SKIPPED /nodes/3/config/x"],
    ],
    [
      "the output of a node that was waited for to fail",
      nodes({ id: "a" }, { id: "b", dependencies: [{ id: "a", on: "failed" }], config: { x: "{{ a.y }}" } }),
      ["TEMPLATE_MAYBE_SKIPPED /nodes/1/config/x"],
    ],
    [
      "its error",
      nodes(
        { id: "a" },
        { id: "b", dependencies: [{ id: "a", on: "failed" }], config: { x: "{{ a.error.message }}" } },
      ),
      [],
    ],
    [
      "the output of a node that need only be done",
      nodes({ id: "a" }, { id: "b", dependencies: [{ id: "a", on: "done" }], config: { x: "{{ a.y }}" } }),
      ["TEMPLATE_MAYBE_SKIPPED /nodes/1/config/x"],
    ],
    [
      "a parent that may have failed and gone on",
      nodes({ id: "a", on_error: "continue" }, { id: "b", dependencies: ["a"], config: { x: "{{ a.y }}" } }),
      ["TEMPLATE_MAYBE_SKIPPED /nodes/1/config/x"],
    ],
    [
      "the first of several parents",
      nodes(
        { id: "a" },
        { id: "b" },
        { id: "c", dependencies: ["a", "b"], join: "one_success", config: { x: "{{ a.y }}" } },
      ),
      ["TEMPLATE_MAYBE_SKIPPED /nodes/2/config/x"],
    ],
    [
      "an expression that asks first",
      nodes({ id: "a" }, cond, { id: "d", dependencies: ["a", "c"], condition: "has(c.y) && c.y > 1" }),
      [],
    ],
  ])("%s", (_, value, expected) => {
    const report = check(value);
    expect(found(report)).toEqual([]);
    expect(warned(report)).toEqual(expected);
    expect(report.workflow).toBeDefined();
    expect(report.hash).toMatch(/^[0-9a-f]{64}$/);
  });

  test("not of what a stored definition has written out for every node", () => {
    const written = {
      ...nodes({ id: "d", handler: "delay", config: { seconds: 1 } }),
      retry: { max_attempts: 7 },
    };
    const stored = check(written).workflow as unknown as Json;
    expect(warned(check(JSON.parse(JSON.stringify(stored)) as Json))).toEqual([]);
  });
});

test("a secret may stand wherever a worker reads the config", () => {
  const secret = { token: "{{ secrets.TOKEN }}" };
  const inner = [{ id: "x", handler: "work", config: secret }];
  const written = nodes(
    { id: "a", config: secret },
    { id: "b", handler: "map", config: { items: [1], handler: "work", config: secret } },
    { id: "c", handler: "map", config: { items: [1], nodes: inner } },
  );
  expect(found(check(written))).toEqual([]);
});

describe("circles", () => {
  const edge = (id: string, ...dependencies: string[]): JsonObject => ({ id, dependencies });

  test("one problem for each group, with the shortest way round from its first node", () => {
    const report = check(nodes(edge("a", "c", "b"), edge("b", "a"), edge("c", "b"), edge("x", "y"), edge("y", "x")));
    expect(report.errors.map(({ message }) => message)).toEqual([
      "Nodes depend on each other in a circle: a → b → a.",
      "Nodes depend on each other in a circle: x → y → x.",
    ]);
  });

  test("what comes after a circle is reported once; what is beside it is not", () => {
    const report = check(nodes(edge("a", "b"), edge("b", "a"), edge("c", "b"), edge("d", "c"), edge("free")));
    expect(found(report)).toEqual(["CYCLE_DETECTED /nodes/0", "ORPHAN_STEPS /nodes/2"]);
    expect(report.errors[1]!.message).toBe('Never reached, because they come after a circle: "c", "d".');
  });

  test("a reference to what is not upstream is reported in a circle and behind it too", () => {
    const reads = (id: string, reference: string, ...dependencies: string[]): JsonObject => ({
      ...edge(id, ...dependencies),
      config: { value: `{{ ${reference} }}` },
      handler: "transform",
    });
    const report = check(
      nodes(reads("a", "meta", "b"), reads("b", "a", "a"), reads("c", "b", "a"), edge("meta"), reads("last", "c")),
    );
    expect(found(report)).toEqual([
      "CYCLE_DETECTED /nodes/0",
      "ORPHAN_STEPS /nodes/2",
      "TEMPLATE_REF_NOT_ANCESTOR /nodes/0/config/value",
      "TEMPLATE_REF_NOT_ANCESTOR /nodes/4/config/value",
    ]);
    expect(report.errors[2]!.hint).toBe('Add "meta" to the dependencies of "a".');
  });

  test("a long circle shows 20 ids", () => {
    const list = Array.from({ length: 50 }, (_, i) => edge(`n${i}`, `n${(i + 49) % 50}`));
    const [error] = check(nodes(...list)).errors;
    expect(error!.message).toMatch(/n0 → n1 → .* → n19 → … 30 more → n0\.$/);
  });

  test("with duplicate ids the first one counts", () => {
    const report = check(nodes(edge("a"), edge("b", "a"), edge("a", "b")));
    expect(found(report)).toEqual(["DUPLICATE_NODE_ID /nodes/2/id"]);
  });
});

test("every problem is reported at once, in the order of the document, with line and column", () => {
  const text = `{
  "name": "invoice",
  "nodes": [
    { "id": "ocr", "handler": "htpt" },
    { "id": "clean", "handler": "work", "dependencies": ["ocr", "metadata"], "timeout_seconds": -5 },
    { "id": "meta", "handler": "work", "config": { "text": "{{ clean.x }}" } },
    { "id": "ocr", "handler": "work", "timeout": 3 }
  ]
}`;
  const { errors } = readDefinition(text, { format: "json", handlers });
  expect(errors.map(({ code, path, line, column }) => [code, path, line, column])).toEqual([
    ["UNKNOWN_HANDLER", "/nodes/0/handler", 4, 31],
    ["UNKNOWN_DEPENDENCY", "/nodes/1/dependencies/1", 5, 65],
    ["INVALID_TIMEOUT", "/nodes/1/timeout_seconds", 5, 97],
    ["TEMPLATE_REF_NOT_ANCESTOR", "/nodes/2/config/text", 6, 60],
    ["DUPLICATE_NODE_ID", "/nodes/3/id", 7, 13],
    ["UNKNOWN_FIELD", "/nodes/3/timeout", 7, 39],
  ]);
});

test("YAML problems have line and column too", () => {
  const text = "name: w\nnodes:\n  - id: a\n    handler: work\n    timeout_seconds: -1\n    frob: 1\n";
  const { errors } = readDefinition(text, { format: "yaml", handlers });
  expect(errors.map(({ code, line, column }) => [code, line, column])).toEqual([
    ["INVALID_TIMEOUT", 5, 22],
    ["UNKNOWN_FIELD", 6, 5],
  ]);
});

test("positions can be left out", () => {
  const { errors } = readDefinition('{"name":"","nodes":[]}', { format: "json", positions: false });
  expect(errors[0]).not.toHaveProperty("line");
});

test("a missing handler is accepted if the caller says so", () => {
  const report = checkDefinition(nodes({ id: "a", handler: "later" }), { handlers: catalogue({}, true) });
  expect(report.workflow?.nodes[0]).toMatchObject({ handler: "later", timeout_seconds: 30, queue: "later" });
});

test("inside a map, items and the nodes before it can be read", () => {
  const report = check(
    nodes(
      { id: "o" },
      {
        id: "m",
        handler: "map",
        dependencies: ["o"],
        config: {
          items: "{{ o.list }}",
          nodes: [
            { id: "x", handler: "work", config: { v: "{{ item.a }} {{ index }} {{ o.b }}" } },
            { id: "y", handler: "work", dependencies: ["x"], config: { v: "{{ x.c }}" } },
          ],
        },
      },
    ),
  );
  expect(found(report)).toEqual([]);
  expect(report.workflow?.nodes[1]?.config["nodes"]).toMatchObject([
    { id: "x", timeout_seconds: 30, queue: "work" },
    { id: "y", dependencies: ["x"] },
  ]);
});

test.each(["2030-01-31T09:00:00Z", "2030-01-31", "2030-01-31 09:00:00.5+02:00", "{{ input.at }}"])(
  "a wait until %s is checked when it is known",
  (until) => {
    const node = { id: "a", handler: "wait", config: { until } };
    expect(checkDefinition({ name: "x", nodes: [node] }).errors).toEqual([]);
  },
);

test.each(["wait", "workflow", "map", "review", "output"])(
  "a repeat on %s, which no worker runs, is refused",
  (handler) => {
    const configs: Record<string, Json> = {
      wait: { seconds: 1 },
      workflow: { name: "w" },
      map: { items: [], handler: "http", config: { url: "u" } },
    };
    const node = { id: "a", handler, config: configs[handler] ?? {}, repeat: { until: "true" } };
    const { errors } = checkDefinition({ name: "x", nodes: [node] });
    expect(errors).toMatchObject([{ code: "CONFIG_INVALID", path: "/nodes/0/repeat" }]);
  },
);

test.each([
  ["{{ s.k }}", "{{ s.k | default"],
  ['{{ s["k k"].l[0] }}', '{{ s["k k"].l[0] | default'],
  ['{{ nodes["a.b"].k }}', '{{ nodes["a.b"].k | default'],
  ["{{ s.output.output.k }}", "{{ s.output.output.k | default"],
])("the hint for %s, which may be missing, can be followed", (reads, follow) => {
  const skipped = { handler: "work", condition: "input.x" };
  const checked = (x: string): DefinitionReport =>
    check({
      name: "w",
      nodes: {
        s: skipped,
        "a.b": skipped,
        t: { handler: "work" },
        r: { handler: "work", dependencies: ["s", "a.b", "t"], config: { x } },
      },
    });
  const [warning] = checked(reads).warnings;
  expect(warning).toMatchObject({ code: "TEMPLATE_MAYBE_SKIPPED", hint: expect.stringContaining(follow) as string });
  const advised = /\{\{.*\}\}/.exec(warning!.hint!)![0];
  expect(checked(advised)).toMatchObject({ errors: [], warnings: [] });
});

test("what is no schema below input_schema is told of the field it is in", () => {
  const { errors } = check({ ...nodes({ id: "a" }), input_schema: { items: [{}] } });
  expect(errors.map(({ message }) => message)).toEqual(['"items" must be a JSON Schema, not an array.']);
});
