import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NO_HANDLERS } from "./handlers.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { checkDefinition, readDefinition } from "./read.ts";
import { catalogue } from "./test-catalogue.ts";
import type { Workflow, WorkflowNode } from "./workflow.ts";

const handlers = catalogue({ work: {}, "ocr.text": { defaultTimeoutSeconds: 600 } });

function load(value: Json): Workflow {
  const { workflow, errors } = checkDefinition(value, { handlers });
  expect(errors).toEqual([]);
  return workflow!;
}

const ids = (workflow: Workflow): string[] => workflow.nodes.map(({ id }) => id);

describe("every shape of the source documents loads", () => {
  test("a dag in a wrapper, a name with spaces, the handlers of document 001", () => {
    const { workflow, warnings } = checkDefinition({
      name: "Parallel API Fetcher",
      dag: {
        nodes: [
          { id: "input", handler: "input", dependencies: [] },
          {
            id: "get_user",
            handler: "call_external_service",
            dependencies: ["input"],
            config: { url: "http://localhost:8911/users/1" },
          },
          {
            id: "get_posts",
            handler: "call_external_service",
            dependencies: ["input"],
            config: { url: "http://localhost:8911/posts" },
          },
          {
            id: "summarize",
            handler: "llm_service",
            dependencies: ["get_user", "get_posts"],
            config: { prompt: "Summarize {{ get_posts.body }} of {{ get_user.body.name }}" },
          },
          { id: "output", handler: "output", dependencies: ["summarize"] },
        ],
      },
    });
    expect(warnings).toEqual([]);
    expect(workflow).toMatchObject({ name: "Parallel API Fetcher", on_error: "fail_fast", timeout_seconds: 604_800 });
    expect(workflow!.nodes.map(({ handler, timeout_seconds, queue }) => [handler, timeout_seconds, queue])).toEqual([
      ["input", null, "input"],
      ["http", 120, "http"],
      ["http", 120, "http"],
      ["llm", 180, "llm"],
      ["output", null, "output"],
    ]);
  });

  test("document 000: node_id, mock services without an address, a data processor", () => {
    const { workflow, warnings, errors } = checkDefinition({
      name: "chain",
      nodes: [
        { node_id: "A", handler: "external_service", config: { service: "user_api" }, dependencies: [] },
        {
          node_id: "B",
          handler: "data_processor",
          config: { data: "{{ A.result }}", operation: "upper" },
          dependencies: ["A"],
        },
        { node_id: "C", handler: "llm_service", config: { prompt: "{{ B.data }}" }, dependencies: ["A", "B"] },
        { node_id: "D", handler: "llm_service", dependencies: ["C"] },
      ],
    });
    expect(errors).toEqual([]);
    expect(warnings.map(({ code, path }) => [code, path])).toEqual([["IGNORED_FIELD", "/nodes/0/config/service"]]);
    expect(workflow!.nodes.map(({ handler, config }) => [handler, config])).toEqual([
      ["http", { mock: true }],
      ["transform", { value: { data: "{{ A.result }}", operation: "upper" } }],
      ["llm", { prompt: "{{ B.data }}", result: true }],
      ["llm", { mock: true }],
    ]);
  });

  test("document 002: steps by id, step_type, retry_config, entry points, a condition", () => {
    const { workflow, warnings } = checkDefinition(
      {
        workflow_id: "doc-1",
        name: "Document workflow",
        steps: {
          ingest: {
            step_id: "ingest",
            step_type: "EXTRACT",
            name: "Ingest",
            handler: "work",
            config: {},
            timeout_seconds: 30,
            dependencies: [],
          },
          ocr_text: {
            step_type: "EXTRACT",
            handler: "ocr.text",
            retry_config: {
              max_attempts: 5,
              base_delay_seconds: 0.5,
              max_delay_seconds: 10,
              exponential_base: 3,
              jitter_factor: 0.2,
              retryable_errors: ["TimeoutError"],
            },
            dependencies: ["ingest"],
          },
          review: { handler: "review", dependencies: ["ocr_text"], condition: "{{ ocr_text.score < 0.75 }}" },
        },
        entry_points: ["ingest"],
        terminal_points: ["review"],
      },
      { handlers },
    );
    expect(warnings.map(({ code, path }) => [code, path])).toEqual([
      ["IGNORED_FIELD", "/workflow_id"],
      ["IGNORED_FIELD", "/entry_points"],
      ["IGNORED_FIELD", "/terminal_points"],
      ["IGNORED_FIELD", "/steps/ocr_text/retry_config/retryable_errors"],
    ]);
    expect(workflow!.nodes).toMatchObject([
      { id: "ingest", name: "Ingest", type: "EXTRACT" },
      {
        id: "ocr_text",
        timeout_seconds: 600,
        retry: { max_attempts: 5, base_delay_seconds: 0.5, max_delay_seconds: 10, exponential_base: 3, jitter: 0.2 },
      },
      { id: "review", condition: "ocr_text.score < 0.75", config: { due_seconds: 604_800, on_due: "fail" } },
    ]);
  });

  test("documents 003 and 004: a bare list of nodes with time limits", () => {
    const workflow = load({
      name: "w",
      nodes: [
        {
          id: "nodeA",
          handler: "call_external_service",
          config: { url: "http://a" },
          dependencies: [],
          timeout_seconds: 30,
        },
        {
          id: "nodeB",
          handler: "llm_service",
          config: { prompt: "Summarize this: {{ nodeA.body }}" },
          dependencies: ["nodeA"],
          timeout_seconds: 60,
        },
      ],
    });
    expect(workflow.nodes.map((node) => node.timeout_seconds)).toEqual([30, 60]);
  });

  test("nodes by id, in a dag, without any workflow field", () => {
    const { workflow, warnings } = checkDefinition({
      dag: { nodes: { a: { handler: "input" }, b: { handler: "output", dependencies: ["a"] } } },
    });
    expect(ids(workflow!)).toEqual(["a", "b"]);
    expect(workflow!.name).toMatch(/^unnamed-[0-9a-f]{8}$/);
    expect(warnings.map(({ code }) => code)).toEqual(["UNNAMED"]);
  });

  test("the example of the design", () => {
    const text = `# yaml-language-server: $schema=../schema/workflow.json
name: invoice
input_schema: { type: object, required: [url], properties: { url: { type: string } } }
on_error: fail_branch
timeout_seconds: 172800
max_parallel_nodes: 10
nodes:
  - { id: fetch, handler: http, config: { url: "{{ input.url }}" }, retry: { max_attempts: 5 } }
  - { id: extract, handler: llm, dependencies: [fetch], limit: openai,
      config: { prompt: "Extract: {{ fetch.body }}", output_schema: { type: object, properties: { total: {}, confidence: {} } } } }
  - { id: review, handler: review, dependencies: [extract], condition: "extract.confidence < 0.75",
      config: { form: { type: object }, due_seconds: 86400 } }
  - { id: save, handler: output, dependencies: [extract, review], config: { total: "{{ extract.total }}" } }
`;
    const { workflow, errors, warnings } = readDefinition(text, { format: "yaml" });
    expect([errors, warnings]).toEqual([[], []]);
    expect(workflow!.nodes.every((node) => node.on_error === "fail_branch")).toBe(true);
  });
});

describe("defaults are written out", () => {
  test("all of them", () => {
    expect(load({ name: "w", nodes: [{ id: "a", handler: "work" }] })).toEqual({
      name: "w",
      on_error: "fail_fast",
      timeout_seconds: 604_800,
      max_parallel_nodes: null,
      dlq: "all",
      priority: 0,
      nodes: [
        {
          id: "a",
          handler: "work",
          config: {},
          dependencies: [],
          timeout_seconds: 30,
          queue_timeout_seconds: 86_400,
          retry: { max_attempts: 3, base_delay_seconds: 1, max_delay_seconds: 60, exponential_base: 2, jitter: 0.1 },
          condition_on_error: "fail",
          join: "none_failed",
          on_error: "fail_fast",
          inputs: false,
          queue: "work",
          priority: 0,
          dlq: "all",
        },
      ],
    });
  });

  test("what was stored loads again: its queues are written out, and may be named as handlers are", () => {
    const node = { id: "a", handler: "team/thing one" };
    const read = (queue?: string): ReturnType<typeof checkDefinition> =>
      checkDefinition(
        { name: "w", nodes: [{ ...node, ...(queue !== undefined && { queue }) }] },
        { handlers: { ...NO_HANDLERS, allowMissing: true } },
      );
    const stored = read().workflow!.nodes[0]!;
    expect(stored.queue).toBe("team/thing one");
    expect(read(stored.queue)).toMatchObject({ errors: [], workflow: { nodes: [stored] } });
    expect(read("team/another").errors).toMatchObject([{ code: "INVALID_NAME" }]);
  });

  test("nodes inherit what the workflow says, and may say otherwise", () => {
    const { nodes } = load({
      name: "w",
      on_error: "continue",
      dlq: "none",
      priority: 5,
      retry: { max_retries: 0, jitter: false },
      nodes: [
        { id: "a", handler: "work" },
        { id: "b", handler: "work", on_error: "fail_fast", dlq: "all", priority: -5, retry: { max_attempts: 7 } },
      ],
    });
    expect(nodes[0]).toMatchObject({
      on_error: "continue",
      dlq: "none",
      priority: 5,
      retry: { max_attempts: 1, jitter: 0 },
    });
    expect(nodes[1]).toMatchObject({
      on_error: "fail_fast",
      dlq: "all",
      priority: -5,
      retry: { max_attempts: 7, jitter: 0 },
    });
  });

  test.each<[JsonObject, object]>([
    [{ max_retries: 4 }, { max_attempts: 5 }],
    [{ initial_delay: 2 }, { base_delay_seconds: 2 }],
    [{ initial_delay_seconds: 2 }, { base_delay_seconds: 2 }],
    [{ delay_seconds: 2 }, { base_delay_seconds: 2 }],
    [{ jitter: true }, { jitter: 0.1 }],
    [{ jitter: false }, { jitter: 0 }],
    [{ jitter_factor: 0.3 }, { jitter: 0.3 }],
    [{ base_delay_seconds: 120 }, { base_delay_seconds: 120, max_delay_seconds: 120 }],
    [{ max_delay_seconds: 0.5 }, { base_delay_seconds: 0.5, max_delay_seconds: 0.5 }],
    [{ max_attempts: null, max_retries: 4 }, { max_attempts: 5 }],
  ])("retry %j is %j", (retry, expected) => {
    expect(load({ name: "w", nodes: [{ id: "a", handler: "work", retry }] }).nodes[0]!.retry).toMatchObject(expected);
    expect(
      load({ name: "w", nodes: [{ id: "a", handler: "work", retry_config: retry }] }).nodes[0]!.retry,
    ).toMatchObject(expected);
  });

  test("null means not given, fields of one's own are kept", () => {
    const workflow = load({
      name: "w",
      "x-team": "blue",
      retry: null,
      nodes: [
        {
          id: "a",
          handler: "work",
          config: null,
          dependencies: null,
          condition: null,
          timeout_seconds: null,
          "x-note": 1,
        },
      ],
    });
    expect(workflow).toMatchObject({
      "x-team": "blue",
      nodes: [{ config: {}, dependencies: [], timeout_seconds: 30, "x-note": 1 }],
    });
    expect(workflow.nodes[0]).not.toHaveProperty("condition");
  });

  test("dependencies have one form", () => {
    const { nodes } = load({
      name: "w",
      nodes: [
        { id: "a", handler: "work" },
        {
          id: "b",
          handler: "work",
          dependencies: [
            { id: "a" },
            "a",
            { id: "a", on: "completed" },
            { id: "a", on: "done" },
            { id: "a", on: "done" },
          ],
        },
      ],
    });
    expect(nodes[1]!.dependencies).toEqual(["a", { id: "a", on: "done" }]);
  });

  test("expressions of a transform become templates, conditions lose their braces", () => {
    const { nodes } = load({
      name: "w",
      nodes: [
        { id: "a", handler: "work" },
        {
          id: "e",
          handler: "transform",
          dependencies: ["a"],
          config: { expression: 'a.x > 1 ? {"k": {"l": 1}} : {}' },
        },
        { id: "f", handler: "transform", dependencies: ["a"], config: { fields: { k: "a.x", l: "{{ a.y }}" } } },
        {
          id: "r",
          handler: "router",
          dependencies: ["a"],
          config: { routes: [{ when: "{{ a.x > 1 }}", to: "s" }], else: "s" },
        },
        { id: "s", handler: "work", dependencies: ["r"], condition: " {{ a.x }} ", repeat: { until: "{{ s.done }}" } },
      ],
    });
    expect(nodes[1]!.config).toEqual({ value: '{{ a.x > 1 ? {"k": {"l": 1}} : {} }}' });
    expect(nodes[2]!.config).toEqual({ value: { k: "{{ a.x }}", l: "{{ a.y }}" } });
    expect(nodes[3]!.config).toEqual({
      mode: "exclusive",
      on_error: "fail",
      routes: [{ when: "a.x > 1", to: "s" }],
      else: "s",
    });
    expect(nodes[4]).toMatchObject({ condition: "a.x", repeat: { until: "s.done", every_seconds: 10, max: 100 } });
  });

  test.each([
    [`'{{ ' + input.x + ' }}'`, `{{ '{{ ' + input.x + ' }}' }}`],
    [`input.x + "{{"`, `{{ input.x + "{{" }}`],
    [`{{ "}}" + input.x }}`, `{{ "}}" + input.x }}`],
    [`{{ input.x == "{{" }}`, `{{ input.x == "{{" }}`],
    // Not an expression, but text with templates, and taken as such.
    ["It's {{ input.x }}", "It's {{ input.x }}"],
    ["{{ input.x }} and {{ input.y }}", "{{ input.x }} and {{ input.y }}"],
  ])("braces in quotes belong to the expression %s", (expression, value) => {
    const { nodes } = load({ name: "w", nodes: [{ id: "a", handler: "transform", config: { expression } }] });
    expect(nodes[0]!.config).toEqual({ value });
  });

  test("a condition that speaks of braces loses only its own", () => {
    const { nodes } = load({ name: "w", nodes: [{ id: "a", handler: "work", condition: `{{ input.x == "{{" }}` }] });
    expect(nodes[0]!.condition).toBe(`input.x == "{{"`);
  });

  test("a time without a zone is in UTC, and a child without an input is given an empty one", () => {
    const { nodes } = load({
      name: "w",
      nodes: [
        { id: "a", handler: "wait", config: { until: "2030-01-31 09:00" } },
        { id: "b", handler: "wait", config: { until: "2030-01-31T09:00:00+02:00" } },
        { id: "c", handler: "workflow", config: { name: "child" } },
        { id: "d", handler: "workflow", config: { name: "child", input: null } },
      ],
    });
    expect(nodes.map(({ config }) => config)).toEqual([
      { until: "2030-01-31T09:00Z" },
      { until: "2030-01-31T09:00:00+02:00" },
      { name: "child", input: {} },
      { name: "child", input: null },
    ]);
  });
});

describe("the canonical form", () => {
  const node = fc.record(
    {
      handler: fc.constantFrom(
        "work",
        "ocr.text",
        "input",
        "output",
        "external_service",
        "llm_service",
        "data_processor",
      ),
      config: fc.option(
        fc.dictionary(fc.constantFrom("url", "prompt", "value", "k"), fc.constantFrom("x", "{{ input.a }}")),
      ),
      timeout_seconds: fc.option(fc.integer({ min: 1, max: 1000 })),
      retry: fc.option(
        fc.record({ max_retries: fc.nat(99), jitter: fc.boolean(), delay_seconds: fc.nat(300) }, { requiredKeys: [] }),
      ),
      join: fc.constantFrom("all_done", "none_failed"),
      condition: fc.constantFrom("{{ input.a == 1 }}", "input.b"),
      "x-mine": fc.jsonValue(),
      parents: fc.array(fc.nat(20), { maxLength: 4 }),
      on: fc.constantFrom("completed", "failed", "done"),
    },
    { requiredKeys: ["handler", "parents", "on"] },
  );
  const definition = fc
    .tuple(fc.array(node, { minLength: 1, maxLength: 12 }), fc.boolean(), fc.boolean())
    .map(([list, byId, wrapped]): Json => {
      const nodes = list.map(({ parents, on, ...rest }, i) => ({
        id: `n${i}`,
        ...rest,
        dependencies: parents
          .filter((parent) => parent < i)
          .map((parent) => (on === "completed" ? `n${parent}` : { id: `n${parent}`, on })),
      }));
      const container = byId ? Object.fromEntries(nodes.map(({ id, ...rest }) => [id, rest])) : nodes;
      const workflow = { nodes: container, retry: { max_attempts: 2 } };
      return JSON.parse(JSON.stringify(wrapped ? { name: "w", dag: workflow } : workflow)) as Json;
    });

  test("loads as itself, with the same hash", () => {
    fc.assert(
      fc.property(definition, (value) => {
        const first = checkDefinition(value, { handlers });
        fc.pre(first.errors.length === 0);
        const second = checkDefinition(JSON.parse(JSON.stringify(first.workflow)) as Json, { handlers });
        expect(second.errors).toEqual([]);
        expect(second.workflow).toEqual(first.workflow);
        expect(second.hash).toBe(first.hash);
      }),
    );
  });

  test("has the same hash however the same thing is written", () => {
    const list = {
      name: "w",
      nodes: [
        { id: "a", handler: "work" },
        { id: "b", handler: "work", dependencies: ["a"], retry: { max_attempts: 3 } },
      ],
    };
    const byId = {
      steps: {
        a: { handler: "work", dependencies: [] },
        b: { dependencies: [{ on: "completed", id: "a" }], timeout_seconds: 30, handler: "work" },
      },
      name: "w",
    };
    const hashes = [list, byId, { dag: list }].map((value) => checkDefinition(value, { handlers }).hash);
    expect(new Set(hashes).size).toBe(1);
    expect(checkDefinition({ ...list, name: "v" }, { handlers }).hash).not.toBe(hashes[0]);
  });

  test("has another hash if the nodes stand in another order, whichever way they are written", () => {
    const nodes = { a: { handler: "work" }, b: { handler: "work" } };
    const hashOf = (written: Json): string => checkDefinition({ name: "w", nodes: written }, { handlers }).hash!;
    const listed = (ids: readonly ("a" | "b")[]): string => hashOf(ids.map((id) => ({ id, ...nodes[id] })));
    expect(listed(["a", "b"])).toBe(hashOf(nodes));
    expect(listed(["b", "a"])).toBe(hashOf({ b: nodes.b, a: nodes.a }));
    expect(listed(["b", "a"])).not.toBe(hashOf(nodes));
  });
});

test("what a node states none of is what the operator has set, and is written out", () => {
  const retry = { max_attempts: 5, base_delay_seconds: 2, max_delay_seconds: 9, exponential_base: 3, jitter: 0 };
  const defaults = { retry, timeoutSeconds: 7, timeoutSecondsOf: { http: 11 } };
  const handlers = { get: () => undefined, names: () => [], allowMissing: true, defaults };
  const { workflow } = checkDefinition(
    {
      name: "w",
      nodes: [
        { id: "a", handler: "http", config: { url: "https://x" } },
        { id: "b", handler: "mine", retry: { max_attempts: 2 } },
        { id: "c", handler: "mine", timeout_seconds: 1 },
        { id: "d", handler: "delay", config: { seconds: 1 } },
      ],
    },
    { handlers },
  );
  const [a, b, c, d] = workflow!.nodes;
  expect([a, b, c, d].map((node) => node!.timeout_seconds)).toEqual([11, 7, 1, null]);
  expect(a!.retry).toEqual(retry);
  expect(b!.retry).toEqual({ ...retry, max_attempts: 2 });
});

test("what a map runs for each item has the time that the operator has set for that handler", () => {
  const defaults = {
    timeoutSeconds: 7,
    timeoutSecondsOf: { http: 11, llm: 13 },
    timeoutSecondsOfCapitals: { OCR_TEXT: 600 },
  };
  const handlers = { get: () => undefined, names: () => [], allowMissing: true, defaults };
  const map = (id: string, inner: JsonObject, more: JsonObject = {}): JsonObject => ({
    id,
    handler: "map",
    config: { items: [1], ...inner },
    ...more,
  });
  const { workflow } = checkDefinition(
    {
      name: "w",
      nodes: [
        map("a", { handler: "call_external_service", config: { url: "https://x" } }),
        map("b", { handler: "ocr.text" }),
        map("c", { handler: "mine" }),
        map("d", { handler: "http", config: { url: "https://x" } }, { timeout_seconds: 1 }),
        map("e", { handler: "delay", config: { seconds: 1 } }),
        map("f", { nodes: [{ id: "g", handler: "llm", config: { prompt: "?" } }] }),
      ],
    },
    { handlers },
  );
  expect(workflow!.nodes.map((node) => node.timeout_seconds)).toEqual([11, 600, 7, 1, null, null]);
  const [inner] = workflow!.nodes[5]!.config["nodes"] as unknown as readonly WorkflowNode[];
  expect(inner!.timeout_seconds).toBe(13);
});
