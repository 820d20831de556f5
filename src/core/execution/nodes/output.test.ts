import { expect, test } from "vitest";
import { engineNode, node, Trial, workflow } from "../test-execution.ts";

test("what the parents gave is collected in a later generation too, when it has left memory", () => {
  const nodes = [node("a"), node("b", [], { on_error: "fail_branch" }), engineNode("o", "output", {}, ["a", "b"])];
  const trial = new Trial(workflow(nodes, { on_error: "fail_branch" })).begin();
  const large = { text: "x".repeat(2000) };
  const body = { kind: "taskCompleted", output: { json: large, bytes: 2011 }, runningMs: 1 } as const;
  trial.send({ ...body, token: trial.token("a") });
  const { version } = trial.state;
  trial.settle().fails("b");
  expect(trial.state.runs[0]!.output).toEqual({ past: { version, bytes: 2011 } });

  trial.does({ kind: "retry", scope: "failed" }).completes("b", 2);
  expect(trial.last.needs).toEqual([{ past: { version, bytes: 2011 } }]);
  expect(trial.status("o")).toBe("pending");
  trial.fetched.set(`past:${version}`, large);
  expect(trial.settle().view("o").output).toMatchObject({ json: { a: large, b: 2 } });
});
