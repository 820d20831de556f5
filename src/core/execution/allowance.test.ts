import { describe, expect, test } from "vitest";
import type { Workflow, WorkflowNode } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import { engineNode, mapNode, node, Trial, workflow } from "./test-execution.ts";
import { Family } from "./test-family.ts";

const call = (id: string, dependencies: readonly string[] = [], name = "w"): WorkflowNode =>
  engineNode(id, "workflow", { name }, dependencies, { on_error: "fail_branch" });

const anyOf = { join: "one_success" } as const;
const found = new Map<string, Json>([["workflow:w@", { hash: "h", timeout_seconds: 60 }]]);

/** What the starts of the children say that these may have below them. */
function allowances(trial: Trial): (number | undefined)[] {
  return trial.mail.flatMap(({ body }) => (body.kind === "start" ? [body.parent?.allowance] : []));
}

function begun(nodes: readonly WorkflowNode[], allowance?: number): Trial {
  const trial = new Trial(workflow(nodes), { fetched: found });
  if (allowance === undefined) return trial.begin();
  return trial.begin({ json: null }, { entity: "execution/p", instance: "c", call: 1, depth: 1, allowance });
}

describe("what an execution may have below it", () => {
  test("goes to its only child, which is one of them", () => {
    expect(allowances(begun([call("a")]))).toEqual([9999]);
  });

  test("goes to one after the other if they come after each other", () => {
    const trial = begun([call("a"), call("b", ["a"])]);
    trial.childEnds("a");
    expect(allowances(trial)).toEqual([9999, 9999]);
  });

  test("is shared by those that may be open together, whenever each of them begins", () => {
    const trial = begun([call("a"), node("s"), call("b", ["s"]), call("c", ["a", "b"])]);
    trial.completes("s");
    expect(allowances(trial)).toEqual([4999, 4999]);
    trial.childEnds("a").childEnds("b");
    expect(allowances(trial).at(-1)).toBe(9999);
  });

  test("is shared with one that comes after it, and may begin before its end", () => {
    const trial = begun([call("a"), node("s"), engineNode("b", "workflow", { name: "w" }, ["a", "s"], anyOf)]);
    expect(allowances(trial.completes("s"))).toEqual([4999, 4999]);
  });

  test("is shared with one behind a node that a router may leave out before its end", () => {
    const routes = [{ when: "false", to: "left" }];
    const trial = begun([
      engineNode("r", "router", { routes }),
      call("a"),
      node("left", ["r", "a"]),
      engineNode("b", "workflow", { name: "w" }, ["left"], { join: "all_done" }),
    ]);
    expect(allowances(trial)).toEqual([4999, 4999]);
  });

  test("is what its own parent gave it", () => {
    expect(allowances(begun([call("a"), call("b")], 11))).toEqual([4, 4]);
  });

  test("used up, there is no child", () => {
    const trial = begun([call("a"), call("b")], 1);
    // Once the first has failed, there is enough for the other.
    expect(allowances(trial)).toEqual([0]);
    expect(trial.shown["b"]).toBe("WAITING child");
    expect(trial.view("a").error).toMatchObject({
      code: "CHILD_FAILED",
      message: expect.stringContaining("10000 executions may be open") as string,
    });
  });

  test("stays with a child that is called again", () => {
    const trial = begun([call("a"), call("b")])
      .childEnds("a", { status: "failed" })
      .childEnds("b");
    trial.does({ kind: "retry", scope: "failed" });
    expect(allowances(trial)).toEqual([4999, 4999, 4999]);
  });

  test("is had by an execution of an earlier release, which nobody told of it", () => {
    const trial = new Trial(workflow([call("a")]), { fetched: found });
    trial.begin({ json: null }, { entity: "execution/p", instance: "c", call: 1, depth: 1 });
    expect(allowances(trial)).toEqual([9999]);
  });
});

describe("a map that runs graphs", () => {
  const map = (most: number, count: number): WorkflowNode =>
    mapNode("m", {
      items: Array.from({ length: count }, (_, i) => i),
      nodes: [node("i")] as never,
      max_concurrency: most,
    });

  test("shares it among the items that are under way", () => {
    expect(allowances(begun([map(4, 9)]))).toEqual([2499, 2499, 2499, 2499]);
    const trial = begun([map(4, 9)]).childEnds("m[0]");
    expect(allowances(trial).at(-1)).toBe(2499);
  });

  test("has no more of them under way than it may", () => {
    const trial = begun([map(10, 20)], 3);
    expect(allowances(trial)).toEqual([0, 0, 0]);
    expect(allowances(trial.childEnds("m[1]"))).toHaveLength(4);
  });

  test("that may have none fails its items", () => {
    expect(begun([map(10, 2)], 0).view("m").error?.message).toContain("10000 executions");
  });

  test("of handlers is not held back", () => {
    const trial = begun([mapNode("m", { items: [1, 2, 3], handler: "step", config: {} })], 0);
    expect(trial.out).toHaveLength(3);
  });
});

test("whatever calls whatever, there are never more open than there may be", () => {
  const items = [0, 1, 2, 3, 4];
  const inner = [call("deeper", [], "bush"), call("beside", [], "bush"), node("s")];
  const bush: Workflow = workflow(
    [mapNode("m", { items, nodes: inner as never }), call("again", [], "bush"), node("s")],
    { on_error: "continue" },
  );
  const all = new Family(bush, { bush }, { large: true });
  all.root.begin({ json: null }, { entity: "execution/p", instance: "c", call: 1, depth: 1, allowance: 200 });
  const open = [...all.deliver().members.values()].filter(({ state }) => !state.isEnded).length - 1;
  expect(open).toBeGreaterThan(100);
  expect(open).toBeLessThanOrEqual(200);
});
