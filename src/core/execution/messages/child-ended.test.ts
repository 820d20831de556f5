import { describe, expect, test } from "vitest";
import { engineNode, failure, node, Trial, workflow } from "../test-execution.ts";

const fetched = new Map([["workflow:w@", { hash: "h", timeout_seconds: 60 }]]);

function calling(): Trial {
  const nodes = [engineNode("c", "workflow", { name: "w", input: { n: 1 } }), node("b", ["c"]), node("o")];
  return new Trial(workflow(nodes), { fetched }).begin();
}

test("the output of a child that completed is the node's", () => {
  const trial = calling().childEnds("c", { output: { json: { got: 1 } } });
  expect(trial.view("c")).toMatchObject({ status: "COMPLETED", output: { json: { got: 1 } } });
  expect(trial.shown["b"]).toBe("QUEUED");
});

test("one without output gives null", () => {
  expect(calling().childEnds("c").view("c").output).toEqual({ json: null });
});

test("a large output is a blob of the parent's", () => {
  const blob = { hash: "big", bytes: 100_000 };
  expect(calling().childEnds("c", { output: { blob } }).view("c").output).toEqual({ blob });
});

test.each(["failed", "partial", "cancelled"])("a child that is %s fails the node, and says which", (status) => {
  const trial = calling();
  const child = trial.view("c").child!;
  trial.childEnds("c", { status, error: { ...failure({ code: "INNER" }), node: "deep" } });
  expect(trial.view("c")).toMatchObject({
    status: "FAILED",
    child,
    error: {
      code: "CHILD_FAILED",
      retryable: false,
      message: `The child execution ${child} ended ${status.toUpperCase()}: broke`,
      details: {
        execution_id: child,
        status: status.toUpperCase(),
        error: { ...failure({ code: "INNER" }), node_id: "deep" },
      },
    },
  });
  expect(trial.summary).toMatchObject({ status: "FAILED", error: { code: "CHILD_FAILED", node: "c" } });
  expect(trial.letters).toMatchObject([{ id: "x:1:c", class: "poison" }]);
});

test("without an error of its own the message says only how it ended", () => {
  const trial = calling();
  trial.childEnds("c", { status: "cancelled" });
  expect(trial.view("c").error?.message).toMatch(/ ended CANCELLED$/);
});

describe("word of a child that means nothing", () => {
  test.each<[string, (trial: Trial) => Trial, object]>([
    ["of another child", (t) => t, { child: "execution/other" }],
    ["of another call", (t) => t, { call: 2 }],
    ["for a node that has none", (t) => t, { instance: "o" }],
    ["for a node that does not exist", (t) => t, { instance: "zz" }],
    ["a second time", (t) => t.childEnds("c", { output: { json: 1 } }), {}],
    ["after the end", (t) => t.does({ kind: "cancel" }), {}],
    ["after its time was up", (t) => t.at(120_000).settle(), {}],
  ])("%s", (_, then, more) => {
    const trial = calling();
    const child = `execution/${trial.view("c").child!}`;
    then(trial);
    const before = trial.summary;
    const body = { kind: "childEnded", child, generation: 1, instance: "c", status: "completed", call: 1 } as const;
    expect(trial.send({ ...body, output: { json: "wrong" }, ...more })).toEqual([]);
    expect(trial.summary).toEqual(before);
  });

  test("of an earlier call, once it was called again", () => {
    const trial = calling();
    const child = `execution/${trial.view("c").child!}`;
    const ended = { kind: "childEnded", child, generation: 1, instance: "c" } as const;
    trial.childEnds("c", { status: "failed" }).does({ kind: "retry", scope: "failed" });
    expect(trial.send({ ...ended, status: "failed", call: 1 })).toEqual([]);
    expect(trial.shown["c"]).toBe("WAITING child");
    trial.send({ ...ended, generation: 2, status: "completed", call: 2, output: { json: 5 } });
    expect(trial.view("c").output).toEqual({ json: 5 });
  });
});

test("a call without a number is the first", () => {
  const trial = calling();
  const child = `execution/${trial.view("c").child!}`;
  trial.send({ kind: "childEnded", child, generation: 1, instance: "c", status: "completed", output: { json: 1 } });
  expect(trial.status("c")).toBe("completed");
});
