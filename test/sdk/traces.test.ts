import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { sendJson, serve } from "../../src/handlers/test-server.ts";
import { connect, embedded, workflow } from "../../src/sdk/index.ts";

afterEach(() => vi.unstubAllEnvs());

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

interface Sent {
  readonly resourceSpans: readonly [{ readonly scopeSpans: readonly [{ readonly spans: readonly SentSpan[] }] }];
}

const double = (() => {
  const wf = workflow("double", { input: z.object({ n: z.number() }) });
  const twice = wf.node("twice", ({ input }) => input.n * 2);
  return wf.output({ twice });
})();
const parent = (() => {
  const wf = workflow("calls");
  const sub = wf.sub("sub", double, { input: { n: 1 } });
  return wf.output({ sub });
})();

test("an engine tells a collector of what has run, children below the nodes that have called them", async () => {
  const collector = await serve((_, response) => sendJson(response, {}));
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  {
    await using engine = await embedded({ dataDir: false, port: 0 });
    await engine.run(parent);
    // Whoever comes with a trace finds it there; who wants none is told nothing of.
    for (const flags of ["01", "00"]) {
      const answer = await fetch(`${engine.url}/v1/workflows/double/executions`, {
        method: "POST",
        headers: { "content-type": "application/json", traceparent: `00-${traceId}-b7ad6b7169203331-${flags}` },
        body: JSON.stringify({ input_params: { n: 2 } }),
      });
      const { execution_id: id } = (await answer.json()) as { execution_id: string };
      await using client = connect({ url: engine.url! });
      await client.get(id).result();
    }
  }
  expect(new Set(collector.requests.map(({ method, url }) => `${method} ${url}`))).toEqual(
    new Set(["POST /v1/traces"]),
  );
  const spans = collector.requests.flatMap(
    ({ body }) => (JSON.parse(body) as Sent).resourceSpans[0].scopeSpans[0].spans,
  );
  const attribute = ({ attributes }: SentSpan, name: string): string | undefined =>
    attributes.find(({ key }) => key === name)?.value.stringValue;
  const whole = (workflow: string): SentSpan[] =>
    spans.filter((span) => span.name === "workflow.execution" && attribute(span, "workflow.name") === workflow);
  const step = (id: string, of: SentSpan): SentSpan =>
    spans.find((span) => attribute(span, "step.id") === id && span.parentSpanId === of.spanId)!;
  const [calls] = whole("calls");
  const sub = step("sub", calls!);
  const [called, ...others] = whole("double").filter((span) => span.traceId === calls!.traceId);
  expect(called).toMatchObject({ parentSpanId: sub.spanId });
  expect(step("twice", called!).name).toBe("workflow.step.double/twice");
  expect([calls!.parentSpanId, others]).toEqual([undefined, []]);
  const far = whole("double").filter((span) => span !== called);
  expect(far).toMatchObject([{ traceId, parentSpanId: "b7ad6b7169203331" }]);
});
