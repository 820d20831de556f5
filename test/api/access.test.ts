import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openMemory } from "../../src/drivers/memory/memory-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { addKey, parseKeys } from "../../src/api/http/keys.ts";
import { ROLES, type Role } from "../../src/api/http/permissions.ts";
import { TestApi } from "../support/api.ts";

const KEYS = ROLES.map((role) => `${role}:${role}-key`).join(",");
const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

/** A request with headers that `fetch` does not let anybody set. */
function raw(
  url: string,
  headers: Readonly<Record<string, string>>,
  method = "GET",
): Promise<{ status: number; body: { code?: string }; type: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, setHost: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        const type = response.headers["content-type"] ?? "";
        resolve({
          status: response.statusCode!,
          body: (text === "" ? {} : JSON.parse(text)) as { code?: string },
          type,
        });
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}

describe("with keys", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await TestApi.start({ keys: KEYS, known: ["step"] });
  });
  afterAll(async () => {
    expect(api.incidents).toEqual([]);
    await api.close();
  });

  /** Who may call what, route by route: a new route without a row fails. */
  const MATRIX: Readonly<Record<string, readonly Role[]>> = {
    "POST /v1/workflow": ["author", "admin"],
    "POST /v1/workflow/trigger/{execution_id}": ["operator", "admin"],
    "POST /v1/validate": ["viewer", "author", "operator", "admin"],
    "POST /v1/workflows/{name}/executions": ["operator", "admin"],
    "POST /v1/batches": ["operator", "admin"],
    "GET /v1/batches": ["viewer", "operator", "admin"],
    "GET /v1/batches/{id}": ["viewer", "operator", "admin"],
    "GET /v1/batches/{id}/items": ["viewer", "operator", "admin"],
    "POST /v1/batches/{id}/cancel": ["operator", "admin"],
    "POST /v1/batches/{id}/retry": ["operator", "admin"],
    "GET /v1/executions": ["viewer", "operator", "admin"],
    "GET /v1/executions/{id}": ["viewer", "operator", "admin"],
    "GET /v1/executions/{id}/nodes": ["viewer", "operator", "admin"],
    "GET /v1/executions/{id}/nodes/{node}": ["viewer", "operator", "admin"],
    "GET /v1/executions/{id}/input": ["viewer", "operator", "admin"],
    "GET /v1/executions/{id}/definition": ["viewer", "operator", "admin"],
    "GET /v1/executions/{id}/output": ["viewer", "operator", "admin"],
    "GET /v1/executions/{id}/events": ["viewer", "operator", "admin"],
    "GET /v1/executions/{id}/explain": ["viewer", "operator", "admin"],
    "POST /v1/executions/{id}/cancel": ["operator", "admin"],
    "POST /v1/executions/{id}/pause": ["operator", "admin"],
    "POST /v1/executions/{id}/resume": ["operator", "admin"],
    "POST /v1/executions/{id}/retry": ["operator", "admin"],
    "POST /v1/executions/{id}/fork": ["operator", "admin"],
    "POST /v1/executions/{id}/release": ["operator", "admin"],
    "POST /v1/executions/{id}/signal": ["operator", "admin"],
    "POST /v1/workflows": ["author", "admin"],
    "GET /v1/workflows": ["viewer", "author", "operator", "admin"],
    "GET /v1/workflows/{name}": ["viewer", "author", "operator", "admin"],
    "DELETE /v1/workflows/{name}": ["author", "admin"],
    "GET /v1/workflows/{name}/versions": ["viewer", "author", "operator", "admin"],
    "GET /v1/workflows/{name}/versions/{version}": ["viewer", "author", "operator", "admin"],
    "GET /v1/dlq": ["viewer", "operator", "admin"],
    "POST /v1/dlq/retry": ["operator", "admin"],
    "GET /v1/dlq/{id}": ["viewer", "operator", "admin"],
    "DELETE /v1/dlq/{id}": ["operator", "admin"],
    "POST /v1/dlq/{id}/retry": ["operator", "admin"],
    "GET /v1/reviews": ["viewer", "operator", "reviewer", "admin"],
    "GET /v1/reviews/examples": ["viewer", "operator", "reviewer", "admin"],
    "GET /v1/reviews/{id}": ["viewer", "operator", "reviewer", "admin"],
    "POST /v1/reviews/{id}/assign": ["reviewer", "admin"],
    "POST /v1/reviews/{id}": ["reviewer", "admin"],
    "POST /v1/tasks/lease": ["worker", "admin"],
    "POST /v1/tasks/complete": ["worker", "admin"],
    "POST /v1/tasks/fail": ["worker", "admin"],
    "POST /v1/tasks/hand-back": ["worker", "admin"],
    "POST /v1/tasks/heartbeat": ["worker", "admin"],
    "GET /v1/workers": ["viewer", "operator", "admin"],
    "GET /v1/queues": ["viewer", "operator", "admin"],
    "GET /v1/limits": ["viewer", "operator", "admin"],
    "POST /v1/limits/{name}/trip": ["operator", "admin"],
    "POST /v1/limits/{name}/reset": ["operator", "admin"],
    "POST /v1/limits/{name}/override": ["operator", "admin"],
    "POST /v1/limits/{name}/raise": ["operator", "admin"],
  };
  const OPEN = ["/health/live", "/health/ready", "/livez", "/readyz", "/healthz", "/metrics", "/openapi.json", "/docs"];

  test("every route is in the matrix", () => {
    const rows = api.server.routes
      .filter(({ path }) => !OPEN.includes(path))
      .map(({ method, path }) => `${method} ${path}`);
    expect(rows.sort()).toEqual(Object.keys(MATRIX).sort());
  });

  test.each(Object.entries(MATRIX))("%s is for %s", async (row, allowed) => {
    const [method, pattern] = row.split(" ") as [string, string];
    const path = pattern.replaceAll(/\{\w+\}/g, "x");
    for (const role of ROLES) {
      const { status, body } = await api.call(method, path, method === "POST" ? {} : undefined, bearer(`${role}-key`));
      if (allowed.includes(role)) expect([401, 403, 500]).not.toContain(status);
      else expect({ role, status, code: body.code }).toEqual({ role, status: 403, code: "FORBIDDEN" });
    }
    const nobody = await api.call(method, path, method === "POST" ? {} : undefined);
    expect(nobody).toMatchObject({ status: 401, body: { code: "UNAUTHENTICATED" } });
    expect(nobody.headers.get("www-authenticate")).toBe("Bearer");
  });

  test("what is open needs no key", async () => {
    for (const path of OPEN) expect({ path, status: (await api.get(path)).status }).toEqual({ path, status: 200 });
  });

  test("whatever is wrong with a key, the answer is the same", async () => {
    const bad = [
      "",
      "Bearer",
      "Bearer ",
      "Bearer x",
      "Basic YTpi",
      "admin-key",
      `Bearer ${"x".repeat(2_000)}`,
      "bearer  a b",
    ];
    const answers = await Promise.all(bad.map((authorization) => api.get("/v1/executions", { authorization })));
    expect(new Set(answers.map(({ status, body }) => JSON.stringify({ status, body }))).size).toBe(1);
    expect(answers[0]!.status).toBe(401);
    expect((await api.get("/v1/executions", { authorization: "bearer admin-key" })).status).toBe(200);
    for (const headers of [bearer("admin-key"), {}]) {
      expect(await api.get("/v1/executions?api_key=admin-key", headers)).toMatchObject({
        status: 400,
        body: { code: "CREDENTIAL_IN_URL" },
      });
    }
  });

  test("to start at once is more than to submit", async () => {
    const definition = { name: "x", nodes: [{ id: "a", handler: "step" }] };
    expect((await api.post("/v1/workflow", definition, bearer("author-key"))).status).toBe(201);
    expect((await api.post("/v1/workflow?start=true", definition, bearer("author-key"))).status).toBe(403);
    expect((await api.post("/v1/workflow?start=true", definition, bearer("admin-key"))).status).toBe(201);
  });

  test("to replay a dead letter with another config is for an admin", async () => {
    const replay = async (role: Role, body: object) =>
      (await api.post("/v1/dlq/nobody/retry", body, bearer(`${role}-key`))).status;
    expect(await replay("operator", {})).toBe(404);
    expect(await replay("operator", { config: {} })).toBe(403);
    expect(await replay("admin", { config: {} })).toBe(404);
  });

  test("who did it is written down, without the key", async () => {
    const definition = { name: "by", nodes: [{ id: "a", handler: "step" }] };
    const trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    const { body, headers } = await api.post("/v1/workflow", definition, {
      ...bearer("admin-key"),
      traceparent: trace,
    });
    expect(headers.get("traceparent")).toBe(trace);
    const events = await api.get(`/v1/executions/${body.execution_id}/events`, bearer("viewer-key"));
    expect(events.body.items[0].data).toMatchObject({ by: expect.stringMatching(/^key-[0-9a-f]{8}$/), trace });
    expect(JSON.stringify(events.body)).not.toContain("admin-key");
  });

  test("guessing is slowed down", async () => {
    const guesses = [];
    for (let i = 0; i < 60; i++) guesses.push((await api.get("/v1/executions", bearer(`guess-${i}`))).status);
    expect(new Set(guesses)).toEqual(new Set([401, 429]));
    expect((await api.get("/v1/executions", bearer("admin-key"))).status).toBe(200);
  });

  test("any name of the host will do, as the key is what counts", async () => {
    expect((await raw(`${api.url}/v1/executions`, { host: "millrace.example", ...bearer("viewer-key") })).status).toBe(
      200,
    );
  });
});

describe("without keys, on this machine", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await TestApi.start();
  });
  afterAll(() => api.close());

  test.each([
    ["localhost:4747", 200],
    ["LOCALHOST", 200],
    ["app.localhost:1", 200],
    ["127.0.0.1:80", 200],
    ["127.8.9.10", 200],
    ["[::1]:4747", 200],
    ["millrace.example", 403],
    ["127.0.0.1.evil.example", 403],
    ["localhost.evil.example:4747", 403],
    ["evil.example@localhost", 403],
    ["localhost:4747/evil.example", 403],
    ["192.168.1.4", 403],
    ["0.0.0.0", 403],
    ["[::2]", 403],
    ["", 403],
  ])("Host %s gets %i", async (host, status) => {
    for (const path of ["/v1/executions", "/metrics", "/v1/workers"]) {
      const answer = await raw(api.url + (path === "/metrics" && status === 200 ? "/v1/queues" : path), { host });
      expect(answer.status).toBe(status);
      if (status === 403)
        expect(answer).toMatchObject({ body: { code: "FORBIDDEN" }, type: "application/problem+json" });
    }
  });

  test("a request without a Host is refused too", async () => {
    expect(await raw(`${api.url}/v1/executions`, {})).toMatchObject({ status: 403, body: { code: "FORBIDDEN" } });
  });

  test("pages of another origin cannot call it, and get no CORS headers", async () => {
    const host = new URL(api.url).host;
    for (const origin of ["https://evil.example", "null", "http://localhost:1", `https://${host}.evil.example`]) {
      expect((await raw(`${api.url}/v1/executions/x/cancel`, { host, origin }, "POST")).status).toBe(403);
    }
    expect((await raw(`${api.url}/v1/executions`, { host, origin: `http://${host}` })).status).toBe(200);
    const preflight = await fetch(`${api.url}/v1/executions`, {
      method: "OPTIONS",
      headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
    });
    expect(preflight.status).toBe(405);
    expect([...preflight.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

describe("beyond this machine", () => {
  test("a key is needed to listen at all", async () => {
    await expect(TestApi.start({ host: "0.0.0.0" })).rejects.toThrow(/API key/);
  });

  test("requests that make work are limited, and no others", async () => {
    const api = await TestApi.start({ host: "0.0.0.0", keys: "admin:k,operator+author:other", known: ["step"] });
    try {
      const definition = { name: "limited", nodes: [{ id: "a", handler: "step" }] };
      const statuses: number[] = [];
      for (let i = 0; i < 62; i++) statuses.push((await api.post("/v1/workflow", definition, bearer("k"))).status);
      expect(statuses.slice(0, 60)).toEqual(Array.from({ length: 60 }, () => 201));
      const limited = await api.post("/v1/workflow", definition, bearer("k"));
      expect(limited).toMatchObject({ status: 429, body: { code: "RATE_LIMITED" } });
      expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(Number(limited.headers.get("retry-after"))).toBeLessThanOrEqual(60);
      expect((await api.post("/v1/workflow/trigger/x", {}, bearer("k"))).status).toBe(429);
      const page = (await api.get("/v1/limits?limit=1", bearer("k"))).body;
      expect(page.items).toMatchObject([{ name: "ingress", limit: 60 }]);
      expect((await api.get(`/v1/limits?limit=1&cursor=${page.next_cursor}`, bearer("k"))).body).toEqual({
        items: [],
        next_cursor: null,
      });
      expect((await api.post("/v1/executions/x/cancel", {}, bearer("k"))).status).toBe(404);
      expect((await api.get("/v1/executions", bearer("k"))).status).toBe(200);
      expect((await api.post("/v1/workflow?start=true", definition, bearer("other"))).status).toBe(201);
      expect((await api.get("/v1/limits", bearer("k"))).body.items).toEqual([
        { name: "ingress", kind: "rate", limit: 60, window_seconds: 60 },
      ]);
      expect((await api.get("/metrics")).status).toBe(401);
      expect((await api.get("/metrics", bearer("k"))).status).toBe(200);
    } finally {
      await api.close();
    }
  });

  test("the limit is one for a whole fleet", async () => {
    const memory = openMemory({ host: nodeHost });
    const options = {
      host: "0.0.0.0",
      keys: "admin:k",
      known: ["step"],
      memory,
      ingress: { limit: 10, windowSeconds: 60 },
    };
    const first = await TestApi.start(options);
    const second = await TestApi.start({ ...options, engine: false });
    try {
      const definition = { name: "fleet", nodes: [{ id: "a", handler: "step" }] };
      for (let i = 0; i < 10; i++) expect((await first.post("/v1/workflow", definition, bearer("k"))).status).toBe(201);
      await nodeHost.sleep(1_100);
      await first.post("/v1/workflow", definition, bearer("k"));
      expect((await second.post("/v1/workflow", definition, bearer("k"))).status).toBe(429);
      expect((await second.get("/v1/workers", bearer("k"))).body.items).toEqual([]);
    } finally {
      await second.close();
      await first.close();
      await memory.close();
    }
  });
});

test("keys can be added to the store, and count on every process", async () => {
  const memory = openMemory({ host: nodeHost });
  const api = await TestApi.start({ memory });
  try {
    const { key } = await addKey(memory, "viewer");
    expect(key).toMatch(/^mr_viewer_[\w-]{43}$/);
    expect(JSON.stringify(memory.dump())).not.toContain(key);
    await api.close();
    const other = await TestApi.start({ memory, host: "0.0.0.0" });
    expect((await other.get("/v1/executions")).status).toBe(401);
    expect((await other.get("/v1/executions", bearer(key))).status).toBe(200);
    expect((await other.post("/v1/executions/x/cancel", {}, bearer(key))).status).toBe(403);
    await other.close();
  } finally {
    await api.close();
    await memory.close();
  }
});

test("settings with keys that say nothing are refused", () => {
  for (const bad of ["key", "nobody:key", "admin:", ":x", "viewer+nobody:x"])
    expect(() => parseKeys(bad)).toThrow(/MILLRACE_API_KEYS/);
  expect(parseKeys("").size).toBe(0);
  expect([...parseKeys("viewer:a:b, admin:c,").values()].map(({ roles }) => roles)).toEqual([["viewer"], ["admin"]]);
});
