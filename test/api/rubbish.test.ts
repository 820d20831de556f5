import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { nodeHost } from "../../src/host/node-host.ts";
import { type Answered, TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ handlers: { step: ({ config }) => config } });
});
afterAll(() => api.close());

const good = { name: "good", nodes: [{ id: "a", handler: "step", config: { x: 1 } }] };

/** Whatever came before: nothing went wrong here, no prototype was touched, and the next good request is served. */
afterEach(async () => {
  expect(api.incidents).toEqual([]);
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  expect(await api.post("/v1/workflow?start=true", good)).toMatchObject({ status: 201 });
});

function isProblem({ status, body, headers }: Answered): void {
  expect(headers.get("content-type")).toBe("application/problem+json");
  expect(body).toMatchObject({
    type: expect.any(String),
    title: expect.any(String),
    status,
    code: expect.stringMatching(/^[A-Z][A-Z_]+$/),
    detail: expect.any(String),
  });
}

async function refused(answer: Promise<Answered>, status: number, code: string): Promise<void> {
  const given = await answer;
  expect({ status: given.status, code: given.body.code }).toEqual({ status, code });
  isProblem(given);
}

const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

describe("JSON that is none", () => {
  test.each([
    ["{", "INVALID_JSON"],
    ["}", "INVALID_JSON"],
    ["nul", "INVALID_JSON"],
    ["{'a':1}", "INVALID_JSON"],
    ['{"a":1,}', "INVALID_JSON"],
    ['{"a":1}{"b":2}', "INVALID_JSON"],
    ['{"a":1} x', "INVALID_JSON"],
    ['{"a":01}', "INVALID_JSON"],
    ['{"a":+1}', "INVALID_JSON"],
    ['{"a":NaN}', "INVALID_JSON"],
    ['{"a":"\n"}', "INVALID_JSON"],
    ['{"a":"\\x"}', "INVALID_JSON"],
    ['\ufeff{"a":1}', "INVALID_JSON"],
    ["// comment\n{}", "INVALID_JSON"],
    ['{"input_params":{"a":1,"a":2}}', "DUPLICATE_KEY"],
    [`{"input_params":${deep(70)}}`, "JSON_TOO_DEEP"],
    [deep(100_000), "JSON_TOO_DEEP"],
    [deep(400_000), "JSON_TOO_DEEP"],
    ['{"a":'.repeat(5_000), "JSON_TOO_DEEP"],
  ])("case %#", async (text, code) => {
    await refused(api.post("/v1/workflow/trigger/x", text), 400, code);
    await refused(api.post("/v1/workflow", text), 400, code);
  });

  test("bytes that are not UTF-8", async () => {
    for (const bytes of [
      [0xff, 0xfe],
      [0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
    ]) {
      await refused(api.post("/v1/executions/x/cancel", Uint8Array.from(bytes)), 400, "INVALID_JSON");
      await refused(api.post("/v1/workflow", Uint8Array.from(bytes)), 400, "INVALID_JSON");
    }
  });

  test("a number that no computer has", async () => {
    await refused(api.post("/v1/workflow/trigger/x", '{"input_params":1e999}'), 400, "INVALID_JSON");
    for (const input of ["1e999", '{"n":[1,-1e999]}', "1e-400"]) {
      const around = `{"definition":{"name":"x","nodes":[{"id":"a","handler":"output"}]},"input_params":${input}}`;
      await refused(api.post("/v1/workflow?start=true", around), 400, "INVALID_JSON");
      await refused(api.post("/v1/validate", around), 400, "INVALID_JSON");
    }
    const { status, body } = await api.post("/v1/workflow", '{"name":"x","nodes":[],"timeout_seconds":1e999}');
    expect({ status, code: body.code }).toEqual({ status: 422, code: "INVALID_DEFINITION" });
    expect(body.errors).toContainEqual(expect.objectContaining({ code: "NUMBER_OUT_OF_RANGE" }));
  });

  test("a body over a megabyte is measured too", async () => {
    const text = `{"inputs":[${deep(70)},"${"x".repeat(1_100_000)}"]}`;
    await refused(api.post("/v1/workflows/good/executions", text), 400, "JSON_TOO_DEEP");
    await refused(
      api.post("/v1/workflows/good/executions", `{"inputs":["${"x".repeat(1_100_000)}"`),
      400,
      "INVALID_JSON",
    );
  });

  test("forbidden keys in a definition", async () => {
    for (const key of ["__proto__", "constructor", "prototype"]) {
      await refused(api.post("/v1/workflow", `{"name":"x","${key}":{"polluted":1},"nodes":[]}`), 400, "FORBIDDEN_KEY");
      await refused(
        api.post("/v1/workflow", `{"definition":{"nodes":[{"id":"a","handler":"step","config":{"${key}":1}}]}}`),
        400,
        "FORBIDDEN_KEY",
      );
    }
    await refused(api.post("/v1/workflow/trigger/x", '{"__proto__":{"polluted":1}}'), 400, "UNKNOWN_FIELD");
    await refused(api.post("/v1/executions/x/retry", '{"constructor":{}}'), 400, "UNKNOWN_FIELD");
  });
});

describe("bodies of another kind", () => {
  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/json; charset=latin1",
    "application/json; charset=utf-16",
    "application/jsonp",
    "json",
    "*/*",
    ";;;",
    "application/yaml",
  ])("%s", async (type) => {
    await refused(api.post("/v1/executions/x/cancel", "{}", { "content-type": type }), 415, "UNSUPPORTED_MEDIA_TYPE");
  });

  test("an encoding", async () => {
    for (const encoding of ["gzip", "deflate", "br", "x"]) {
      await refused(api.post("/v1/workflow", "{}", { "content-encoding": encoding }), 415, "UNSUPPORTED_MEDIA_TYPE");
    }
  });

  test("an empty body is {}, whatever it says it is", async () => {
    for (const type of ["application/json", "text/plain", "application/yaml"]) {
      expect((await api.post("/v1/executions/nobody/cancel", "", { "content-type": type })).status).toBe(404);
    }
    expect((await api.post("/v1/executions/nobody/cancel", "  \n ", {})).status).toBe(404);
    expect((await api.call("POST", "/v1/executions/nobody/cancel", undefined)).status).toBe(404);
    await refused(api.post("/v1/workflow", ""), 422, "INVALID_DEFINITION");
  });
});

describe("fields of the wrong type", () => {
  const WRONG = [
    null,
    0,
    -1,
    1.5,
    true,
    "",
    "x",
    [],
    {},
    [1],
    { a: 1 },
    "x".repeat(100_000),
    "\u0000",
    "\ud800",
    1e308,
  ];
  const FIELDS: Readonly<Record<string, readonly string[]>> = {
    "/v1/workflow/trigger/x": ["input_params"],
    "/v1/workflows/good/executions": ["input_params", "inputs", "version"],
    "/v1/executions/x/retry": ["from", "scope", "config", "input_params"],
    "/v1/executions/x/signal": ["name", "data"],
    "/v1/reviews/x": ["decision", "data", "comment"],
    "/v1/reviews/x/assign": ["assignees"],
    "/v1/dlq/retry": ["filter", "limit", "dry_run"],
    "/v1/tasks/lease": ["worker_id", "handlers", "queues", "max", "wait_ms", "lease_seconds"],
    "/v1/tasks/complete": ["token", "output", "usage", "results"],
    "/v1/tasks/fail": ["token", "error", "results"],
    "/v1/tasks/hand-back": ["token", "results"],
    "/v1/tasks/heartbeat": ["worker_id", "tokens"],
    "/v1/workflow": [
      "name",
      "nodes",
      "on_error",
      "timeout_seconds",
      "retry",
      "input_schema",
      "definition",
      "input_params",
    ],
    "/v1/validate": ["name", "nodes", "labels", "dlq", "priority", "definition"],
  };
  const BASE: Readonly<Record<string, object>> = {
    "/v1/executions/x/signal": { name: "n" },
    "/v1/reviews/x": { decision: "approve" },
    "/v1/reviews/x/assign": { assignees: ["x"] },
    "/v1/dlq/retry": { dry_run: true },
    "/v1/tasks/lease": { worker_id: "w", handlers: ["h"] },
    "/v1/tasks/complete": { token: "t" },
    "/v1/tasks/fail": { token: "t", error: {} },
    "/v1/tasks/hand-back": { token: "t" },
    "/v1/tasks/heartbeat": { worker_id: "w", tokens: [] },
    "/v1/workflow": good,
    "/v1/validate": good,
  };

  test.each(Object.entries(FIELDS))("%s", async (path, fields) => {
    for (const field of fields) {
      for (const value of WRONG) {
        if (field === "wait_ms" && typeof value === "number" && value > 0) continue;
        const answer = await api.post(path, { ...BASE[path], [field]: value });
        expect({ field, value, status: answer.status }).not.toMatchObject({ status: 500 });
        expect(answer.status).toBeLessThan(500);
        if (answer.status >= 400) isProblem(answer);
      }
    }
  });

  test.each(Object.keys(FIELDS))("%s with a field that nobody knows", async (path) => {
    for (const field of [
      "tenant",
      "tenantId",
      "state",
      "attempt",
      "owner",
      "__proto__x",
      "",
      "toString",
      "hasOwnProperty",
    ]) {
      const answer = await api.post(path, { ...BASE[path], [field]: 1 });
      // In a definition it is one of the errors of a 422, or of a report.
      if (path === "/v1/workflow" || path === "/v1/validate") {
        expect(answer.body.errors).toContainEqual(expect.objectContaining({ code: "UNKNOWN_FIELD" }));
      } else expect(answer).toMatchObject({ status: 400, body: { code: "UNKNOWN_FIELD" } });
    }
  });

  test.each(Object.keys(FIELDS))("%s with a body that is no object", async (path) => {
    for (const body of ["null", "1", '"x"', "[]", "true", "[{}]"]) {
      const answer = await api.post(path, body);
      if (path === "/v1/validate") expect(answer).toMatchObject({ status: 200, body: { valid: false } });
      else if (path === "/v1/workflow")
        expect(answer).toMatchObject({ status: 422, body: { code: "INVALID_DEFINITION" } });
      else expect(answer).toMatchObject({ status: 400, body: { code: "INVALID_TYPE" } });
    }
  });
});

describe("sizes", () => {
  const filled = (bytes: number): string => `{"input_params":"${"x".repeat(bytes)}"}`;

  test("a body at its limit is read, one byte more is not", async () => {
    const room = 1_048_576 - filled(0).length;
    await refused(api.post("/v1/workflow/trigger/nobody", filled(room)), 404, "NOT_FOUND");
    await refused(api.post("/v1/workflow/trigger/nobody", filled(room + 1)), 413, "PAYLOAD_TOO_LARGE");
    await refused(api.post("/v1/workflow/trigger/nobody", filled(20_000_000)), 413, "PAYLOAD_TOO_LARGE");
    await refused(api.post("/v1/workflow", `{"name":"${"x".repeat(32 * 1_048_576)}"}`), 413, "PAYLOAD_TOO_LARGE");
    await refused(
      api.post("/v1/workflows/good/executions", `{"inputs":["${"x".repeat(16 * 1_048_576)}"]}`),
      413,
      "PAYLOAD_TOO_LARGE",
    );
  });

  test("one input of many is no larger than one alone", async () => {
    const large = "x".repeat(1_048_577);
    await refused(api.post("/v1/workflows/good/executions", { inputs: [1, large] }), 413, "PAYLOAD_TOO_LARGE");
    await refused(api.post("/v1/workflow", { definition: good, input_params: large }), 413, "PAYLOAD_TOO_LARGE");
    await refused(
      api.post("/v1/workflows/good/executions", { inputs: Array.from({ length: 10_001 }, () => 1) }),
      400,
      "INVALID_TYPE",
    );
  });

  test("a body that never ends is not read to its end", async () => {
    const body = new ReadableStream({
      pull: (controller) => {
        controller.enqueue(new Uint8Array(65_536));
      },
    });
    const answer = await fetch(`${api.url}/v1/executions/x/cancel`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      duplex: "half",
    }).then(
      async (response) => ({ status: response.status, code: ((await response.json()) as { code: string }).code }),
      () => "cut off",
    );
    if (answer !== "cut off") expect(answer).toEqual({ status: 413, code: "PAYLOAD_TOO_LARGE" });
  });
});

describe("paths and methods", () => {
  test.each([
    ["GET", "/", 404],
    ["GET", "/v1", 404],
    ["GET", "/v2/executions", 404],
    ["GET", "//v1//executions", 404],
    ["GET", "/v1/executions/", 404],
    ["GET", "/v1/executions/../workers", 200],
    ["GET", "/v1/executions/%2e%2e/%2e%2e/etc/passwd", 404],
    ["GET", "/v1/executions/..%2f..%2fetc%2fpasswd", 404],
    ["GET", "/v1/executions/a%2fb", 404],
    ["GET", "/v1/executions/%00", 404],
    ["GET", "/v1/executions/%ff", 400],
    ["GET", "/v1/executions/%zz", 400],
    ["GET", `/v1/executions/${"x".repeat(3_000)}`, 404],
    ["GET", "/V1/EXECUTIONS", 404],
    ["GET", "/v1/executions;x=1", 404],
    ["GET", "/v1/workflows/%F0%9F%92%A5", 404],
    ["GET", "/v1/workflows/a%0d%0aSet-Cookie:%20x", 404],
    ["PUT", "/v1/executions", 405],
    ["POST", "/v1/executions", 405],
    ["DELETE", "/v1/executions/x", 405],
    ["PATCH", "/v1/workflow", 405],
    ["GET", "/v1/workflow", 405],
    ["OPTIONS", "/v1/workflow", 405],
    ["PUT", "/v1/reviews/x", 405],
    ["GET", "/v1/tasks/lease", 405],
    ["QUERY", "/v1/executions", 405],
    ["QUERY", "/v1/nobody", 404],
  ])("%s, case %#", async (method, path, status) => {
    const answer = await api.call(method, path, undefined);
    expect(answer.status).toBe(status);
    if (status >= 400) isProblem(answer);
    if (status === 404) expect(answer.body.code).toBe("NOT_FOUND");
    if (status === 405) {
      expect(answer.body.code).toBe("METHOD_NOT_ALLOWED");
      expect(answer.headers.get("allow")).toMatch(/GET|POST|DELETE/);
    }
  });

  test("HEAD is GET without the body, and no route has a second address", async () => {
    const head = await fetch(`${api.url}/v1/executions`, { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    expect((await api.call("PUT", "/v1/workflows", undefined)).headers.get("allow")).toBe("GET, HEAD, POST");
  });

  test("a field that nobody knows is refused where no body is asked for, too", async () => {
    for (const [method, path] of [
      ["POST", "/v1/limits/nobody/trip"],
      ["POST", "/v1/limits/nobody/reset"],
      ["DELETE", "/v1/workflows/nobody"],
      ["DELETE", "/v1/dlq/nobody"],
    ] as const) {
      expect(await api.call(method, path, { force: true })).toMatchObject({
        status: 400,
        body: { code: "UNKNOWN_FIELD", errors: [{ path: "/force" }] },
      });
      expect((await api.call(method, path, {})).status).toBe(404);
    }
  });

  test("queries that repeat, nest or never end", async () => {
    for (const query of [
      "limit[]=1",
      "limit[a]=1",
      "__proto__=1",
      "constructor=1",
      "a=1".repeat(2_000),
      "%zz",
      "limit=%00",
    ]) {
      const answer = await api.get(`/v1/executions?${query}`);
      expect(answer.status).toBe(400);
      isProblem(answer);
    }
  });
});

describe("on the wire", () => {
  /** Sends bytes, and gives what comes back until the server closes or nothing comes any more. */
  function talk(bytes: string, waitMs = 2_000): Promise<string> {
    const { hostname, port } = new URL(api.url);
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname, () => socket.write(bytes));
      let text = "";
      const done = (): void => {
        socket.destroy();
        resolve(text);
      };
      const timer = setTimeout(done, waitMs);
      socket.setEncoding("utf8");
      socket.on("data", (chunk: string) => (text += chunk));
      socket.on("close", () => {
        clearTimeout(timer);
        done();
      });
      socket.on("error", () => {});
    });
  }

  test.each([
    ["no HTTP at all", "hello\r\n\r\n", 400],
    ["an unknown method", "FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400],
    ["another version", "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 400],
    [
      "two lengths",
      "POST /v1/workflow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      400,
    ],
    [
      "a length and chunks",
      "POST /v1/workflow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
    ],
    ["a length that is none", "POST /v1/workflow HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400],
    [
      "an unknown transfer encoding",
      "POST /v1/workflow HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, x\r\n\r\n",
      400,
    ],
    [
      "a bad chunk",
      "POST /v1/workflow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      400,
    ],
    [
      "a body that is packed on the way",
      "POST /v1/validate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
      415,
    ],
    ["a folded header", "GET /v1/executions HTTP/1.1\r\nHost: localhost\r\nX-A: a\r\n b\r\n\r\n", 400],
    ["a space before the colon", "GET /v1/executions HTTP/1.1\r\nHost : localhost\r\n\r\n", 400],
    ["a NUL in a header", "GET /v1/executions HTTP/1.1\r\nHost: localhost\r\nX-A: a\u0000b\r\n\r\n", 400],
    ["headers without end", `GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ${"a".repeat(20_000)}\r\n\r\n`, 431],
    ["an address without end", `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 431],
    [
      "an expectation",
      "POST /v1/workflow HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\nContent-Length: 2\r\n\r\n{}",
      417,
    ],
    ["CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405],
    [
      "an upgrade",
      "GET /v1/executions HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
      200,
    ],
    [
      "an absolute address elsewhere",
      "GET http://evil.example/v1/executions HTTP/1.1\r\nHost: evil.example\r\n\r\n",
      403,
    ],
    ["two hosts", "GET /v1/executions HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 200],
  ])("%s", async (_, bytes, status) => {
    const text = await talk(bytes, 1_000);
    const answered = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
    expect(answered).toBe(status);
    if (status >= 400) {
      expect(text.toLowerCase()).toContain("content-type: application/problem+json");
      expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4))).toMatchObject({ status, code: expect.any(String) });
    }
  });

  test("a second request is not hidden in the body of the first", async () => {
    const hidden = "GET /v1/workers HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const text = await talk(
      `POST /v1/executions/x/cancel HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
      500,
    );
    expect(text.match(/HTTP\/1\.1 /g)!.length).toBe(1);
    expect(text).toContain("HTTP/1.1 400");
  });

  test("many that say nothing keep nobody else waiting", async () => {
    const { hostname, port } = new URL(api.url);
    const sockets = Array.from({ length: 200 }, () => {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      socket.write(
        "POST /v1/workflow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
      );
      return socket;
    });
    await nodeHost.sleep(50);
    const startedAtMs = performance.now();
    expect((await api.get("/livez")).status).toBe(200);
    // They are cut off after 30 s.
    expect(performance.now() - startedAtMs).toBeLessThan(15_000);
    for (const socket of sockets) socket.destroy();
  });
});

test("names and ids made to break out of a query or a key are only names", async () => {
  const names = [
    "' or 1=1 --",
    '"; drop table x; --',
    "a:b",
    "a*",
    "{a}",
    "a\\",
    "$(x)",
    "%s",
    "\u202e",
    "İ",
    "key:*",
    "\u2028",
  ];
  for (const name of names) {
    const path = encodeURIComponent(name);
    for (const answer of [
      await api.get(`/v1/workflows/${path}`),
      await api.get(`/v1/executions/${path}`),
      await api.get(`/v1/dlq/${path}`),
      await api.get(`/v1/reviews/${path}`),
      await api.delete(`/v1/workflows/${path}`),
      await api.delete(`/v1/dlq/${path}`),
      await api.post(`/v1/dlq/${path}/retry`),
      await api.get(`/v1/workflows/good/versions/${path}`),
    ]) {
      expect(answer).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    }
    expect((await api.get(`/v1/executions?workflow=${path}`)).body).toEqual({ items: [], next_cursor: null });
    expect((await api.get(`/v1/dlq?queue=${path}`)).body.items).toEqual([]);
  }
});
