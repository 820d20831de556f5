import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ handlers: { step: ({ config }) => config }, known: ["never"] });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

const diamond = {
  name: "diamond",
  nodes: [
    { id: "a", handler: "step", config: { value: 1 } },
    { id: "b", handler: "step", dependencies: ["a"], config: { from: "{{ a.value }}" } },
    { id: "c", handler: "step", dependencies: ["a"], config: { from: "{{ a.value }}" } },
    { id: "d", handler: "step", dependencies: ["b", "c"], config: { sum: "{{ b.from + c.from }}" } },
  ],
};
const greeting = {
  name: "greeting",
  input_schema: { type: "object", required: ["who"], properties: { who: { type: "string" } } },
  nodes: [{ id: "hello", handler: "step", config: { text: "Hello {{ input.who }}" } }],
};

describe("submit and trigger", () => {
  test("a submit stores and accepts, and runs nothing; the trigger runs it", async () => {
    const submitted = await api.post("/v1/workflow", diamond);
    expect(submitted).toMatchObject({
      status: 201,
      body: { name: "diamond", version: 1, status: "PENDING", workflow_definition_id: expect.any(String) },
    });
    const { execution_id: id, workflow_definition_id: definition } = submitted.body;
    expect((await api.get(`/v1/executions/${id}`)).body).toMatchObject({
      status: "PENDING",
      nodes: { a: { attempt: 0 } },
    });
    expect(await api.post(`/v1/workflow/trigger/${id}`)).toMatchObject({
      status: 202,
      body: { execution_id: id, status: "RUNNING" },
    });
    expect(await api.ended(id)).toMatchObject({
      status: "COMPLETED",
      version: 1,
      workflow_definition_id: definition,
      generation: 1,
      output: { d: { sum: 2 } },
      nodes: { a: { status: "COMPLETED", attempt: 1, deliveries: 1, output: { value: 1 }, error: null } },
    });
    expect(await api.post(`/v1/workflow/trigger/${id}`)).toMatchObject({
      status: 409,
      body: { code: "ALREADY_TERMINAL", execution: { execution_id: id, status: "COMPLETED", generation: 1 } },
    });
  });

  test("the same content is the same version, other content the next", async () => {
    const again = await api.post("/v1/workflow", { ...diamond, nodes: [...diamond.nodes] });
    expect(again.body.version).toBe(1);
    const other = await api.post("/v1/workflow", { ...diamond, description: "another" });
    expect(other.body).toMatchObject({ name: "diamond", version: 2 });
    expect(other.body.workflow_definition_id).not.toBe(again.body.workflow_definition_id);
  });

  test("a name has up to 128 characters, however many units each of them takes", async () => {
    const name = "😀".repeat(128);
    expect(await api.post("/v1/workflow", { ...diamond, name })).toMatchObject({ status: 201, body: { name } });
    const path = `/v1/workflows/${encodeURIComponent(name)}`;
    expect(await api.get(path)).toMatchObject({ status: 200, body: { name, version: 1 } });
    const started = await api.post(`${path}/executions`, {});
    expect(await api.ended(started.body.execution_id)).toMatchObject({ status: "COMPLETED" });
    expect((await api.post("/v1/workflow", { ...diamond, name: `${name}x` })).body.code).toBe("INVALID_DEFINITION");
  });

  test("an input beside the definition is the execution's, unless the trigger brings its own", async () => {
    const body = { definition: greeting, input_params: { who: "Ada" } };
    const first = await api.post("/v1/workflow", body);
    await api.post(`/v1/workflow/trigger/${first.body.execution_id}`, {});
    expect(await api.ended(first.body.execution_id)).toMatchObject({ output: { hello: { text: "Hello Ada" } } });
    const second = await api.post("/v1/workflow", body);
    await api.post(`/v1/workflow/trigger/${second.body.execution_id}`, { input_params: { who: "Bob" } });
    expect(await api.ended(second.body.execution_id)).toMatchObject({
      input: { who: "Bob" },
      output: { hello: { text: "Hello Bob" } },
    });
  });

  test("an input that does not fit leaves the execution PENDING", async () => {
    const { body } = await api.post("/v1/workflow", greeting);
    const id = body.execution_id as string;
    for (const input of [{}, { input_params: { who: 1 } }]) {
      expect(await api.post(`/v1/workflow/trigger/${id}`, input)).toMatchObject({
        status: 422,
        body: {
          code: "INPUT_INVALID",
          errors: [{ code: "INPUT_INVALID", path: expect.stringContaining("/input_params") }],
        },
      });
    }
    expect((await api.get(`/v1/executions/${id}`)).body.status).toBe("PENDING");
    expect((await api.post(`/v1/workflow/trigger/${id}`, { input_params: { who: "Eve" } })).status).toBe(202);
    expect(await api.ended(id)).toMatchObject({ output: { hello: { text: "Hello Eve" } } });
  });

  test("one step: start=true runs at once", async () => {
    const { status, body } = await api.post("/v1/workflow?start=true", {
      definition: greeting,
      input_params: { who: "you" },
    });
    expect({ status, body }).toMatchObject({ status: 201, body: { status: "RUNNING", name: "greeting" } });
    expect(await api.ended(body.execution_id)).toMatchObject({ status: "COMPLETED" });
    expect(await api.post("/v1/workflow?start=true", diamond)).toMatchObject({
      status: 201,
      body: { status: "RUNNING" },
    });
  });

  test("a bad definition or input is 422, and nothing is stored", async () => {
    const before = (await api.get("/v1/executions?limit=500")).body.items.length as number;
    const cycle = {
      name: "bad-cycle",
      nodes: [
        { id: "a", handler: "step", dependencies: ["b"] },
        { id: "b", handler: "setp", dependencies: ["a"] },
      ],
    };
    expect(await api.post("/v1/workflow", cycle)).toMatchObject({
      status: 422,
      body: {
        code: "INVALID_DEFINITION",
        errors: expect.arrayContaining([
          expect.objectContaining({ code: "CYCLE_DETECTED" }),
          expect.objectContaining({ code: "UNKNOWN_HANDLER", hint: expect.stringContaining("step") }),
        ]),
      },
    });
    const named = { ...greeting, name: "bad-input" };
    expect(await api.post("/v1/workflow?start=true", { definition: named, input_params: {} })).toMatchObject({
      status: 422,
      body: { code: "INPUT_INVALID" },
    });
    expect((await api.get("/v1/executions?limit=500")).body.items.length).toBe(before);
    expect((await api.get("/v1/workflows/bad-input")).status).toBe(404);
    const input_params = { who: "x".repeat(1_048_576) };
    for (const start of [true, false]) {
      expect(await api.post(`/v1/workflow?start=${start}`, { definition: named, input_params })).toMatchObject({
        status: 413,
        body: { code: "PAYLOAD_TOO_LARGE" },
      });
    }
    expect((await api.get("/v1/workflows/bad-input")).status).toBe(404);
  });

  test("null for an input is none, wherever it comes", async () => {
    const definition = { name: "no-input", nodes: [{ id: "a", handler: "output", config: { in: "{{ input }}" } }] };
    const none = { input_params: null };
    const submitted = async (body: object) => (await api.post("/v1/workflow", body)).body.execution_id as string;
    const own = await submitted({ definition, input_params: { kept: 1 } });
    const bare = await submitted({ definition, ...none });
    for (const id of [own, bare]) expect((await api.post(`/v1/workflow/trigger/${id}`, none)).status).toBe(202);
    const start = async (body: object) => (await api.post("/v1/workflows/no-input/executions", body)).body;
    const ids = [bare, (await start(none)).execution_id, (await start({ inputs: [null] })).items[0].execution_id];
    for (const id of ids) expect(await api.ended(id)).toMatchObject({ input: {}, output: { in: {} } });
    expect(await api.ended(own)).toMatchObject({ input: { kept: 1 } });
    const forked = await api.post(`/v1/executions/${own}/fork`, { from: "a", ...none });
    expect(await api.ended(forked.body.execution_id)).toMatchObject({ input: { kept: 1 } });
    await api.post(`/v1/executions/${own}/retry`, { from: "a", ...none });
    expect(await api.ended(own)).toMatchObject({ generation: 2, input: { kept: 1 } });
  });

  test("a handler that nobody serves is refused, unless it is said to be missing", async () => {
    const definition = { name: "later", nodes: [{ id: "a", handler: "later" }] };
    expect((await api.post("/v1/workflow", definition)).status).toBe(422);
    expect(await api.post("/v1/workflow?allow_missing_handlers=true", definition)).toMatchObject({
      status: 201,
      body: { warnings: expect.arrayContaining([expect.objectContaining({ code: "NO_LIVE_WORKER" })]) },
    });
  });

  test("a map is told that nobody serves what it runs for its items", async () => {
    const inner = { items: [], nodes: [{ id: "b", handler: "later-still" }] };
    const definition = {
      name: "later-map",
      nodes: [
        { id: "m", handler: "map", config: { items: [], handler: "later" } },
        { id: "n", handler: "map", config: inner },
      ],
    };
    const { body } = await api.post("/v1/workflow?allow_missing_handlers=true", definition);
    const told = (body.warnings as { code: string; message: string }[]).map(
      ({ code, message }) => `${code} ${message}`,
    );
    expect(told).toEqual([
      expect.stringMatching(/^NO_LIVE_WORKER .*"later"/),
      expect.stringMatching(/^NO_LIVE_WORKER .*"later-still"/),
    ]);
  });

  test("keys that no object of ours may have are refused beside a definition in YAML, and kept in JSON", async () => {
    const definition = { name: "keys", nodes: [{ id: "a", handler: "step" }] };
    const json = `{"definition": ${JSON.stringify(definition)}, "input_params": {"constructor": 1}}`;
    expect((await api.post("/v1/workflow", json, { "content-type": "application/json" })).status).toBe(201);
    // Not the JSON that YAML is a superset of.
    const yaml = `definition: ${JSON.stringify(definition)}\ninput_params: {constructor: 1}\n`;
    expect(await api.post("/v1/workflow", yaml, { "content-type": "application/yaml" })).toMatchObject({
      status: 400,
      body: { code: "FORBIDDEN_KEY", errors: [{ path: "/input_params/constructor" }] },
    });
  });

  test("YAML by content type", async () => {
    const yaml = "name: yaml\nnodes:\n  - { id: a, handler: step, config: { x: 1 } }\n";
    for (const type of ["application/yaml", "text/yaml", "application/x-yaml; charset=utf-8"]) {
      const { status, body } = await api.post("/v1/workflow", yaml, { "content-type": type });
      expect({ status, name: body.name }).toEqual({ status: 201, name: "yaml" });
    }
    expect(await api.post("/v1/workflow", "a: !!js/function x", { "content-type": "application/yaml" })).toMatchObject({
      status: 400,
      body: { code: "YAML_UNSAFE" },
    });
    expect((await api.post("/v1/executions/x/cancel", "a: 1", { "content-type": "application/yaml" })).status).toBe(
      415,
    );
  });

  test("validate reports everything and stores nothing", async () => {
    expect(await api.post("/v1/validate", diamond)).toMatchObject({
      status: 200,
      body: { valid: true, errors: [], warnings: [] },
    });
    expect(await api.post("/v1/validate", { nodes: [] })).toMatchObject({
      status: 200,
      body: { valid: false, errors: [{ code: "EMPTY_WORKFLOW", path: "/nodes", message: expect.any(String) }] },
    });
    expect(await api.post("/v1/validate", "")).toMatchObject({ status: 200, body: { valid: false } });
  });

  test("a large definition is checked beside the event loop", async () => {
    const nodes = Array.from({ length: 8_000 }, (_, i) => ({
      id: `n${i}`,
      handler: "step",
      config: { text: "x".repeat(20) },
      dependencies: i === 0 ? [] : [`n${i - 1}`],
    }));
    const checked = api.post("/v1/validate", { name: "large", nodes });
    expect(await checked).toMatchObject({ status: 200, body: { valid: true } });
    const { status, body } = await api.post("/v1/workflow", { name: "large", nodes });
    expect({ status, version: body.version }).toEqual({ status: 201, version: 1 });
    const read = await api.get(`/v1/executions/${body.execution_id}`);
    expect(read.body).toMatchObject({ nodes_omitted: 8_000, status: "PENDING" });
    expect(read.body.nodes).toBeUndefined();
    const page = await api.get(`/v1/executions/${body.execution_id}/nodes?limit=500`);
    expect(page.body.items.length).toBe(500);
    const next = await api.get(`/v1/executions/${body.execution_id}/nodes?limit=2&cursor=${page.body.next_cursor}`);
    expect(next.body.items.map((node: { node_id: string }) => node.node_id)).toEqual(["n500", "n501"]);
  });
});

describe("starting a stored workflow", () => {
  beforeAll(() => api.post("/v1/workflow", greeting));

  test("runs the newest version, or the one that is asked for", async () => {
    const { status, body } = await api.post("/v1/workflows/greeting/executions", { input_params: { who: "one" } });
    expect({ status, body }).toMatchObject({ status: 201, body: { status: "RUNNING" } });
    expect(await api.ended(body.execution_id)).toMatchObject({ output: { hello: { text: "Hello one" } } });
    const versions = (await api.get("/v1/workflows/diamond/versions")).body.items;
    for (const version of [1, "1", versions.at(-1).workflow_definition_id]) {
      const started = await api.post("/v1/workflows/diamond/executions", { version });
      expect(started.status).toBe(201);
      expect((await api.ended(started.body.execution_id)).version).toBe(1);
    }
    for (const path of ["/v1/workflows/nobody/executions", "/v1/workflows/a%00b/executions"]) {
      expect(await api.post(path)).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    }
    expect((await api.post("/v1/workflows/diamond/executions", { version: 99 })).status).toBe(404);
  });

  test("many at once: one that is too large leaves none accepted", async () => {
    await api.post("/v1/workflows", { ...diamond, name: "too-large-of-many" });
    const inputs = Array.from({ length: 300 }, (_, i) => ({ text: "x".repeat(i === 299 ? 1_048_576 : 1) }));
    for (const headers of [{}, { "idempotency-key": "too-large-of-many" }]) {
      expect(await api.post("/v1/workflows/too-large-of-many/executions", { inputs }, headers)).toMatchObject({
        status: 413,
        body: { code: "PAYLOAD_TOO_LARGE" },
      });
    }
    expect((await api.get("/v1/executions?workflow=too-large-of-many")).body.items).toEqual([]);
  });

  test("many at once: all are checked before any is accepted", async () => {
    const inputs = Array.from({ length: 600 }, (_, i) => ({ who: String(i) }));
    const { status, body } = await api.post("/v1/workflows/greeting/executions", { inputs });
    expect(status).toBe(201);
    const ids = body.items.map((item: { execution_id: string }) => item.execution_id) as string[];
    expect(new Set(ids).size).toBe(600);
    expect(await api.ended(ids[599]!)).toMatchObject({ output: { hello: { text: "Hello 599" } } });
    const bad = [...inputs.slice(0, 3), { who: 3 }];
    expect(await api.post("/v1/workflows/greeting/executions", { inputs: bad })).toMatchObject({
      status: 422,
      body: { code: "INPUT_INVALID", errors: [{ path: "/inputs/3/who" }] },
    });
    expect((await api.post("/v1/workflows/greeting/executions", { inputs: [], input_params: {} })).status).toBe(400);
  });

  test("a name is found as it is written, encoded in the path", async () => {
    const name = "Parallel API Fetcher é";
    await api.post("/v1/workflow", { ...diamond, name });
    expect((await api.get(`/v1/workflows/${encodeURIComponent(name)}`)).body).toMatchObject({ name, version: 1 });
  });
});

describe("Idempotency-Key", () => {
  const key = (name: string): Record<string, string> => ({ "idempotency-key": name });

  test("the same start again is the same execution; another body is refused", async () => {
    const body = { definition: greeting, input_params: { who: "k" } };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => api.post("/v1/workflow?start=true", body, key("one"))),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(answers.map(({ body: { execution_id } }) => execution_id)).size).toBe(1);
    await api.ended(answers[0]!.body.execution_id);
    expect((await api.post("/v1/workflow?start=true", body, key("one"))).body).toEqual(answers[0]!.body);
    const other = { definition: greeting, input_params: { who: "other" } };
    expect(await api.post("/v1/workflow?start=true", other, key("one"))).toMatchObject({
      status: 422,
      body: { code: "IDEMPOTENCY_KEY_REUSED" },
    });
    expect(
      (await api.post("/v1/workflows/greeting/executions", { input_params: { who: "k" } }, key("one"))).status,
    ).toBe(201);
  });

  test("a key that was used for something else makes no version of what it is refused", async () => {
    const other = { name: "never-a-version", nodes: [{ id: "a", handler: "input" }] };
    await api.post("/v1/workflow", diamond, key("versions"));
    expect(await api.post("/v1/workflow", other, key("versions"))).toMatchObject({
      status: 422,
      body: { code: "IDEMPOTENCY_KEY_REUSED" },
    });
    expect((await api.get("/v1/workflows/never-a-version")).status).toBe(404);
    expect((await api.post("/v1/workflow", other, key("versions-2"))).body).toMatchObject({ version: 1 });
  });

  test.each([
    ["waits to be triggered", "/v1/workflow", "raced"],
    ["runs at once", "/v1/workflow?start=true", "raced-at-once"],
  ])(
    "of several definitions with one key only that becomes a version which is taken: what %s",
    async (_, path, name) => {
      const bodies = Array.from({ length: 6 }, (_, i) => ({ ...diamond, name, description: `${i}` }));
      const answers = await Promise.all([...bodies, ...bodies].map((body) => api.post(path, body, key(name))));
      const taken = answers.findIndex(({ status }) => status === 201);
      const expected = bodies.map((_, i) => (i === taken ? 201 : 422));
      expect(answers.map(({ status }) => status)).toEqual([...expected, ...expected]);
      expect(answers[taken + 6]!.body).toEqual(answers[taken]!.body);
      expect((await api.get(`/v1/workflows/${name}`)).body).toMatchObject({
        version: 1,
        definition: { description: `${taken}` },
      });
    },
  );

  test("the submit's first answer comes again after its trigger, and so does the trigger's", async () => {
    const first = await api.post("/v1/workflow", diamond, key("two"));
    const id = first.body.execution_id as string;
    const triggered = await api.post(`/v1/workflow/trigger/${id}`, {}, key("two"));
    await api.ended(id);
    expect((await api.post("/v1/workflow", diamond, key("two"))).body).toEqual(first.body);
    expect(await api.post(`/v1/workflow/trigger/${id}`, {}, key("two"))).toMatchObject({
      status: 202,
      body: triggered.body,
    });
    expect(await api.post(`/v1/workflow/trigger/${id}`, { input_params: { x: 1 } }, key("two"))).toMatchObject({
      status: 422,
      body: { code: "IDEMPOTENCY_KEY_REUSED" },
    });
  });

  test("a repeated bulk start completes the rest, and makes nothing twice", async () => {
    const inputs = [{ who: "a" }, { who: "b" }, { who: "c" }];
    const first = await api.post("/v1/workflows/greeting/executions", { inputs }, key("bulk"));
    const again = await api.post("/v1/workflows/greeting/executions", { inputs }, key("bulk"));
    expect(again.body).toEqual(first.body);
    expect(
      await api.post("/v1/workflows/greeting/executions", { inputs: [...inputs, { who: "d" }] }, key("bulk")),
    ).toMatchObject({ status: 422, body: { code: "IDEMPOTENCY_KEY_REUSED" } });
  });

  test("what a key has begun is not judged anew when its workflow has changed, or is gone", async () => {
    const path = "/v1/workflows/changing/executions";
    const changing = { ...greeting, name: "changing" };
    await api.post("/v1/workflows", changing);
    const [alone, many] = [{ input_params: { who: "x" } }, { inputs: [{ who: "x" }, { who: "y" }] }];
    const first = [await api.post(path, alone, key("alone")), await api.post(path, many, key("many"))];
    expect(first.map(({ status }) => status)).toEqual([201, 201]);
    const again = async (): Promise<unknown[]> => [
      (await api.post(path, alone, key("alone"))).body,
      (await api.post(path, many, key("many"))).body,
    ];
    const stricter = { type: "object", required: ["who", "why"] };
    await api.post("/v1/workflows", { ...changing, input_schema: stricter });
    expect(await again()).toEqual(first.map(({ body }) => body));
    expect(await api.post(path, alone, key("new"))).toMatchObject({ status: 422, body: { code: "INPUT_INVALID" } });
    await api.delete("/v1/workflows/changing");
    expect(await again()).toEqual(first.map(({ body }) => body));
    expect((await api.post(path, alone, key("new"))).status).toBe(404);
  });

  test("a start alone and a start of many are not the same request", async () => {
    const path = "/v1/workflows/greeting/executions";
    const bodies = [{ input_params: { who: "x" } }, { inputs: [{ who: "x" }] }] as const;
    for (const [name, [first, other]] of [
      ["alone-first", bodies],
      ["many-first", [bodies[1], bodies[0]]],
    ] as const) {
      expect((await api.post(path, first, key(name))).status).toBe(201);
      expect(await api.post(path, other, key(name))).toMatchObject({
        status: 422,
        body: { code: "IDEMPOTENCY_KEY_REUSED" },
      });
    }
  });

  test("also where the same again changes nothing, another body is refused", async () => {
    for (const path of ["/v1/workflows", "/v1/validate"]) {
      const first = await api.post(path, diamond, key("again"));
      expect(await api.post(path, diamond, key("again"))).toMatchObject({ status: first.status, body: first.body });
      expect(await api.post(path, greeting, key("again"))).toMatchObject({
        status: 422,
        body: { code: "IDEMPOTENCY_KEY_REUSED" },
      });
    }
    // What was refused has used no key.
    expect((await api.post("/v1/workflows", { name: "broken", nodes: [] }, key("mended"))).status).toBe(422);
    expect((await api.post("/v1/workflows", diamond, key("mended"))).status).toBe(201);
  });

  test("a key that is empty or too long is refused", async () => {
    for (const bad of ["", "x".repeat(256)]) {
      expect(await api.post("/v1/workflow", diamond, key(bad))).toMatchObject({
        status: 400,
        body: { code: "BAD_REQUEST" },
      });
    }
    expect((await api.post("/v1/workflow", diamond, key("x".repeat(255)))).status).toBe(201);
  });
});

test("fields that begin with x- are free, also those of our own making", async () => {
  const free = { "x-millrace-around": 5, "x-millrace-batch": {}, "x-millrace-part": "no", "x-mine": [1] };
  const nodes = [{ id: "a", handler: "step", config: { value: 1 } }];
  const { status, body } = await api.post("/v1/workflow?start=true", { name: "free", ...free, nodes });
  expect([status, (await api.ended(body.execution_id)).status]).toEqual([201, "COMPLETED"]);
  expect((await api.get("/v1/workflows/free")).status).toBe(200);
  expect((await api.get(`/v1/batches/${body.execution_id}`)).status).toBe(404);
  expect((await api.get(`/v1/executions/${body.execution_id}`)).body).not.toHaveProperty("batch_status");
});

test("a workflow is called by the number of a version, also if that is a text", async () => {
  await api.post("/v1/workflows", { name: "called", nodes: [{ id: "a", handler: "step", config: { value: 7 } }] });
  for (const version of [1, "1", "{{ input.version }}"]) {
    const nodes = [{ id: "w", handler: "workflow", config: { name: "called", version } }];
    const definition = { name: "caller", nodes };
    const { body } = await api.post("/v1/workflow?start=true", { definition, input_params: { version: "1" } });
    expect((await api.ended(body.execution_id)).status, String(version)).toBe("COMPLETED");
  }
});

test("a large body is read as closely as a small one", async () => {
  await api.post("/v1/workflows", { name: "any", nodes: [{ id: "a", handler: "step", config: {} }] });
  const pad = "x".repeat(900_000);
  const bulk = (text: string): string => `{"inputs":[${text},{"pad":"${pad}"},{"pad":"${pad}"}]}`;
  const path = "/v1/workflows/any/executions";
  expect((await api.post(path, bulk("{}"))).status).toBe(201);
  expect(await api.post(path, bulk('{"a":1,"a":2}'))).toMatchObject({ status: 400, body: { code: "DUPLICATE_KEY" } });
  expect(await api.post(path, bulk('{"n":1e999}'))).toMatchObject({ status: 400, body: { code: "INVALID_JSON" } });
});

test("an output that the engine nests for ever fails its node, and nobody else", async () => {
  const nodes = Array.from({ length: 400 }, (_, i) => ({
    id: `n${i}`,
    handler: "output",
    ...(i > 0 && { dependencies: [`n${i - 1}`] }),
  }));
  const { body } = await api.post("/v1/workflow?start=true", { name: "nested", nodes });
  const ended = await api.ended(body.execution_id);
  expect(ended.status).toBe("FAILED");
  const { error } = Object.values(ended.nodes as Record<string, { status: string; error: unknown }>).find(
    ({ status }) => status === "FAILED",
  )!;
  expect(error).toMatchObject({ code: "OUTPUT_INVALID", message: expect.stringContaining("256 levels") as string });
});

test("in production nobody may ask for handlers that nobody serves, and is told so by name", async () => {
  const strict = await TestApi.start({ isStrict: true, known: ["step"] });
  const missing = { name: "later", nodes: [{ id: "a", handler: "nobody" }] };
  for (const path of ["/v1/workflow", "/v1/workflows", "/v1/validate"]) {
    const answer = await strict.post(`${path}?allow_missing_handlers=true`, missing);
    expect(answer).toMatchObject({ status: 403, body: { code: "FORBIDDEN" } });
    expect(answer.body.detail).toContain("allow_missing_handlers");
    expect((await strict.post(`${path}?allow_missing_handlers=false`, diamond)).status).toBeLessThan(300);
  }
  await strict.close();
});
