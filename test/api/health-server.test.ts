import { request } from "node:http";
import { connect } from "node:net";
import { afterAll, expect, test } from "vitest";
import { HealthServer } from "../../src/api/http/health-server.ts";
import { addKey, Keys } from "../../src/api/http/keys.ts";
import { Metrics } from "../../src/api/metrics/metrics.ts";
import type { Readiness } from "../../src/api/service/readiness.ts";
import { openMemory } from "../../src/drivers/memory/memory-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Store } from "../../src/store/contract.ts";

const store: Store = openMemory({ host: nodeHost });
const opened: HealthServer[] = [];
afterAll(async () => {
  for (const server of opened) await server.close();
  await store.close();
});

const incidents: unknown[] = [];
const well: Readiness = { ready: true, parts: { store: "ok" } };

async function open(address = "127.0.0.1", keys = "", readiness: () => Promise<Readiness> = async () => well) {
  const log = ({ error }: { readonly error: unknown }) => incidents.push(error);
  const metrics = new Metrics();
  const given = { host: nodeHost, metrics, readiness, keys: new Keys(keys, store), address, port: 0, log };
  const server = new HealthServer(given);
  opened.push(server);
  const url = (await server.listen()).replace("0.0.0.0", "127.0.0.1");
  return { server, url };
}

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** `fetch` does not let one say who is asked. */
function ask(url: string, headers: Readonly<Record<string, string>> = {}, method = "GET"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, method, agent: false }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (text: string) => (body += text));
      answer.on("end", () =>
        resolve({
          status: answer.statusCode!,
          type: answer.headers["content-type"],
          headers: answer.headers,
          body,
        }),
      );
    });
    asked.on("error", reject).end();
  });
}

test("has three routes, and says of everything else that it is not there", async () => {
  const { url } = await open();
  expect(await ask(`${url}/health/live`)).toMatchObject({ status: 200, body: '{"status":"ok"}' });
  expect(await ask(`${url}/health/ready?verbose=1`)).toMatchObject({
    status: 200,
    type: "application/json; charset=utf-8",
    body: JSON.stringify({ status: "ok", parts: { store: "ok" } }),
  });
  const metrics = await ask(`${url}/metrics`);
  expect(metrics).toMatchObject({ status: 200, type: "text/plain; version=0.0.4; charset=utf-8" });
  expect(metrics.body).toMatch(/^millrace_process_cpu_seconds_total /m);
  expect(await ask(`${url}/metrics`, {}, "HEAD")).toMatchObject({ status: 200, body: "" });
  for (const path of ["/", "/readyz", "/v1/executions", "/metrics/", "/health/live/", "/docs", "//health/live"]) {
    const { status, type, body } = await ask(url + path);
    expect([path, status, type]).toEqual([path, 404, "application/problem+json"]);
    expect(JSON.parse(body)).toMatchObject({ status: 404, code: "NOT_FOUND" });
  }
  expect(await ask(`${url}/v1/workflow`, {}, "POST")).toMatchObject({ status: 404 });
  expect(await ask(`${url}/metrics`, {}, "POST")).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
});

test("names what is not ready, and what is about to stop is not, and lives", async () => {
  const states: Record<string, string> = { store: "ok", engine: "ok", worker: "takes nothing more" };
  const { server, url } = await open("127.0.0.1", "", async () => ({ ready: false, parts: states }));
  const { status, body, headers } = await ask(`${url}/health/ready`);
  expect([status, headers["retry-after"]]).toEqual([503, "1"]);
  expect(JSON.parse(body)).toMatchObject({ code: "NOT_READY", detail: expect.stringContaining("takes nothing more") });
  states["store"] = "does not answer";
  expect(JSON.parse((await ask(`${url}/health/ready`)).body)).toMatchObject({ code: "STORE_UNAVAILABLE" });
  server.drain();
  expect(JSON.parse((await ask(`${url}/health/ready`)).body)).toMatchObject({
    code: "NOT_READY",
    detail: expect.stringContaining("about to stop"),
  });
  expect((await ask(`${url}/health/live`)).status).toBe(200);
});

test("on this machine measurements need no key, and no page of the web gets them", async () => {
  for (const keys of ["", "viewer:see"]) {
    const { url } = await open("127.0.0.1", keys);
    expect((await ask(`${url}/metrics`)).status).toBe(200);
    expect((await ask(`${url}/metrics`, { host: "rebound.example" })).status).toBe(403);
    expect((await ask(`${url}/metrics`, { origin: "https://elsewhere.example" })).status).toBe(403);
    expect((await ask(`${url}/health/ready`, { host: "10.0.0.7:4747" })).status).toBe(200);
  }
});

test("beyond this machine health needs no key, and measurements one that may read", async () => {
  const { url } = await open("0.0.0.0", "viewer:see,worker:work");
  const host = "10.0.0.7:4747";
  const code = async (headers: Readonly<Record<string, string>>) => {
    const { status, body } = await ask(`${url}/metrics`, headers);
    return [status, status === 200 ? "" : (JSON.parse(body) as { code: string }).code];
  };
  expect((await ask(`${url}/health/live`, { host })).status).toBe(200);
  expect((await ask(`${url}/health/ready`, { host })).status).toBe(200);
  expect(await code({ host })).toEqual([401, "UNAUTHENTICATED"]);
  expect(await code({ authorization: "Bearer work" })).toEqual([403, "FORBIDDEN"]);
  expect(await code({ host, authorization: "Bearer see" })).toEqual([200, ""]);
  // Keys of the store count too.
  const { key } = await addKey(store, "operator");
  expect(await code({ authorization: `Bearer ${key}` })).toEqual([200, ""]);
  for (let i = 0; i < 30; i++) expect(await code({ authorization: "Bearer wrong" })).toEqual([401, "UNAUTHENTICATED"]);
  expect(await code({ authorization: "Bearer wrong" })).toEqual([429, "RATE_LIMITED"]);
  expect(await code({ authorization: "Bearer see" })).toEqual([200, ""]);
});

test("beyond this machine and without any key it listens, and nobody sees measurements, whoever they say is asked", async () => {
  const { url } = await open("0.0.0.0");
  expect((await ask(`${url}/health/ready`)).status).toBe(200);
  expect((await ask(`${url}/metrics`, { host: "localhost" })).status).toBe(401);
});

test("what goes wrong here is an incident, and what is no request a problem", async () => {
  const { url } = await open("127.0.0.1", "", () => Promise.reject(new Error("secret inside")));
  const { status, body } = await ask(`${url}/health/ready`);
  expect([status, body.includes("secret")]).toEqual([500, false]);
  expect(incidents).toEqual([new Error("secret inside")]);
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.end("what is this?\r\n\r\n");
  let text = "";
  for await (const part of socket) text += String(part);
  expect(text).toMatch(/^HTTP\/1.1 400 .*application\/problem\+json/s);
});
