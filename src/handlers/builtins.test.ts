import { describe, expect, test } from "vitest";
import { createManualHost, type ManualHost } from "../../test/drivers/manual-host.ts";
import { nodeHost } from "../host/node-host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { type BuiltinOptions, builtinHandlers } from "./builtins.ts";
import { EgressEntryInvalid } from "./egress.ts";
import { sampleOf } from "./sample.ts";
import { sendJson, serve, testCall } from "./test-server.ts";

type More = Partial<BuiltinOptions> & { readonly signal?: AbortSignal };

async function run(handler: string, config: JsonObject, { signal, ...more }: More = {}): Promise<Json> {
  const { handlers } = builtinHandlers({ host: nodeHost, env: {}, ...more });
  return handlers.get(handler)!(testCall(config, signal === undefined ? {} : { signal }));
}

/** What a call gives once this much time has passed, or `undefined` if it is not done by then. */
async function after(host: ManualHost, ms: number, answer: Promise<Json>): Promise<Json | undefined> {
  let output: Json | undefined;
  void answer.then((given) => (output = given));
  await host.advance(ms);
  return output;
}

describe("the second check of a config", () => {
  test.each<[string, string, JsonObject, string, string]>([
    ["a number for a url", "http", { url: 7 }, "/url", '"url" must be a string, not a number'],
    ["null for a url", "http", { url: null }, "/url", '"url" must be a string, not null'],
    ["no url", "http", {}, "", 'it must have "url"'],
    ["a method nobody knows", "http", { url: "http://x", method: "FETCH" }, "/method", '"method" must be one of'],
    ["a status that is none", "http", { url: "http://x", expect: [42] }, "/expect/0", '"0" must be at least 100'],
    ["json and body", "http", { url: "http://x", json: 1, body: "x" }, "", 'it must have only one of "json" or "body"'],
    ["a field nobody knows", "http", { url: "http://x", metod: "GET" }, "/metod", 'it must not have "metod"'],
    ["what looks like a template", "http", { url: ["{{ a }}"] }, "/url", '"url" must be a string, not an array'],
    ["braces for a list", "http", { url: "http://x", expect: "{{ a }}" }, "/expect", '"expect" must be an array'],
    ["an object for a prompt", "llm", { prompt: { a: 1 } }, "/prompt", '"prompt" must be a string, not an object'],
    ["no prompt", "llm", {}, "", 'it must have "prompt" or "messages"'],
    ["too warm", "llm", { prompt: "p", temperature: 3 }, "/temperature", '"temperature" must be at most 2'],
    ["no value", "transform", {}, "", 'it must have "value"'],
  ])("%s", async (_, handler, config, path, message) => {
    await expect(run(handler, config)).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      retryable: false,
      message: expect.stringContaining(`The config of "a" does not fit: ${message}`) as string,
      details: { errors: [{ path, message: expect.stringContaining(message) as string }] },
    });
  });

  test("names every fault, with the field that was meant", async () => {
    await expect(run("http", { url: 1, metod: "GET" })).rejects.toMatchObject({
      details: { errors: [{ path: "/url" }, { path: "/metod", hint: 'Did you mean "method"?' }] },
    });
  });

  test("takes what was resolved as it is: a text with braces in it is a text", async () => {
    const value = "{{ not.a.template }}";
    expect(await run("transform", { value })).toBe(value);
    await expect(run("http", { url: value })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});

describe("transform gives back its value", () => {
  test.each<[string, Json]>([
    ["an object", { a: [1, { b: null }] }],
    ["a text", "text"],
    ["null", null],
    ["false", false],
  ])("%s", async (_, value) => {
    expect(await run("transform", { value })).toEqual(value);
  });
});

describe("a mock", () => {
  test.each<[string, Json]>([
    ["an object", { status: 200, body: "x" }],
    ["a text", "x"],
    ["null", null],
    ["zero", 0],
    ["an empty list", []],
  ])("that is %s is the output, at once, and nobody is called", async (_, mock) => {
    const server = await serve((_request, response) => sendJson(response, "real"));
    expect(await run("http", { url: server.url, mock }, { loopback: true })).toEqual(mock);
    expect(await run("llm", { prompt: "p", mock })).toEqual(mock);
    expect(await run("transform", { value: 1, mock })).toEqual(mock);
    expect(server.connections()).toBe(0);
  });

  test("that is false is none", async () => {
    const server = await serve((_, response) => sendJson(response, "real"));
    expect(await run("http", { url: server.url, mock: false }, { loopback: true })).toMatchObject({ body: "real" });
  });

  test("excuses what is missing, not what is wrong", async () => {
    expect(await run("http", { mock: "x" })).toBe("x");
    expect(await run("llm", { mock: "x" })).toBe("x");
    await expect(run("http", { url: 1, mock: "x" })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });

  test("of http takes one to two seconds, and answers in its shape", async () => {
    const host = createManualHost();
    const answer = run("http", { url: "http://api.example/users", method: "POST", mock: true }, { host });
    expect(await after(host, 1_499, answer)).toBeUndefined();
    expect(await after(host, 1, answer)).toEqual({
      status: 200,
      headers: { "content-type": "application/json" },
      body: { mock: true, method: "POST", url: "http://api.example/users", result: "mock result of a" },
      result: "mock result of a",
    });
  });

  test("of llm takes half a second to a second, and answers in its shape", async () => {
    const host = createManualHost();
    const answer = run("llm", { prompt: "Say hello", mock: true }, { host });
    expect(await after(host, 749, answer)).toBeUndefined();
    expect(await after(host, 1, answer)).toMatchObject({
      text: "mock answer to: Say hello",
      model: "mock",
      finish_reason: "stop",
      usage: { prompt_tokens: 3, completion_tokens: 7, total_tokens: 10 },
    });
  });

  test.each([{}, { output_schema: { type: "object", properties: { total: { type: "number" } } } }])(
    "of llm tells what it would have used, also with %o",
    async (more) => {
      const host = createManualHost();
      const call = testCall({ prompt: "Say hello", mock: true, ...more });
      const answer = builtinHandlers({ host, env: {} }).handlers.get("llm")!(call);
      await after(host, 1_000, Promise.resolve(answer));
      expect(call.usage).toEqual([
        expect.objectContaining({ prompt_tokens: 3, total_tokens: expect.any(Number) as number }),
      ]);
    },
  );

  test("of llm with a schema fits the schema", async () => {
    const host = createManualHost();
    const output_schema = { type: "object", properties: { total: { type: "number" }, ok: { type: "boolean" } } };
    const answer = run("llm", { prompt: "p", output_schema, mock: true }, { host });
    expect(await after(host, 1_000, answer)).toEqual({ total: 0, ok: true });
  });

  test("ends when it is aborted", async () => {
    const abort = new AbortController();
    const answer = run("http", { mock: true }, { host: createManualHost(), signal: abort.signal });
    abort.abort();
    await expect(answer).rejects.toMatchObject({ name: "AbortError" });
  });

  test.each<[string, Partial<BuiltinOptions>]>([
    ["--mock", { mock: true }],
    ["MILLRACE_MOCK=true", { env: { MILLRACE_MOCK: "true" } }],
  ])("%s is for every http and llm, and for nothing else", async (_, more) => {
    const server = await serve((_request, response) => sendJson(response, "real"));
    const quick = { ...nodeHost, sleep: () => Promise.resolve() };
    const options = { host: quick, loopback: true, ...more };
    expect(await run("http", { url: server.url }, options)).toMatchObject({ body: { mock: true } });
    expect(await run("http", { url: server.url, mock: false }, options)).toMatchObject({ body: { mock: true } });
    expect(await run("http", { url: server.url, mock: "mine" }, options)).toBe("mine");
    expect(await run("llm", { prompt: "p" }, options)).toMatchObject({ model: "mock" });
    expect(await run("transform", { value: 1 }, options)).toBe(1);
    expect(server.connections()).toBe(0);
  });

  test.each(["", "false", "0"])("MILLRACE_MOCK=%s is no mock", async (text) => {
    const server = await serve((_, response) => sendJson(response, "real"));
    const options = { loopback: true, env: { MILLRACE_MOCK: text } };
    expect(await run("http", { url: server.url }, options)).toMatchObject({ body: "real" });
  });
});

describe("the variables of the process", () => {
  test("MILLRACE_EGRESS_ALLOW opens what it lists", async () => {
    const server = await serve((_, response) => sendJson(response, "reached"));
    // Its code says it all: where in this package it was found is no news.
    await expect(run("http", { url: server.url })).rejects.toMatchObject({ code: "EGRESS_BLOCKED", stack: undefined });
    for (const list of [`10.0.0.0/8, 127.0.0.1:${server.port}`, "127.0.0.0/8 api.internal", " 127.0.0.1,"]) {
      const env = { MILLRACE_EGRESS_ALLOW: list };
      expect(await run("http", { url: server.url }, { env })).toMatchObject({ body: "reached" });
    }
  });

  test("a list that cannot be understood stops the start, not the first call", () => {
    const env = { MILLRACE_EGRESS_ALLOW: "10.0.0.0/8, http://x" };
    expect(() => builtinHandlers({ host: nodeHost, env })).toThrow(EgressEntryInvalid);
  });

  test.each(["http://localhost:0", "llm://a%20b", "file:///model"])(
    "a base URL that nobody can call, %s, opens nothing",
    async (base) => {
      await builtinHandlers({ host: nodeHost, env: { OPENAI_BASE_URL: base } }).close();
    },
  );
});

describe("a sample of a schema", () => {
  test.each<[string, Json, Json | undefined]>([
    ["anything", true, null],
    ["a text", { type: "string" }, "mock"],
    ["a long text", { type: "string", minLength: 6 }, "mockkk"],
    ["a short text", { type: "string", maxLength: 2 }, "mo"],
    ["a number", { type: "number", minimum: 2.5 }, 2.5],
    ["a whole number", { type: "integer", exclusiveMinimum: 2.5 }, 4],
    ["a number below", { type: "number", maximum: -3 }, -3],
    ["one of some", { enum: ["b", "a"] }, "b"],
    ["the one", { const: { a: 1 } }, { a: 1 }],
    ["what is usual", { type: "string", default: "d" }, "d"],
    ["an example", { type: "string", examples: ["e"] }, "e"],
    ["a list", { type: "array", items: { type: "integer" }, minItems: 2 }, [0, 0]],
    ["one of two types", { type: ["string", "null"] }, "mock"],
    ["a choice", { anyOf: [{ type: "boolean" }, { type: "string" }] }, true],
    ["all of it", { allOf: [{ type: "object" }, { properties: { a: { const: 1 } } }] }, { a: 1 }],
    ["elsewhere", { $ref: "#/$defs/n", $defs: { n: { type: "boolean" } } }, true],
    ["an object", { properties: { a: { type: "object", properties: { b: true } } } }, { a: { b: null } }],
    ["a pattern", { type: "string", pattern: "^[0-9]{3}$" }, undefined],
    ["nothing at all", false, undefined],
    ["no schema", { type: "nonsense" }, undefined],
  ])("%s", (_, schema, sample) => {
    expect(sampleOf(schema)).toEqual(sample);
  });

  test("that contains itself ends", () => {
    const schema = { type: "object", properties: { n: { type: "integer" }, next: { $ref: "#" } }, required: ["n"] };
    expect(sampleOf(schema)).toEqual({ n: 0, next: { n: 0, next: { n: 0 } } });
    expect(sampleOf({ ...schema, required: ["next"] })).toBeUndefined();
  });
});
