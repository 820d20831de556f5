import { expect, test } from "vitest";
import { mapNode, node, START_MS, Trial, workflow } from "../../core/execution/test-execution.ts";
import { type Span, spansOf } from "./traces.ts";

const place = { traceId: "0af7651916cd43dd8448eb211c80319c", parentSpanId: "b7ad6b7169203331" };
const steps = (spans: readonly Span[]) => spans.map(({ attributes }) => attributes["step.id"]);

test("an execution that is over is a span, and each node that ran is one below it, by its type or handler", () => {
  const trial = new Trial(workflow([node("a", [], { name: "Read it", type: "EXTRACT" }), node("b", ["a"])])).begin();
  expect(spansOf(trial.state, place)).toEqual([]);
  trial.at(100).completes("a").at(300).completes("b");
  const [root, a, b, ...more] = spansOf(trial.state, place);
  expect(more).toEqual([]);
  expect(root).toMatchObject({
    ...place,
    name: "workflow.execution",
    startMs: START_MS,
    endMs: START_MS + 300,
    attributes: { "execution.id": "x", "execution.generation": 1, "execution.status": "COMPLETED" },
    error: undefined,
  });
  expect(a).toMatchObject({
    traceId: place.traceId,
    parentSpanId: root!.spanId,
    name: "workflow.step.extract",
    startMs: START_MS + 95,
    endMs: START_MS + 100,
    attributes: { "step.id": "a", "step.name": "Read it", "step.status": "COMPLETED", "step.attempts": 1 },
  });
  expect(b!.name).toBe(`workflow.step.${b!.attributes["step.handler"]}`);
  for (const { spanId } of [root!, a!, b!]) expect(spanId).toMatch(/^[0-9a-f]{16}$/);
});

test("a failure is told with its reason, what was not begun is not told, and a retry tells only what it ran", () => {
  const trial = new Trial(workflow([node("a"), node("b", ["a"]), node("c", ["b"])])).begin();
  trial.completes("a").fails("b", { code: "BAD", message: "no", retryable: false });
  const first = spansOf(trial.state, place);
  expect(steps(first)).toEqual([undefined, "a", "b"]);
  expect(first.map(({ error }) => error)).toEqual(["BAD: no", undefined, "BAD: no"]);
  trial.at(1_000).does({ kind: "retry", scope: "failed" });
  trial.at(2_000).completes("b").completes("c");
  const second = spansOf(trial.state, place);
  expect(steps(second)).toEqual([undefined, "b", "c"]);
  expect(second[0]).toMatchObject({ endMs: START_MS + 2_000, error: undefined });
  expect(second[0]!.startMs).toBeGreaterThanOrEqual(START_MS + 1_000);
  const ids = [...first, ...second].map(({ spanId }) => spanId);
  expect(new Set(ids).size).toBe(ids.length);
});

test("the items of a map are below it", () => {
  const trial = new Trial(workflow([mapNode("m", { items: [1, 2], handler: "step" })])).begin();
  trial.completes("m[0]").completes("m[1]");
  const [, m, ...items] = spansOf(trial.state, place);
  expect(steps([m!, ...items])).toEqual(["m", "m[0]", "m[1]"]);
  for (const { parentSpanId } of items) expect(parentSpanId).toBe(m!.spanId);
});
