import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PAGES } from "../../src/api/http/answering.ts";
import { addKey, revokeKey, storedKeys } from "../../src/api/http/keys.ts";
import type { Route } from "../../src/api/http/route.ts";
import type { Service } from "../../src/api/service/service.ts";
import { pages } from "../../src/page/pages.ts";
import { linesOf } from "../../src/process/log-routes.ts";
import { TestApi } from "../support/api.ts";

const shown = (service: Service): readonly Route[] => pages(service, (execution) => linesOf(service, execution));

let api: TestApi;
let id: string;

beforeAll(async () => {
  api = await TestApi.start({ keys: "admin:admin-key,worker:worker-key", pagesOf: shown });
  const definition = { name: "shown", nodes: [{ id: "a", handler: "input" }] };
  const headers = { authorization: "Bearer admin-key" };
  id = (await api.post("/v1/workflow?start=true", definition, headers)).body.execution_id;
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(api.url + path, { redirect: "manual", ...init });
}

function logIn(key: string, more: Readonly<Record<string, string>> = {}, next = "/"): Promise<Response> {
  return ask("/login", { method: "POST", body: new URLSearchParams({ key, next }), headers: more });
}

/** As a browser sends it back. */
async function cookieFor(key: string): Promise<{ cookie: string }> {
  const [cookie] = (await logIn(key)).headers.getSetCookie();
  return { cookie: cookie!.split(";")[0]! };
}

describe("a browser on a server with keys", () => {
  test("is answered as the OpenAPI document says", async () => {
    const headers = { authorization: "Bearer admin-key" };
    const { paths } = (await api.get("/openapi.json", headers)).body;
    const guarded = api.server.routes.filter(({ tag, permission }) => tag === PAGES && permission !== "open");
    expect(guarded.map(({ path }) => path)).toContain("/");
    for (const { path } of guarded) {
      const { status } = await ask(path.replace("{id}", id));
      expect([path, status, Object.keys(paths[path].get.responses)]).toEqual([path, 303, ["200", "303", "default"]]);
    }
  });

  test("is led from a page to the form, and from the form back", async () => {
    const refused = await ask(`/runs/${id}?live=1`);
    expect([refused.status, refused.headers.get("location")]).toEqual([303, `/login?next=%2Fruns%2F${id}%3Flive%3D1`]);
    const form = await (await ask(refused.headers.get("location")!)).text();
    expect(form).toContain(`name="next" value="/runs/${id}?live=1"`);
    const answer = await logIn("admin-key", {}, `/runs/${id}`);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/runs/${id}`]);
    const [cookie] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/^millrace_session=[\w.-]+; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43200$/);
    expect(cookie).not.toContain("admin-key");
  });

  test("reads with its cookie, and does nothing else with it", async () => {
    const headers = await cookieFor("admin-key");
    expect((await ask("/", { headers })).status).toBe(200);
    expect((await ask(`/runs/${id}`, { headers })).status).toBe(200);
    expect((await ask(`/v1/executions/${id}`, { headers })).status).toBe(200);
    for (const [method, path] of [
      ["POST", `/v1/executions/${id}/cancel`],
      ["POST", "/v1/workflow"],
      ["DELETE", "/v1/workflows/shown"],
    ] as const) {
      const refused = await ask(path, { method, headers });
      expect([path, refused.status]).toEqual([path, 401]);
      expect(await refused.json()).toMatchObject({ code: "UNAUTHENTICATED" });
    }
  });

  test("sees how many dead letters nobody has dealt with", async () => {
    const headers = await cookieFor("admin-key");
    const bearer = { authorization: "Bearer admin-key" };
    const letters = async (): Promise<string | undefined> =>
      /\d+ dead letters?/.exec(await (await ask("/", { headers })).text())?.[0];
    const bad = { id: "w", handler: "wait", config: { until: "{{ input.no }}" }, condition_on_error: "fail" };
    const definition = { name: "shown", nodes: [bad] };
    const { execution_id } = (await api.post("/v1/workflow?start=true", definition, bearer)).body;
    await expect.poll(letters).toBe("1 dead letter");
    const path = `/v1/dlq/${encodeURIComponent(`${execution_id}:1:w`)}/retry`;
    expect((await api.post(path, {}, bearer)).status).toBe(202);
    // It fails again: that letter is open, and the one that was replayed is not.
    await expect.poll(async () => (await api.get("/v1/dlq", bearer)).body.items.length).toBe(2);
    expect(await letters()).toBe("1 dead letter");
  });

  test("may see what its key may, and no more", async () => {
    const headers = await cookieFor("worker-key");
    expect((await ask("/", { headers })).status).toBe(403);
  });

  test("gets the form again for a wrong key, and no cookie", async () => {
    const answer = await logIn("wrong");
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([401, []]);
    expect(await answer.text()).toContain("no key of this server");
  });

  test("cannot be logged in or out by a page of another origin", async () => {
    for (const path of ["/login", "/logout"]) {
      const body = new URLSearchParams(path === "/login" ? { key: "admin-key" } : {});
      const refused = await ask(path, { method: "POST", body, headers: { origin: "https://evil.example" } });
      expect([path, refused.status, refused.headers.getSetCookie()]).toEqual([path, 403, []]);
    }
    const own = { origin: api.url };
    expect((await logIn("admin-key", own)).status).toBe(303);
  });

  test.each(["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nb", ""])(
    "is led nowhere else by %j",
    async (next) => {
      expect((await logIn("admin-key", {}, next)).headers.get("location")).toBe("/");
    },
  );

  test("is asked to keep its cookie to TLS where it comes by TLS", async () => {
    expect((await logIn("admin-key", { "x-forwarded-proto": "https" })).headers.getSetCookie()[0]).toMatch(/; Secure$/);
  });

  test("is out again after it logged out, or with a cookie that was changed", async () => {
    const [cookie] = (await ask("/logout", { method: "POST" })).headers.getSetCookie();
    expect(cookie).toMatch(/^millrace_session=; .*Max-Age=0$/);
    const { cookie: good } = await cookieFor("admin-key");
    for (const bad of [`${good}x`, good.replace("=", "=x"), "millrace_session=", "millrace_session=a.b"]) {
      expect([bad, (await ask("/", { headers: { cookie: bad } })).status]).toEqual([bad, 303]);
    }
  });
});

test("a key that was added can be listed and revoked, and with it what it logged in", async () => {
  const { id: name, key } = await addKey(api.memory, "viewer");
  const bearer = { authorization: `Bearer ${key}` };
  const headers = await cookieFor(key);
  expect((await api.get("/v1/executions", bearer)).status).toBe(200);
  expect(await storedKeys(api.memory)).toEqual([{ id: name, roles: ["viewer"], revoked: false }]);
  expect((await api.get("/v1/workflows", { authorization: "Bearer admin-key" })).body.items).toMatchObject([
    { name: "shown" },
  ]);
  expect(await revokeKey(api.memory, "key-00000000")).toBe(false);
  expect(await revokeKey(api.memory, name)).toBe(true);
  expect(await storedKeys(api.memory)).toMatchObject([{ revoked: true }]);
  await expect.poll(async () => (await api.get("/v1/executions", bearer)).status).toBe(401);
  expect((await ask("/", { headers })).status).toBe(303);
});
