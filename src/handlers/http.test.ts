import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { createManualHost } from "../../test/drivers/manual-host.ts";
import { nodeHost } from "../host/node-host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { HandlerCall } from "../worker/handler.ts";
import { Egress } from "./egress.ts";
import { HttpClient } from "./http-client.ts";
import { httpHandler } from "./http.ts";
import { type Respond, sendJson, serve, testCall, type TestServer } from "./test-server.ts";

const handler = httpHandler(new HttpClient(new Egress({ loopback: true })), nodeHost);

async function call(config: JsonObject, more: Partial<HandlerCall> = {}): Promise<Json> {
  return handler(testCall(config, more));
}

/** What one request to a server that answers so gives, and what the server saw. */
async function ask(respond: Respond, config: JsonObject = {}): Promise<{ output: Json; server: TestServer }> {
  const server = await serve(respond);
  return { output: await call({ url: `${server.url}/path`, ...config }), server };
}

/** A server that speaks bytes, not HTTP. */
async function serveBytes(...answers: readonly string[]): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      for (const answer of answers) socket.write(answer);
      socket.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("a request", () => {
  const ok: Respond = (_, response) => sendJson(response, null);

  test("gives the body as a result too, if that is asked for and it is not large", async () => {
    const saying =
      (text: string): Respond =>
      (_, response) =>
        sendJson(response, { text });
    expect((await ask(saying("x"))).output).not.toHaveProperty("result");
    expect((await ask(saying("x"), { result: true })).output).toMatchObject({
      body: { text: "x" },
      result: { text: "x" },
    });
    expect((await ask(saying("x".repeat(300_000)), { result: true })).output).not.toHaveProperty("result");
  });

  test("closes the limit of its node when the answer says that it was the last for a while", async () => {
    const { url } = await serve((_, response) => sendJson(response, null, 200, { ratelimit: '"default";r=0;t=7' }));
    const asked = testCall({ url });
    expect(await handler(asked)).toMatchObject({ status: 200 });
    expect(asked.closed).toEqual([7_000]);
  });

  test("is a GET without a body, unless it says otherwise", async () => {
    const { server } = await ask(ok);
    expect(server.requests).toMatchObject([{ method: "GET", url: "/path", body: "" }]);
    expect(server.requests[0]!.headers).not.toHaveProperty("content-type");
  });

  test.each<[string, JsonObject, object]>([
    ["an object", { json: { a: [1, "é"] } }, { body: '{"a":[1,"é"]}' }],
    ["null", { json: null }, { body: "null" }],
    ["false", { json: false }, { body: "false" }],
  ])("carries JSON: %s", async (_, config, seen) => {
    const { server } = await ask(ok, { method: "POST", ...config });
    expect(server.requests).toMatchObject([
      { method: "POST", headers: { "content-type": "application/json" }, ...seen },
    ]);
  });

  test("carries text, with the type it was given", async () => {
    const plain = await ask(ok, { method: "PUT", body: "näive" });
    expect(plain.server.requests).toMatchObject([
      { body: "näive", headers: { "content-type": "text/plain; charset=utf-8", "content-length": "6" } },
    ]);
    const form = await ask(ok, { method: "POST", body: "a=1", headers: { "Content-Type": "x/y" } });
    expect(form.server.requests).toMatchObject([{ body: "a=1", headers: { "content-type": "x/y" } }]);
  });

  test("carries a query, added to the one of its URL", async () => {
    const server = await serve(ok);
    const query = { b: "ä &", n: 1, yes: true, list: ["x", 2], none: null };
    await call({ url: `${server.url}/p?a=1`, query });
    expect(server.requests[0]!.url).toBe("/p?a=1&b=%C3%A4+%26&n=1&yes=true&list=x&list=2");
  });

  test("carries headers of any scalar kind", async () => {
    const { server } = await ask(ok, { headers: { "X-Text": "a", "x-number": 7, "x-flag": false } });
    expect(server.requests[0]!.headers).toMatchObject({ "x-text": "a", "x-number": "7", "x-flag": "false" });
  });

  test("carries the idempotency key of its task, unless it brings its own", async () => {
    const { server } = await ask(ok);
    expect(server.requests[0]!.headers["idempotency-key"]).toBe("e1/a/1");
    const own = await ask(ok, { headers: { "Idempotency-Key": "mine" } });
    expect(own.server.requests[0]!.headers["idempotency-key"]).toBe("mine");
  });

  test("carries the credentials of its URL as a header", async () => {
    const server = await serve(ok);
    await call({ url: server.url.replace("//", "//us%40er:p%25w%zz@") });
    expect(server.requests[0]!.headers.authorization).toBe(`Basic ${btoa("us@er:p%w%zz")}`);
  });

  test.each<[string, JsonObject, string]>([
    ["a line break in a value", { "x-a": "1\r\nx-b: 2" }, "INVALID_HEADER_VALUE"],
    ["a bare line feed", { "x-a": "1\n2" }, "INVALID_HEADER_VALUE"],
    ["a NUL", { "x-a": "\0" }, "INVALID_HEADER_VALUE"],
    ["what is not Latin", { "x-a": "日本" }, "INVALID_HEADER_VALUE"],
    ["a line break in a name", { "x-a\r\nx-b": "1" }, "INVALID_HEADER"],
    ["a space in a name", { "x a": "1" }, "INVALID_HEADER"],
    ["no name", { "": "1" }, "INVALID_HEADER"],
    ["another host", { Host: "internal" }, "INVALID_HEADER"],
    ["a length", { "Content-Length": "1" }, "INVALID_HEADER"],
    ["an encoding of the transfer", { "Transfer-Encoding": "chunked" }, "INVALID_HEADER"],
    ["the connection", { Connection: "upgrade" }, "INVALID_HEADER"],
  ])("with %s in its headers is not sent", async (_, headers, code) => {
    const server = await serve(ok);
    await expect(call({ url: server.url, headers })).rejects.toMatchObject({ code, retryable: false });
    expect(server.connections()).toBe(0);
  });

  test.each(["", "no url", "//host/path", "http://", "http://[::1", "http://a b/", "/path"])(
    "to %o cannot be sent, now or later",
    async (url) => {
      await expect(call({ url })).rejects.toMatchObject({ code: "CONFIG_INVALID", retryable: false });
    },
  );
});

describe("an answer", () => {
  const answering =
    (body: string | Buffer, headers: Record<string, string | string[]> = {}, status = 200): Respond =>
    (_, response) =>
      response.writeHead(status, headers).end(body);

  test.each<[string, string | Buffer, string | undefined, Json]>([
    ["JSON", '{"a":[1,null]}', "application/json", { a: [1, null] }],
    ["JSON with a charset", '"é"', "application/json; charset=utf-8", "é"],
    ["JSON of some kind", '{"a":1}', "application/problem+json", { a: 1 }],
    ["JSON with a mark in front", "\ufeff[1]", "application/json", [1]],
    ["JSON that is none", "{oops", "application/json", "{oops"],
    ["no JSON though it said so", "", "application/json", ""],
    ["text", "[1]", "text/plain", "[1]"],
    ["text in Latin-1", Buffer.from("é", "latin1"), "text/html; charset=ISO-8859-1", "é"],
    ["text in a charset nobody knows", "é", "text/html; charset=klingon", "é"],
    ["text that is not UTF-8", Buffer.from([0x61, 0xff]), "text/plain", "a\ufffd"],
    ["an object of no type", ' {"a":1}', undefined, { a: 1 }],
    ["a text of no type", "123", undefined, "123"],
    ["nothing", "", undefined, ""],
  ])("of %s", async (_, body, type, expected) => {
    const { output } = await ask(answering(body, type === undefined ? {} : { "content-type": type }));
    expect(output).toMatchObject({ status: 200, body: expected });
  });

  test.each<[string, (text: string) => Buffer]>([
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["gzip, br", (text) => brotliCompressSync(gzipSync(text))],
    ["unheard-of", (text) => Buffer.from(text)],
  ])("that is packed with %s is unpacked", async (encoding, pack) => {
    const text = JSON.stringify({ text: "abc".repeat(1000) });
    const headers = { "content-type": "application/json", "content-encoding": encoding };
    const { output } = await ask(answering(pack(text), headers));
    expect(output).toMatchObject({ body: { text: "abc".repeat(1000) } });
  });

  test("has its headers in lower case, repeated ones joined, cookies in a list", async () => {
    const { output } = await ask(answering("", { "X-One": "1", "x-two": ["a", "b"], "Set-Cookie": "c=1" }));
    expect(output).toMatchObject({ headers: { "x-one": "1", "x-two": "a, b", "set-cookie": ["c=1"] } });
  });

  test.each<[string, JsonObject, Respond, object]>([
    ["to HEAD", { method: "HEAD" }, answering("", { "content-encoding": "gzip" }), { status: 200, body: "" }],
    ["with 204", {}, answering("", {}, 204), { status: 204, body: "" }],
    ["with 201", {}, answering("{}", { "content-type": "application/json" }, 201), { status: 201, body: {} }],
  ])("%s", async (_, config, respond, expected) => {
    expect((await ask(respond, config)).output).toMatchObject(expected);
  });
});

describe("a status that is not wanted fails the node", () => {
  test.each<[number, boolean]>([
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [408, true],
    [409, false],
    [422, false],
    [425, true],
    [429, true],
    [500, true],
    [502, true],
    [503, true],
    [599, true],
    [304, false],
  ])("%d, and another attempt is worth it: %s", async (status, retryable) => {
    const respond: Respond = (_, response) => response.writeHead(status).end();
    await expect(ask(respond)).rejects.toMatchObject({ code: `HTTP_${status}`, retryable });
  });

  test("and says what was asked, and what the answer was", async () => {
    const respond: Respond = (_, response) => sendJson(response, { error: "no such user" }, 404);
    const error = await ask(respond, { query: { token: "x" } }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ details: { status: 404, body: { error: "no such user" } } });
    expect(String(error)).toMatch(/GET http:\/\/127\.0\.0\.1:\d+\/path was answered with 404/);
    expect(String(error)).not.toContain("token");
  });

  test("and of a long answer only the beginning is kept", async () => {
    const respond: Respond = (_, response) => response.writeHead(500).end("x".repeat(5_000_000));
    await expect(ask(respond)).rejects.toMatchObject({ code: "HTTP_500", details: { body: "x".repeat(4_000) } });
  });

  test("by what it expects: 404 may be wanted, 200 may not", async () => {
    const respond: Respond = ({ url }, response) => sendJson(response, {}, Number(url.slice(1)));
    const { url } = await serve(respond);
    expect(await call({ url: `${url}/404`, expect: [200, 404] })).toMatchObject({ status: 404 });
    expect(await call({ url: `${url}/503`, expect: [503] })).toMatchObject({ status: 503 });
    await expect(call({ url: `${url}/200`, expect: [404] })).rejects.toMatchObject({ code: "HTTP_200" });
  });

  describe("Retry-After says when", () => {
    const host = createManualHost();
    const inTenSeconds = new Date(Math.ceil(host.wallMs() / 1000) * 1000 + 10_000);
    test.each<[string, string, number | undefined]>([
      ["seconds", "7", 7_000],
      ["no seconds", "0", 0],
      ["parts of them", "0.5", 500],
      ["a date", inTenSeconds.toUTCString(), inTenSeconds.getTime() - host.wallMs()],
      ["a date that is past", "Fri, 31 Dec 1999 23:59:59 GMT", 0],
      ["nonsense", "soon", undefined],
      ["less than nothing", "-5", undefined],
      ["nothing", "", undefined],
    ])("%s", async (_, header, retryAfterMs) => {
      const { url } = await serve((_request, response) => response.writeHead(429, { "retry-after": header }).end());
      const manual = httpHandler(new HttpClient(new Egress({ loopback: true })), host);
      const error: unknown = await Promise.resolve(manual(testCall({ url }))).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "HTTP_429", retryable: true });
      expect((error as { retryAfterMs?: number }).retryAfterMs).toBe(retryAfterMs);
    });
  });
});

describe("redirects", () => {
  test.each<[number, string, string, string]>([
    [301, "GET", "GET", ""],
    [302, "POST", "GET", ""],
    [303, "PUT", "GET", ""],
    [303, "HEAD", "HEAD", ""],
    [307, "POST", "POST", "data"],
    [308, "PUT", "PUT", "data"],
    [302, "PUT", "PUT", "data"],
  ])("%d of %s goes on with %s", async (status, method, then, body) => {
    const respond: Respond = ({ url }, response) =>
      url === "/there" ? sendJson(response, "there") : response.writeHead(status, { location: "/there" }).end();
    const carries = method === "GET" || method === "HEAD" ? {} : { body: "data" };
    const { output, server } = await ask(respond, { method, ...carries });
    expect(output).toMatchObject({ status: 200 });
    expect(server.requests[1]).toMatchObject({ method: then, url: "/there", body });
    expect(server.requests[1]!.headers["content-type"]).toBe(body === "" ? undefined : "text/plain; charset=utf-8");
  });

  test("are followed five times, not for ever", async () => {
    const respond: Respond = ({ url }, response) => {
      const left = Number(url.slice(1));
      if (left === 0) sendJson(response, "there");
      else response.writeHead(302, { location: `/${left - 1}` }).end();
    };
    const { url } = await serve(respond);
    expect(await call({ url: `${url}/5` })).toMatchObject({ body: "there" });
    await expect(call({ url: `${url}/6` })).rejects.toMatchObject({ code: "HTTP_302", retryable: false });
  });

  test("to another host take along nothing that may be a credential", async () => {
    const other = await serve((_, response) => sendJson(response, "there"));
    const respond: Respond = (_, response) => response.writeHead(307, { location: `${other.url}/x` }).end();
    const headers = { authorization: "Bearer s", cookie: "c=1", "x-api-key": "k", accept: "a/b" };
    await ask(respond, { method: "POST", json: {}, headers });
    const seen = other.requests[0]!.headers;
    expect(seen).toMatchObject({ accept: "a/b", "content-type": "application/json", "idempotency-key": "e1/a/1" });
    expect([seen.authorization, seen.cookie, seen["x-api-key"]]).toEqual([undefined, undefined, undefined]);
  });

  test("on the same host keep the headers", async () => {
    const respond: Respond = ({ url }, response) =>
      url === "/there" ? sendJson(response, "there") : response.writeHead(302, { location: "/there" }).end();
    const { server } = await ask(respond, { headers: { authorization: "Bearer s" } });
    expect(server.requests[1]!.headers.authorization).toBe("Bearer s");
  });

  test("that are expected are the answer, and those that lead nowhere too", async () => {
    const respond: Respond = (_, response) => response.writeHead(302, { location: "/there" }).end();
    expect((await ask(respond, { expect: [302] })).output).toMatchObject({
      status: 302,
      headers: { location: "/there" },
    });
    await expect(ask((_, response) => response.writeHead(301).end())).rejects.toMatchObject({ code: "HTTP_301" });
  });
});

describe("a hostile answer", () => {
  const TOO_LARGE = { code: "RESPONSE_TOO_LARGE", retryable: false };

  test("without end is cut off", async () => {
    let closed = false;
    const respond: Respond = (_, response) => {
      response.on("close", () => (closed = true));
      const write = (): void => {
        while (!closed && response.write("x".repeat(65_536)));
        if (!closed) response.once("drain", write);
      };
      write();
    };
    await expect(ask(respond)).rejects.toMatchObject(TOO_LARGE);
    while (!closed) await nodeHost.sleep(5);
  });

  test("that unpacks to more than it may is cut off", async () => {
    const bomb = gzipSync(Buffer.alloc(200_000_000));
    expect(bomb.length).toBeLessThan(300_000);
    const respond: Respond = (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
    await expect(ask(respond)).rejects.toMatchObject(TOO_LARGE);
  });

  test("of just as much as is allowed is taken", async () => {
    const { output } = await ask((_, response) => response.end("x".repeat(1_048_576)));
    expect((output as { body: string }).body).toHaveLength(1_048_576);
  });

  test("with headers without end is refused", async () => {
    const url = await serveBytes("HTTP/1.1 200 OK\r\n", `x: ${"y".repeat(100_000)}\r\n\r\n`);
    await expect(call({ url })).rejects.toMatchObject(TOO_LARGE);
  });

  test.each<[string, readonly string[]]>([
    ["that is not HTTP", ["SSH-2.0-OpenSSH_9.6\r\n"]],
    ["that is nothing", []],
    ["that ends too early", ["HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", "half"]],
    ["whose packing is broken", ["HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n", "oops"]],
  ])("%s may be better next time", async (_, answers) => {
    const url = await serveBytes(...answers);
    await expect(call({ url })).rejects.toMatchObject({ code: "CONNECTION_FAILED", retryable: true });
  });

  test("that drips is ended by the abort signal, and its connection closed", async () => {
    const abort = new AbortController();
    let closed = false;
    const server = await serve((_, response) => {
      response.on("close", () => (closed = true));
      response.write("x");
      setTimeout(() => abort.abort(), 20);
    });
    await expect(call({ url: server.url }, { signal: abort.signal })).rejects.toMatchObject({ name: "AbortError" });
    while (!closed) await nodeHost.sleep(5);
  });
});

test("nobody there may be somebody there next time", async () => {
  const gone = createServer().listen(0, "127.0.0.1");
  await once(gone, "listening");
  const { port: free } = gone.address() as AddressInfo;
  gone.close();
  const error = {
    code: "CONNECTION_FAILED",
    retryable: true,
    message: expect.stringContaining("ECONNREFUSED") as string,
  };
  await expect(call({ url: `http://127.0.0.1:${free}/` })).rejects.toMatchObject(error);
});

test("a call that is aborted before it begins reaches nobody", async () => {
  const server = await serve((_, response) => sendJson(response, null));
  await expect(call({ url: server.url }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
    name: "AbortError",
  });
  expect(server.connections()).toBe(0);
});
