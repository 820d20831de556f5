import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ExecutionSummary } from "../../src/core/execution/test-summary.ts";
import { readDefinition } from "../../src/definition/read.ts";
import { TestWorld } from "../../src/engine/test-engine.ts";
import { builtinHandlers } from "../../src/handlers/builtins.ts";
import { type Respond, sendJson, serve } from "../../src/handlers/test-server.ts";
import type { Json } from "../../src/json/json.ts";

/** The built-in handlers as users meet them: a definition is read, an engine runs it, a worker calls real servers. */

const TOKEN = "s3cr3t-t0ken-0815";

let world: TestWorld;
beforeEach(() => {
  world = new TestWorld();
  world.engine();
});
afterEach(() => world.close());

async function run(
  nodes: Json,
  env: Readonly<Record<string, string>> = {},
  input: Json = {},
): Promise<ExecutionSummary> {
  const definition = JSON.stringify({ name: "test", on_error: "fail_branch", nodes });
  const { workflow, errors } = readDefinition(definition, { format: "json" });
  expect(errors).toEqual([]);
  const { handlers } = builtinHandlers({ host: world.host, env, loopback: true });
  world.worker(Object.fromEntries(handlers), {}, (name) => (name === "TOKEN" ? TOKEN : undefined));
  return world.ended(await world.start(workflow!, input));
}

const once = { max_attempts: 1 };

test("fetch, extract, transform: data flows from a server through a model into the output", async () => {
  const page = await serve(({ headers }, response) =>
    headers.authorization === `Bearer ${TOKEN}`
      ? sendJson(response, { text: "Total: 12.50 EUR" })
      : sendJson(response, {}, 401),
  );
  const model = await serve(({ body }, response) => {
    expect(body).toContain("Total: 12.50 EUR");
    const content = JSON.stringify({ total: 12.5 });
    sendJson(response, { model: "m", choices: [{ message: { content } }], usage: { prompt_tokens: 5 } });
  });
  const output_schema = { type: "object", properties: { total: { type: "number" } }, required: ["total"] };
  const view = await run(
    [
      {
        id: "fetch",
        handler: "http",
        config: { url: "{{ input.url }}", headers: { Authorization: "Bearer {{ secrets.TOKEN }}" } },
      },
      {
        id: "extract",
        handler: "llm",
        dependencies: ["fetch"],
        config: { prompt: "Extract: {{ fetch.body.text }}", output_schema },
      },
      { id: "sum", handler: "transform", dependencies: ["extract"], config: { expression: "extract.total * 2" } },
      {
        id: "all",
        handler: "transform",
        dependencies: ["sum"],
        config: { fields: { twice: "sum", once: "extract.total" } },
      },
    ],
    { OPENAI_BASE_URL: model.url },
    { url: page.url },
  );
  expect(view).toMatchObject({ status: "COMPLETED", output: { all: { twice: 25, once: 12.5 } } });
});

test("a server that sends back what it was sent does not bring a secret into the history", async () => {
  const echo: Respond = ({ headers, url, body }, response) =>
    sendJson(response, {
      headers: JSON.parse(JSON.stringify(headers)) as Json,
      url,
      body,
      basic: btoa(`user:${TOKEN}`),
    });
  const server = await serve(echo);
  const config = {
    url: `${server.url}/{{ secrets.TOKEN }}?key={{ secrets.TOKEN }}`,
    method: "POST",
    headers: { "x-key": "{{ secrets.TOKEN }}" },
    json: { token: "{{ secrets.TOKEN }}" },
  };
  const refused = await serve(({ url }, response) => sendJson(response, { error: `no ${url}` }, 403));
  const nodes = [
    { id: "echo", handler: "http", config },
    { id: "refused", handler: "http", retry: once, config: { ...config, url: `${refused.url}/{{ secrets.TOKEN }}` } },
    { id: "wrong", handler: "http", retry: once, config: { url: "no url: {{ secrets.TOKEN }}" } },
  ];
  const view = await run(nodes);
  expect(server.requests[0]).toMatchObject({ headers: { "x-key": TOKEN }, body: JSON.stringify({ token: TOKEN }) });
  expect(view.nodes).toMatchObject({
    echo: { status: "COMPLETED" },
    refused: { error: { code: "HTTP_403" } },
    wrong: { error: { code: "CONFIG_INVALID", message: expect.stringContaining("no url: ***") as string } },
  });
  expect(JSON.stringify([view, await world.events(view.id)])).not.toMatch(/s3cr3t|t0ken|czNjcjN0/);
});

describe("a config that was fine as a template and is not as a value", () => {
  test("fails its node for good, saying where", async () => {
    const nodes = [
      { id: "give", handler: "transform", config: { value: { url: 7 } } },
      { id: "call", handler: "http", dependencies: ["give"], config: { url: "{{ give.url }}" } },
    ];
    const view = await run(nodes);
    expect(view.nodes["call"]).toMatchObject({
      status: "FAILED",
      attempt: 1,
      error: { code: "CONFIG_INVALID", retryable: false, details: { errors: [{ path: "/url" }] } },
    });
  });

  test("never shows a secret that is in it", async () => {
    const config = { url: "http://127.0.0.1", method: "{{ secrets.TOKEN }}", headers: { a: "{{ secrets.TOKEN }}" } };
    const view = await run([{ id: "call", handler: "http", retry: once, config }]);
    expect(view.nodes["call"]).toMatchObject({ error: { code: "CONFIG_INVALID" } });
    expect(JSON.stringify(view)).not.toContain("s3cr3t");
  });
});

test("a refusal is tried again, when the server says, with the same idempotency key", async () => {
  const keys: unknown[] = [];
  const server = await serve(({ headers }, response) => {
    keys.push(headers["idempotency-key"]);
    if (keys.length < 3) response.writeHead(503, { "retry-after": "0.01" }).end();
    else sendJson(response, "at last");
  });
  const retry = { max_attempts: 3, base_delay_seconds: 0 };
  const view = await run([{ id: "call", handler: "http", retry, config: { url: server.url } }]);
  expect(view).toMatchObject({ status: "COMPLETED", output: { call: { body: "at last" } } });
  expect(keys).toEqual([keys[0], keys[0], keys[0]]);
  expect(keys[0]).toMatch(/call/);
});

test("a server that never answers is left at the timeout of its node", async () => {
  let closed = false;
  const server = await serve((_, response) => response.on("close", () => (closed = true)));
  const nodes = [{ id: "call", handler: "http", retry: once, timeout_seconds: 0.1, config: { url: server.url } }];
  expect((await run(nodes)).nodes["call"]).toMatchObject({ status: "FAILED", error: { code: "TIMEOUT" } });
  while (!closed) await world.host.sleep(5);
});

test("the source documents' services are mocks: no address, no key, and a result to read", async () => {
  const nodes = [
    { node_id: "A", handler: "external_service", config: { service: "user_api" }, dependencies: [] },
    { node_id: "B", handler: "llm_service", config: { prompt: "{{ A.result }}", mock: true }, dependencies: ["A"] },
    { node_id: "C", handler: "data_processor", config: { data: "{{ B.result }}" }, dependencies: ["B"] },
  ];
  const view = await run(nodes);
  expect(view).toMatchObject({ status: "COMPLETED", output: { C: { data: "mock answer to: mock result of A" } } });
});
