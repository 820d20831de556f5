import { describe, expect, test } from "vitest";
import type { Json } from "../../../json/json.ts";
import { executionMachine } from "../machine.ts";
import { engineNode, mapNode, node, Trial, workflow } from "../test-execution.ts";
import { Family } from "../test-family.ts";
import { retryableFrom } from "../view.ts";

/** `end` comes after `a`, while `o` is out and `p` waits for it. */
function ending(config: Record<string, Json>): Trial {
  const nodes = [
    node("a"),
    engineNode("end", "end", { status: "COMPLETED", ...config }, ["a"]),
    node("o"),
    node("p", ["o"]),
  ];
  return new Trial(workflow(nodes)).begin().completes("a", { n: 1 });
}

test("COMPLETED wins over everything that was open, which is cancelled", () => {
  const trial = ending({});
  expect(trial.summary).toMatchObject({ status: "COMPLETED", error: null });
  expect(trial.shown).toEqual({ a: "COMPLETED", end: "COMPLETED", o: "CANCELLED end", p: "CANCELLED end" });
  expect(executionMachine.withdrawn(trial.state)).toEqual([trial.token("o")]);
});

test("FAILED fails it, with its message and its node", () => {
  const trial = ending({ status: "FAILED", message: "Not {{ a.n }}", output: { no: 1 } });
  expect(trial.summary).toMatchObject({
    status: "FAILED",
    output: null,
    error: { code: "END_FAILED", message: "Not 1", retryable: false, node: "end" },
  });
  expect(trial.shown).toMatchObject({ o: "CANCELLED end" });
  expect(trial.letters).toEqual([]);
});

test.each(["FAILDE", "completed", null, 5])("a status of %j is none", (status) => {
  const trial = new Trial(workflow([engineNode("end", "end", { status: "{{ input.status }}" })]));
  trial.begin({ json: { status } });
  expect(trial.view("end").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: "/status" } });
});

test("FAILED without a message says which node ended it", () => {
  expect(ending({ status: "FAILED" }).summary.error?.message).toBe("Node end ended the execution");
});

describe("the output", () => {
  test.each<[string, Record<string, Json>, Json]>([
    ["is that of the `end` node, if it has one", { output: { got: "{{ a.n }}" } }, { got: 1 }],
    ["may be any value", { output: "{{ a.n }}" }, 1],
    ["may be null", { output: null }, null],
    ["is that of the sinks, if it has none", {}, { end: null }],
  ])("%s", (_, config, output) => expect(ending(config).summary.output).toEqual(output));

  test("replaces that of output nodes", () => {
    const nodes = [
      node("a"),
      engineNode("out", "output", { from: "out" }, ["a"]),
      engineNode("end", "end", { status: "COMPLETED", output: "mine" }, ["out"]),
    ];
    expect(new Trial(workflow(nodes)).begin().completes("a").summary.output).toBe("mine");
  });

  test("that is large is a blob", () => {
    const trial = ending({ output: "x".repeat(70_000) });
    const [blob] = trial.blobs;
    expect(trial.summary.output).toEqual({ $large: { bytes: 70_002, sha256: blob!.hash } });
  });

  test("goes to the parent", () => {
    const child = workflow([engineNode("end", "end", { status: "COMPLETED", output: { n: "{{ input }}" } })]);
    const parent = workflow([engineNode("c", "workflow", { name: "w", input: 7 })]);
    expect(new Family(parent, { w: child }).begin().root.view("c").output).toEqual({ json: { n: 7 } });
  });

  test("that failed does not: the parent's node fails", () => {
    const child = workflow([engineNode("end", "end", { status: "FAILED", message: "no", output: 1 })]);
    const parent = workflow([engineNode("c", "workflow", { name: "w" })]);
    expect(new Family(parent, { w: child }).begin().root.view("c").error).toMatchObject({
      code: "CHILD_FAILED",
      details: { status: "FAILED", error: { code: "END_FAILED", message: "no" } },
    });
  });
});

test("it ends also one in which something failed before", () => {
  const nodes = [node("f", [], { on_error: "fail_branch" }), node("a"), engineNode("end", "end", {}, ["a"])];
  const trial = new Trial(workflow(nodes)).begin().fails("f").completes("a");
  expect(trial.summary).toMatchObject({ status: "COMPLETED", error: null });
  expect(trial.shown).toEqual({ f: "FAILED", a: "COMPLETED", end: "COMPLETED" });
});

test("a condition or a route decides whether it ends", () => {
  const end = engineNode("end", "end", { status: "FAILED" }, ["a"], { condition: "a.bad" });
  const nodes = [node("a"), end, node("b", ["a"])];
  expect(new Trial(workflow(nodes)).begin().completes("a", { bad: false }).shown).toMatchObject({ b: "QUEUED" });
  expect(new Trial(workflow(nodes)).begin().completes("a", { bad: true }).summary.status).toBe("FAILED");
});

test("what can be decided before it in the same moment is decided first", () => {
  const nodes = [node("a"), engineNode("i", "input", {}, ["a"]), engineNode("end", "end", {}, ["a"])];
  const trial = new Trial(workflow(nodes)).begin().completes("a");
  expect(trial.shown).toEqual({ a: "COMPLETED", i: "COMPLETED", end: "COMPLETED" });
});

test("a config that cannot be resolved fails it like any other", () => {
  const trial = ending({ output: "{{ a.nothing }}" });
  expect(trial.view("end")).toMatchObject({ status: "FAILED", error: { code: "TEMPLATE_UNRESOLVED" } });
});

test("children are called off, items of maps too", () => {
  const fetched = new Map([["workflow:w@", { hash: "h", timeout_seconds: 60 }]]);
  const nodes = [
    engineNode("c", "workflow", { name: "w" }),
    mapNode("m", { items: [1, 2], handler: "workflow", config: { name: "w" } }),
    node("a"),
    engineNode("end", "end", {}, ["a"]),
  ];
  const trial = new Trial(workflow(nodes), { fetched }).begin();
  expect(trial.mail.filter(({ body }) => body.kind === "start")).toHaveLength(3);
  trial.completes("a");
  expect(trial.mail.filter(({ body }) => body.kind === "cancel")).toHaveLength(3);
  expect(trial.events.at(-1)).toMatchObject({ kind: "childrenCancelled" });
});

describe("a retry of one that an `end` has failed", () => {
  test("runs the `end` again with what it has cut off, so that only another course completes it", () => {
    const trial = ending({ status: "FAILED" }).does({ kind: "retry", scope: "failed" });
    expect(trial.summary).toMatchObject({ status: "FAILED", generation: 2, error: { code: "END_FAILED" } });
    expect(trial.shown).toMatchObject({ a: "COMPLETED", end: "COMPLETED", o: "CANCELLED end", p: "CANCELLED end" });
  });

  test("begins with the `end`, and with another condition goes on", () => {
    const end = engineNode("end", "end", { status: "FAILED" }, ["a"], { condition: "input.bad" });
    const trial = new Trial(workflow([node("a"), end, node("o")])).begin({ json: { bad: true } }).completes("a");
    expect(retryableFrom(trial.state)).toEqual(["end"]);
    trial.does({ kind: "retry", scope: "failed", input: { json: { bad: false } } });
    expect(trial.shown).toEqual({ a: "COMPLETED", end: "SKIPPED condition", o: "QUEUED" });
  });

  test("of one that it completed is refused like any other", () => {
    expect(ending({}).ask({ kind: "retry", scope: "failed" })).toMatchObject({ refused: "NOT_RETRYABLE" });
  });
});
