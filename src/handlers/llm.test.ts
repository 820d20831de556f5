import { describe, expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { builtinHandlers } from "./builtins.ts";
import { type Respond, sendJson, serve, testCall, type TestCall, type TestServer } from "./test-server.ts";

const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** A server that speaks OpenAI's format, and says this. */
function saying(...answers: readonly (string | JsonObject)[]): Respond {
  let turn = 0;
  return (_, response) => {
    const answer = answers[Math.min(turn++, answers.length - 1)]!;
    const message = typeof answer === "string" ? { role: "assistant", content: answer } : answer;
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    sendJson(response, { id: "c", object: "chat.completion", model: "model-2026", choices, usage: USAGE });
  };
}

interface Asked {
  readonly output: Json;
  readonly call: TestCall;
  readonly server: TestServer;
  readonly bodies: readonly JsonObject[];
}

async function ask(respond: Respond, config: JsonObject, env: Record<string, string> = {}): Promise<Asked> {
  const server = await serve(respond);
  // No loopback: the host of OPENAI_BASE_URL is allowed by itself.
  const variables = { OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: "sk-test-0123", ...env };
  const { handlers } = builtinHandlers({ host: nodeHost, env: variables });
  const call = testCall(config);
  const output = await handlers.get("llm")!(call);
  return { output, call, server, bodies: server.requests.map(({ body }) => JSON.parse(body) as JsonObject) };
}

describe("a completion", () => {
  test("of a prompt", async () => {
    const { output, server, bodies, call } = await ask(saying("Hello!"), { prompt: "Say hello" });
    expect(output).toEqual({ text: "Hello!", model: "model-2026", finish_reason: "stop", usage: USAGE });
    expect(server.requests).toMatchObject([
      { method: "POST", url: "/v1/chat/completions", headers: { authorization: "Bearer sk-test-0123" } },
    ]);
    expect(bodies).toEqual([{ model: "gpt-4o-mini", messages: [{ role: "user", content: "Say hello" }] }]);
    expect(call.usage).toEqual([USAGE]);
    expect(call.concealed).toContain("sk-test-0123");
  });

  test("may be the last for a while, and says so to the node's limit", async () => {
    const headers = { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "7s" };
    const respond: Respond = (request, response, connection) => {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      saying("Hello!")(request, response, connection);
    };
    expect((await ask(respond, { prompt: "Say hello" })).call.closed).toEqual([7_000]);
    expect((await ask(saying("Hello!"), { prompt: "Say hello" })).call.closed).toEqual([]);
  });

  test("has a price where the settings know one", async () => {
    const env = { MILLRACE_PRICES: "dear=1000/2000,*=0/100" };
    const dear = await ask(saying("Hello!"), { prompt: "Say hello", model: "dear" }, env);
    expect(dear.call.usage).toEqual([{ ...USAGE, usd: 0.025 }]);
    const other = await ask(saying("Hello!"), { prompt: "Say hello" }, env);
    expect(other.call.usage).toEqual([{ ...USAGE, usd: 0.0007 }]);
  });

  test("of messages, with all that a config can say", async () => {
    const messages = [
      { role: "system", content: "Be brief" },
      { role: "user", content: [{ type: "text", text: "Hi" }] },
    ];
    const config = { messages, model: "m", temperature: 0, max_tokens: 5 };
    expect((await ask(saying("x"), { ...config, mock: false })).bodies).toEqual([config]);
  });

  test("by the model that the operator has chosen, where a node names none", async () => {
    const env = { OPENAI_MODEL: "house-model" };
    expect((await ask(saying("x"), { prompt: "p" }, env)).bodies).toMatchObject([{ model: "house-model" }]);
    expect((await ask(saying("x"), { prompt: "p", model: "m" }, env)).bodies).toMatchObject([{ model: "m" }]);
  });

  test.each<[string, JsonObject, string]>([
    ["in parts", { content: [{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }] }, "ab"],
    ["of nothing", { content: null }, ""],
    ["that is a refusal", { content: null, refusal: "I will not" }, "I will not"],
  ])("%s", async (_, message, text) => {
    expect((await ask(saying(message), { prompt: "p" })).output).toMatchObject({ text });
  });

  test("is given as a result too, if that is asked for, and the server hears nothing of it", async () => {
    const { output, bodies } = await ask(saying("Hello!"), { prompt: "p", result: true });
    expect(output).toMatchObject({ text: "Hello!", result: "Hello!" });
    expect(bodies[0]).not.toHaveProperty("result");
  });

  test("by a server that does not count", async () => {
    const respond: Respond = (_, response) => sendJson(response, { choices: [{ message: { content: "x" } }] });
    const { output, call } = await ask(respond, { prompt: "p", model: "m" });
    expect(output).toEqual({ text: "x", model: "m", finish_reason: null, usage: null });
    expect(call.usage).toEqual([]);
  });

  test("by a server without keys of its own", async () => {
    const { server } = await ask(saying("x"), { prompt: "p" }, { OPENAI_API_KEY: "" });
    expect(server.requests[0]!.headers.authorization).toBeUndefined();
  });

  test("is asked for in the words that newer models want", async () => {
    const respond: Respond = ({ body }, response, incoming) => {
      if (!body.includes('"max_tokens"')) return saying("x")({} as never, response, incoming);
      return sendJson(response, { error: { message: "use another", param: "max_tokens" } }, 400);
    };
    const { output, bodies } = await ask(respond, { prompt: "p", max_tokens: 9 });
    expect(output).toMatchObject({ text: "x" });
    expect(bodies[1]).toMatchObject({ max_completion_tokens: 9 });
    expect(bodies[1]).not.toHaveProperty("max_tokens");
  });
});

describe("with output_schema", () => {
  const schema = {
    type: "object",
    properties: { total: { type: "number" }, currency: { enum: ["EUR", "USD"] } },
    required: ["total", "currency"],
    additionalProperties: false,
  };
  const config = { prompt: "Extract", output_schema: schema };
  const good = { total: 12.5, currency: "EUR" };

  test.each<[string, string]>([
    ["plain", JSON.stringify(good)],
    ["with space around it", `\n ${JSON.stringify(good, null, 2)}\n`],
    ["in a code block", `\`\`\`json\n${JSON.stringify(good)}\n\`\`\``],
    ["in a code block without a name", `\`\`\`\n${JSON.stringify(good)}\n\`\`\`\n`],
  ])("the output is the object, %s", async (_, text) => {
    const { output, bodies } = await ask(saying(text), config);
    expect(output).toEqual(good);
    expect(bodies).toHaveLength(1);
    expect(bodies[0]).toMatchObject({
      messages: [{ role: "system" }, { role: "user", content: "Extract" }],
      response_format: { type: "json_schema", json_schema: { schema } },
    });
    expect(JSON.stringify(bodies[0])).toContain(JSON.stringify(JSON.stringify(schema)).slice(1, -1));
  });

  test("the instruction joins a system message that is there", async () => {
    const messages = [
      { role: "system", content: "You are an accountant." },
      { role: "user", content: "Extract" },
    ];
    const { bodies } = await ask(saying(JSON.stringify(good)), { messages, output_schema: schema });
    const sent = bodies[0]!["messages"] as { role: string; content: string }[];
    expect(sent.map(({ role }) => role)).toEqual(["system", "user"]);
    expect(sent[0]!.content).toMatch(/^You are an accountant\.\n\nAnswer with one JSON value/);
  });

  test.each<[string, string, string]>([
    ["is not JSON", "Sure! Here it is", "it is not JSON"],
    ["does not fit", '{"total":"12,50","currency":"EUR"}', '"/total" must be a number, not a string'],
    ["lacks something", '{"total":1}', 'it must have "currency"'],
  ])("an answer that %s is sent back once, with what is wrong", async (_, bad, fault) => {
    const { output, bodies, call } = await ask(saying(bad, JSON.stringify(good)), config);
    expect(output).toEqual(good);
    expect(bodies).toHaveLength(2);
    const sent = bodies[1]!["messages"] as { role: string; content: string }[];
    expect(sent.slice(-2)).toEqual([
      { role: "assistant", content: bad },
      { role: "user", content: expect.stringContaining(fault) as string },
    ]);
    expect(call.usage).toEqual([USAGE, USAGE]);
  });

  test("two of them fail the attempt; another may go better; both were paid for", async () => {
    const server = await serve(saying('{"total":1}'));
    const env = { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "k".repeat(20) };
    const call = testCall(config);
    const answer = Promise.resolve(builtinHandlers({ host: nodeHost, env }).handlers.get("llm")!(call));
    await expect(answer).rejects.toMatchObject({
      code: "LLM_OUTPUT_INVALID",
      retryable: true,
      details: { errors: ['it must have "currency"'], text: '{"total":1}' },
    });
    expect(server.requests).toHaveLength(2);
    expect(call.usage).toEqual([USAGE, USAGE]);
  });

  test("a server that does not know response_format still gets the instruction", async () => {
    const respond: Respond = ({ body }, response, incoming) => {
      if (!body.includes('"response_format"')) return saying(JSON.stringify(good))({} as never, response, incoming);
      return sendJson(response, { error: { message: "unknown", param: "response_format.type" } }, 400);
    };
    expect((await ask(respond, config)).output).toEqual(good);
  });

  test("that is no schema, the config is invalid", async () => {
    const invalid = { prompt: "p", output_schema: { type: "nonsense" } };
    await expect(ask(saying("x"), invalid)).rejects.toMatchObject({ code: "CONFIG_INVALID", retryable: false });
  });
});

describe("a server that refuses", () => {
  const refusing =
    (status: number, body: Json, headers: object = {}): Respond =>
    (_, response) =>
      sendJson(response, body, status, headers);
  const busy = { error: { message: "Rate limit reached", type: "requests", code: "rate_limit_exceeded" } };

  test.each<[number, boolean]>([
    [400, false],
    [401, false],
    [404, false],
    [429, true],
    [500, true],
    [503, true],
    [529, true],
  ])("with %d may be asked again: %s", async (status, retryable) => {
    const error = {
      code: `HTTP_${status}`,
      retryable,
      message: expect.stringContaining("Rate limit reached") as string,
    };
    await expect(ask(refusing(status, busy), { prompt: "p" })).rejects.toMatchObject(error);
  });

  test.each<[object, number | undefined]>([
    [{ "retry-after": "20" }, 20_000],
    [{ "retry-after": "20", "retry-after-ms": "1250" }, 1_250],
    [{}, undefined],
  ])("says when: %o", async (headers, retryAfterMs) => {
    const error: unknown = await ask(refusing(429, busy, headers), { prompt: "p" }).catch((thrown: unknown) => thrown);
    expect((error as { retryAfterMs?: number }).retryAfterMs).toBe(retryAfterMs);
  });

  test.each<[string, Json, object]>([
    ["in the body of a 200", { error: { code: 502, message: "upstream" } }, { code: "HTTP_502", retryable: true }],
    ["for good in a 200", { error: { code: 403, message: "no" } }, { code: "HTTP_403", retryable: false }],
    ["with something else", { hello: 1 }, { code: "LLM_RESPONSE_INVALID", retryable: true }],
    ["with no choice", { choices: [] }, { code: "LLM_RESPONSE_INVALID", retryable: true }],
    ["with text", "<html>", { code: "LLM_RESPONSE_INVALID", retryable: true }],
  ])("%s", async (_, body, error) => {
    await expect(ask(refusing(200, body), { prompt: "p" })).rejects.toMatchObject(error);
  });

  test("for want of a key says which", async () => {
    const message = expect.stringContaining("OPENAI_API_KEY is not set") as string;
    const env = { OPENAI_API_KEY: "" };
    await expect(ask(refusing(401, busy), { prompt: "p" }, env)).rejects.toMatchObject({ code: "HTTP_401", message });
  });
});

test("with nothing configured the same question gets the same answer, which says that it is made up", async () => {
  const { handlers } = builtinHandlers({ host: nodeHost, env: {} });
  const ask = async () => handlers.get("llm")!(testCall({ prompt: "how many?" }));
  expect(await ask()).toEqual(await ask());
  expect(await ask()).toMatchObject({ text: "mock answer to: how many?", model: "mock", finish_reason: "stop" });
});

test.each([
  ["", "prod"],
  ["https://api.openai.com/v1/", "dev"],
])("without a key OpenAI is not even called (base url %o, %s)", async (base, mode) => {
  const env = { OPENAI_BASE_URL: base, MILLRACE_ENV: mode };
  const answer = Promise.resolve(
    builtinHandlers({ host: nodeHost, env }).handlers.get("llm")!(testCall({ prompt: "p" })),
  );
  const message = expect.stringContaining("OPENAI_API_KEY") as string;
  await expect(answer).rejects.toMatchObject({ code: "SECRET_MISSING", retryable: false, message });
});

test("a server of models does not open the rest of its machine to workflows", async () => {
  const model = await serve(saying("x"));
  const other = await serve((_, response) => sendJson(response, "private"));
  const { handlers } = builtinHandlers({ host: nodeHost, env: { OPENAI_BASE_URL: model.url } });
  const http = handlers.get("http")!;
  expect(await http(testCall({ url: model.url }))).toMatchObject({ status: 200 });
  await expect(Promise.resolve(http(testCall({ url: other.url })))).rejects.toMatchObject({ code: "EGRESS_BLOCKED" });
});
