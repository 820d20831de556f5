import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../../src/json/json.ts";
import { TestApi } from "../support/api.ts";

/** Input that nobody should send, by the rows of the reliability table; each is answered by its very status and code. */

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ handlers: { step: ({ config }) => config } });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});
// Whatever came before, the next good request is served.
afterEach(async () => {
  expect((await api.post("/v1/validate", one({ config: {} }))).body).toMatchObject({ valid: true });
  expect(Object.keys(Object.prototype)).toEqual([]);
});

type Node = Readonly<Record<string, unknown>>;
const step = (id: string, more: Node = {}): Node => ({ id, handler: "step", ...more });
const one = (more: Node): Node => ({ name: "bad", nodes: [step("a", more)] });
const two = (more: Node): Node => ({ name: "bad", nodes: [step("a"), step("b", { dependencies: ["a"], ...more })] });
const nodes = (...list: readonly unknown[]): Node => ({ name: "bad", nodes: list });
const timed = (timeout_seconds: unknown): Node => one({ timeout_seconds });
const tried = (retry: unknown): Node => one({ retry });
const said = (text: string): Node => two({ config: { x: text } });
const asked = (condition: string): Node => two({ condition });

describe("a definition is refused as a whole, with 422 and the code of what is wrong", () => {
  const rows: readonly [row: string, code: string, definition: unknown][] = [
    ["B23 no nodes", "EMPTY_WORKFLOW", { name: "bad", nodes: [] }],
    ["B23 no list of nodes", "EMPTY_WORKFLOW", { name: "bad" }],
    ["B23 an unknown handler", "UNKNOWN_HANDLER", nodes({ id: "a", handler: "stp" })],
    ["B23 a config that does not fit", "CONFIG_INVALID", nodes({ id: "a", handler: "http", config: {} })],
    ["B23 a config field that is misspelt", "CONFIG_INVALID", nodes({ id: "a", handler: "wait", config: { secs: 1 } })],
    ["B24 a circle", "CYCLE_DETECTED", nodes(step("a", { dependencies: ["b"] }), step("b", { dependencies: ["a"] }))],
    ["B24 a node that waits for itself", "SELF_DEPENDENCY", one({ dependencies: ["a"] })],
    ["B25 an unknown dependency", "UNKNOWN_DEPENDENCY", one({ dependencies: ["z"] })],
    ["B26 an id twice", "DUPLICATE_NODE_ID", nodes(step("a"), step("a"))],
    ["B27 a space in an id", "INVALID_NODE_ID", nodes(step("a b"))],
    ["B27 a path for an id", "INVALID_NODE_ID", nodes(step("../a"))],
    ["B27 braces in an id", "INVALID_NODE_ID", nodes(step("{a}"))],
    ["B27 a colon in an id", "INVALID_NODE_ID", nodes(step("a:b"))],
    ["B27 a quote in an id", "INVALID_NODE_ID", nodes(step('a"b'))],
    ["B27 text that runs the other way", "INVALID_NODE_ID", nodes(step("a\u202Eb"))],
    ["B27 an id without width", "INVALID_NODE_ID", nodes(step("a\u200Bb"))],
    ["B27 an id of 10 kB", "INVALID_NODE_ID", nodes(step("a".repeat(10_000)))],
    ["B15 a reserved id", "RESERVED_ID", nodes(step("constructor"))],
    ["B17 half a character in a name", "INVALID_NAME", { name: "a\uD800", nodes: [step("a")] }],
    ["B17 NUL in a name", "INVALID_NAME", { name: "a\u0000", nodes: [step("a")] }],
    ["B30 a timeout of 0", "INVALID_TIMEOUT", timed(0)],
    ["B30 a timeout below 0", "INVALID_TIMEOUT", timed(-1)],
    ["B30 a timeout of 30,000 years", "INVALID_TIMEOUT", timed(1e12)],
    ["B30 a timeout in words", "INVALID_TYPE", timed("30s")],
    ["B30 a billion attempts", "INVALID_RETRY_POLICY", tried({ max_attempts: 1e9 })],
    ["B30 no attempt", "INVALID_RETRY_POLICY", tried({ max_attempts: 0 })],
    ["B30 a backoff that shrinks", "INVALID_RETRY_POLICY", tried({ exponential_base: 0.5 })],
    ["B30 a wait below 0", "INVALID_RETRY_POLICY", tried({ base_delay_seconds: -1 })],
    ["B33 a template on an unknown node", "TEMPLATE_UNKNOWN_NODE", said("{{ z.x }}")],
    [
      "B33 a template on a node that is no ancestor",
      "TEMPLATE_REF_NOT_ANCESTOR",
      nodes(step("a"), step("b", { config: { x: "{{ a.x }}" } })),
    ],
    ["B33 a template on the node itself", "TEMPLATE_REF_NOT_ANCESTOR", one({ config: { x: "{{ a.x }}" } })],
    ["B34 a template that does not end", "TEMPLATE_SYNTAX", said("{{ a.x")],
    ["B34 a template in a template", "TEMPLATE_SYNTAX", said("{{ {{ a.x }} }}")],
    ["B34 half a megabyte of braces", "TEMPLATE_SYNTAX", said("{{".repeat(250_000))],
    ["B35 a way to __proto__", "TEMPLATE_FORBIDDEN_PATH", said("{{ a.__proto__.x }}")],
    ["B35 a way to a constructor", "TEMPLATE_FORBIDDEN_PATH", said("{{ a.constructor.constructor }}")],
    ["B35 the same in brackets", "TEMPLATE_FORBIDDEN_PATH", said('{{ a["__proto__"] }}')],
    [
      "B39 an expression of more than 4 KB",
      "EXPRESSION_TOO_COMPLEX",
      asked(Array(1_000).fill("a.x == 1").join(" || ")),
    ],
    ["B39 an expression that is too deep", "EXPRESSION_TOO_COMPLEX", asked(`${"(".repeat(40)}true${")".repeat(40)}`)],
    ["B40 process", "EXPRESSION_FORBIDDEN", asked("process.exit() == 1")],
    ["B40 globalThis", "EXPRESSION_FORBIDDEN", asked("globalThis.x == 1")],
    ["B40 an unknown function", "EXPRESSION_FORBIDDEN", asked("nothing(1) == 1")],
    ["a field that nobody knows", "UNKNOWN_FIELD", one({ tenantId: "other" })],
    ["B4 a state of one's own", "UNKNOWN_FIELD", { name: "bad", state: "COMPLETED", nodes: [step("a")] }],
  ];

  test.each(rows)("%s: %s", async (_, code, definition) => {
    const { status, body } = await api.post("/v1/workflow", definition);
    expect([status, body.code]).toEqual([422, "INVALID_DEFINITION"]);
    expect((body.errors as { code: string }[]).map((error) => error.code)).toContain(code);
    expect((await api.get("/v1/workflows/bad")).status).toBe(404);
  });
});

/** Each line is ten times the one before. */
const BOMB = Array.from(
  { length: 9 },
  (_, i) =>
    `a${i}: &a${i} [${Array(10)
      .fill(i === 0 ? "x" : `*a${i - 1}`)
      .join(", ")}]`,
).join("\n");

describe("text that is no definition is refused with 400", () => {
  const yaml = { "content-type": "application/yaml" };
  const rows: readonly [row: string, code: string, text: string, headers?: Record<string, string>][] = [
    ["B13 broken JSON", "INVALID_JSON", '{"name": '],
    ["B13 something behind it", "INVALID_JSON", "{} {}"],
    ["B13 a key twice", "DUPLICATE_KEY", '{"name": "a", "name": "b", "nodes": []}'],
    ["B14 65 levels", "JSON_TOO_DEEP", `${"[".repeat(65)}${"]".repeat(65)}`],
    ["B14 a million levels", "JSON_TOO_DEEP", `${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}`],
    [
      "B15 a forbidden key",
      "FORBIDDEN_KEY",
      '{"name": "a", "nodes": [{"id": "a", "handler": "step", "config": {"__proto__": 1}}]}',
    ],
    ["B31 an alias bomb", "YAML_UNSAFE", BOMB, yaml],
    ["B31 a tag", "YAML_UNSAFE", "name: !!js/function 'x'\nnodes: []\n", yaml],
    ["B31 a merge key", "YAML_UNSAFE", "x: &x {a: 1}\nname: b\nnodes: [{<<: *x}]\n", yaml],
  ];

  test.each(rows)("%s: %s", async (_, code, text, headers) => {
    const { status, body } = await api.post("/v1/workflow", text, headers);
    expect([status, body.code]).toEqual([400, code]);
  });

  test("B16 numbers that no engine field can have", async () => {
    for (const number of ["1e999", "9007199254740993", "-1e400"]) {
      const text = `{"name":"bad","nodes":[{"id":"a","handler":"step","timeout_seconds":${number}}]}`;
      const { status, body } = await api.post("/v1/workflow", text);
      expect([number, status]).toEqual([number, status === 400 ? 400 : 422]);
      expect(JSON.stringify(body)).toMatch(/NUMBER_OUT_OF_RANGE|INVALID_TIMEOUT|INVALID_JSON/);
    }
  });
});

describe("what is wrong at run time fails that node, with its code", () => {
  const rows: readonly [row: string, code: string, definition: Node, input?: Json][] = [
    ["B38 a path that is not there", "TEMPLATE_UNRESOLVED", said("{{ a.nothing.there }}")],
    ["B38 a condition on it", "CONDITION_ERROR", asked("a.nothing > 1.0")],
    ["B38 a condition that is no yes or no", "CONDITION_ERROR", asked("input.text"), { text: "yes" }],
    [
      "a map over something that is no list",
      "MAP_ITEMS_INVALID",
      nodes({ id: "m", handler: "map", config: { items: "{{ input.text }}", handler: "step" } }),
      { text: "x" },
    ],
    [
      "B37 more than a node may be given",
      "RESOLVED_INPUT_TOO_LARGE",
      one({ config: { x: Array(100).fill("{{ input.big }}") } }),
      { big: "x".repeat(60_000) },
    ],
    [
      "B39 an expression that takes too long",
      "EXPRESSION_BUDGET_EXCEEDED",
      one({ condition: "input.list.all(x, input.list.all(y, true))" }),
      { list: Array(200).fill(1) as number[] },
    ],
    [
      "a child that nobody has stored",
      "CHILD_FAILED",
      nodes({ id: "w", handler: "workflow", config: { name: "nobody" } }),
    ],
  ];

  test.each(rows)("%s: %s", async (_, code, definition, input) => {
    const named = { ...definition, name: `run-${code.toLowerCase()}-${Math.abs(_.length)}` };
    const id = await api.run(named, input);
    const ended = await api.ended(id);
    expect(ended.status).toBe("FAILED");
    expect(ended.error).toMatchObject({ code, retryable: false });
  });

  test("B36 an output that looks like a template is passed on as it is", async () => {
    const text = "{{ secrets.TOKEN }} {{ input.x }}";
    const id = await api.run(
      {
        ...said("{{ a.text }}"),
        name: "literal",
        nodes: [
          step("a", { config: { text: "{{ input.text }}" } }),
          step("b", { dependencies: ["a"], config: { got: "{{ a.text }}", mixed: "<{{ a.text }}>" } }),
        ],
      },
      { text },
    );
    expect((await api.ended(id)).nodes.b.output).toEqual({ got: text, mixed: `<${text}>` });
  });
});

describe("operations that cannot be", () => {
  test("B42 to B47, each with its status and code", async () => {
    const good = { name: "fine", input_schema: { type: "object", required: ["n"] }, nodes: [step("a")] };
    const start = (body: object) => api.post("/v1/workflow?start=true", body);
    expect(await start({ definition: good, input_params: {} })).toMatchObject({
      status: 422,
      body: { code: "INPUT_INVALID" },
    });
    expect(await api.post("/v1/workflows/nobody/executions", {})).toMatchObject({
      status: 404,
      body: { code: "NOT_FOUND" },
    });
    const { body } = await start({ definition: good, input_params: { n: 1 } });
    const id = body.execution_id as string;
    await api.ended(id);
    for (const [path, status, code] of [
      [`/v1/executions/${id}/cancel`, 409, "ALREADY_TERMINAL"],
      [`/v1/executions/${id}/pause`, 409, "ALREADY_TERMINAL"],
      [`/v1/executions/${id}/resume`, 409, "NOT_PAUSED"],
      [`/v1/executions/${id}/retry`, 409, "NOT_RETRYABLE"],
      [`/v1/workflow/trigger/${id}`, 409, "ALREADY_TERMINAL"],
      ["/v1/executions/nobody/cancel", 404, "NOT_FOUND"],
      ["/v1/dlq/nobody/retry", 404, "NOT_FOUND"],
    ] as const) {
      const answer = await api.post(path, {});
      expect([path, answer.status, answer.body.code]).toEqual([path, status, code]);
    }
    const review = await api.post("/v1/reviews/nobody", { decision: "approve" });
    expect([review.status, review.body.code]).toEqual([404, "NOT_FOUND"]);
    const forged = await api.post("/v1/tasks/complete", { token: "forged", output: 1 });
    expect([forged.status, forged.body.code]).toEqual([403, "TASK_TOKEN_INVALID"]);
    const beat = await api.post("/v1/tasks/heartbeat", { worker_id: "w", tokens: ["forged"] });
    expect([beat.status, beat.body]).toEqual([200, { cancelled: ["forged"] }]);
  });
});
