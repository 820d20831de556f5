import { expect, test } from "vitest";
import type { Span } from "../api/service/traces.ts";
import { sendJson, serve } from "../handlers/test-server.ts";
import type { Host } from "../host/host.ts";
import { nodeHost } from "../host/node-host.ts";
import { readSettings } from "../settings/read-settings.ts";
import { TraceExport, type TraceTarget, traceTarget } from "./trace-export.ts";

const target = (env: Readonly<Record<string, string>>) => traceTarget(readSettings({ env }).settings);

const cases: readonly (readonly [Readonly<Record<string, string>>, string | undefined])[] = [
  [{}, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" }, "http://c:4318/v1/traces"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/base/" }, "http://c:4318/base/v1/traces"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://t/x" }, "http://t/x"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_SDK_DISABLED: " True" }, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_SDK_DISABLED: "1" }, "http://c/v1/traces"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_TRACES_EXPORTER: "console,OTLP" }, "http://c/v1/traces"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_TRACES_EXPORTER: "none" }, undefined],
];

test.each(cases)("by %j traces go to %s", (env, url) => {
  expect(target(env)?.url).toBe(url);
});

test("headers are read as the convention writes them", () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_EXPORTER_OTLP_HEADERS: "a=b%20c, key=x=y,odd" };
  expect(target(env)?.headers).toEqual({ a: "b c", key: "x=y" });
});

test("a login in the address goes where logins go, and nothing of it into the log", async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://me:p%40ss@c:4318" };
  expect(target(env)).toMatchObject({
    url: "http://c:4318/v1/traces",
    headers: { authorization: `Basic ${btoa("me:p@ss")}` },
  });
});

const span: Span = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  parentSpanId: undefined,
  name: "workflow.execution",
  startMs: 1_700_000_000_000.5,
  endMs: 1_700_000_000_001,
  attributes: { "execution.id": "x", "execution.generation": 1 },
  error: "BAD: no",
};

interface Told {
  readonly warnings: unknown[];
  readonly details: unknown[];
  readonly infos: unknown[];
}

function exporting(
  url: string,
  {
    headers = { key: "k" },
    sleep = () => Promise.resolve(),
  }: Partial<Pick<TraceTarget, "headers"> & Pick<Host, "sleep">> = {},
): { readonly traces: TraceExport } & Told {
  const told: Told = { warnings: [], details: [], infos: [] };
  const log = {
    warn: (given: unknown, line: unknown) => {
      told.details.push(given);
      told.warnings.push(line);
    },
    info: (...line: unknown[]) => told.infos.push(line.at(-1)),
  };
  const traces = new TraceExport({
    target: { url, headers, service: "shop" },
    host: { ...nodeHost, sleep },
    log: log as never,
    version: "1",
    spans: (execution) => (execution === "gone" ? Promise.reject(new Error("gone")) : Promise.resolve([span])),
  });
  return { traces, ...told };
}

test("spans are sent as OTLP has them in JSON, and what cannot be read is left out", async () => {
  const collector = await serve((_, response) => sendJson(response, {}));
  const { traces, warnings } = exporting(`${collector.url}/v1/traces`);
  traces.add("gone");
  traces.add("x");
  await expect.poll(() => collector.requests.length).toBe(1);
  await traces.close();
  const { url, headers, body } = collector.requests[0]!;
  expect([url, headers["key"], headers["content-type"]]).toEqual(["/v1/traces", "k", "application/json"]);
  const { resourceSpans } = JSON.parse(body) as { resourceSpans: [{ resource: unknown; scopeSpans: [unknown] }] };
  expect(resourceSpans[0].resource).toEqual({
    attributes: [{ key: "service.name", value: { stringValue: "shop" } }],
  });
  expect(resourceSpans[0].scopeSpans[0]).toEqual({
    scope: { name: "millrace", version: "1" },
    spans: [
      {
        traceId: span.traceId,
        spanId: span.spanId,
        name: span.name,
        kind: 1,
        startTimeUnixNano: "1700000000000500000",
        endTimeUnixNano: "1700000000001000000",
        attributes: [
          { key: "execution.id", value: { stringValue: "x" } },
          { key: "execution.generation", value: { intValue: "1" } },
        ],
        status: { code: 2, message: "BAD: no" },
      },
    ],
  });
  expect(warnings).toEqual([]);
});

test("a collector that is busy is asked again; one that refuses stands in the log once, until it does not", async () => {
  const answers = [503, 429, 200, 400, 400, 200];
  const collector = await serve((_, response) => sendJson(response, {}, answers.shift() ?? 200));
  const { traces, warnings, infos } = exporting(`${collector.url}/v1/traces`);
  for (const count of [3, 4, 5, 6]) {
    traces.add(`x${count}`);
    await expect.poll(() => collector.requests.length).toBe(count);
    // Its answer is heard, and whoever comes next is sent for itself.
    await nodeHost.sleep(50);
  }
  await traces.close();
  expect(collector.requests).toHaveLength(6);
  expect(warnings).toEqual(["traces cannot be sent, and are left out until they can"]);
  expect(infos).toEqual(["traces are sent again"]);
});

test("a header that cannot be sent is not shown", async () => {
  const { traces, details } = exporting("http://127.0.0.1:9/v1/traces", { headers: { key: "se\ncret" } });
  traces.add("x");
  await expect.poll(() => details.length).toBe(1);
  await traces.close();
  expect(JSON.stringify(details)).not.toContain("cret");
});

test("a collector that leads elsewhere is not followed", async () => {
  const other = await serve((_, response) => sendJson(response, {}));
  const collector = await serve((_, response) => response.writeHead(307, { location: other.url }).end());
  const { traces, warnings } = exporting(collector.url);
  traces.add("x");
  await expect.poll(() => warnings.length).toBe(1);
  await traces.close();
  expect(other.requests).toEqual([]);
});

test("a stop does not wait for a collector that does not answer, nor read what is left for it", async () => {
  const collector = await serve(() => {});
  const { traces } = exporting(collector.url, { sleep: (ms, signal) => nodeHost.sleep(ms / 100, signal) });
  for (let i = 0; i < 5_000; i++) traces.add(`x${i}`);
  await expect.poll(() => collector.requests.length).toBe(1);
  await traces.close();
  await nodeHost.sleep(100);
  expect(collector.requests).toHaveLength(1);
});
