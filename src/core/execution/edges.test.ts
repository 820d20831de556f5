import { describe, expect, test } from "vitest";
import { EDGE_TABLE, failedEnd, skippedEnd } from "./edges.ts";
import { edgeCounts } from "./spread.ts";
import { node, Trial, workflow } from "./test-execution.ts";
import type { Dependency, WorkflowNode } from "../../definition/workflow.ts";

// The table of docs/workflows.md: how a parent is made to end, and what each kind of edge then says.
const rows: readonly (readonly [
  name: string,
  parent: Partial<WorkflowNode>,
  how: "completes" | "fails" | "skipped" | "upstream",
  completed: string,
  failed: string,
  done: string,
])[] = [
  ["COMPLETED", {}, "completes", "ok", "void", "ok"],
  ["FAILED, continue", { on_error: "continue" }, "fails", "ok", "ok", "ok"],
  ["FAILED, fail_branch", { on_error: "fail_branch" }, "fails", "bad", "ok", "ok"],
  ["FAILED, fail_fast but caught", { on_error: "fail_fast" }, "fails", "bad", "ok", "ok"],
  ["SKIPPED condition", { condition: "input.yes" }, "skipped", "void", "void", "ok"],
  ["SKIPPED upstream_failed", {}, "upstream", "bad", "void", "ok"],
];

describe.each(rows)("a parent that is %s", (_, parent, how, ...verdicts) => {
  test.each([
    ["completed", verdicts[0]],
    ["failed", verdicts[1]],
    ["done", verdicts[2]],
  ] as const)("makes an edge on: %s %s", (on, verdict) => {
    const edge: Dependency = on === "completed" ? "p" : { id: "p", on };
    const above = how === "upstream" ? [node("g", [], { on_error: "fail_branch" })] : [];
    // `other` keeps the child waiting, so that its counts can be read; `catches` keeps the execution going.
    const trial = new Trial(
      workflow([
        ...above,
        node("p", how === "upstream" ? ["g"] : [], parent),
        node("other"),
        node("child", [edge, "other"]),
        // A failure that is tolerated needs nobody to catch it, and would not be tolerated if somebody did.
        ...(parent.on_error === "continue" ? [] : [node("catches", [{ id: "p", on: "done" }, "other"])]),
      ]),
    ).begin({ json: { yes: false } });
    if (how === "completes") trial.completes("p");
    if (how === "fails") trial.fails("p");
    if (how === "upstream") trial.fails("g");
    const { ok, bad, void: empty, undecided } = edgeCounts(trial.state, trial.index("child"));
    expect({ ok, bad, empty, undecided }).toEqual({
      ok: verdict === "ok" ? 1 : 0,
      bad: verdict === "bad" ? 1 : 0,
      empty: verdict === "void" ? 1 : 0,
      undecided: 1,
    });
  });
});

test("the table has a verdict for each way to end and each kind of edge", () => {
  expect(Object.values(EDGE_TABLE).flatMap((row) => Object.values(row)).length).toBe(15);
});

test.each([
  ["fail_fast", false, "failed"],
  ["fail_branch", false, "failed"],
  ["continue", false, "failedContinue"],
  ["fail_fast", true, "failed"],
  ["continue", true, "failed"],
] as const)("a failure under %s (caught: %s) spreads as %s", (onError, caught, end) =>
  expect(failedEnd(onError, caught)).toBe(end),
);

test.each([
  ["condition", "skippedHarmless"],
  ["route", "skippedHarmless"],
  ["upstream_failed", "skippedByFailure"],
] as const)("a skip by %s spreads as %s", (reason, end) => expect(skippedEnd(reason)).toBe(end));
