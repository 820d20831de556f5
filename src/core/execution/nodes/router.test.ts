import { describe, expect, test } from "vitest";
import type { Json } from "../../../json/json.ts";
import { engineNode, node, Trial, workflow } from "../test-execution.ts";

const DEFAULTS = { mode: "exclusive", on_error: "fail" };

/** A router over n with two routes and a node that is named in none. */
function routed(config: Record<string, Json>, input: Json): Trial {
  const router = engineNode("r", "router", { ...DEFAULTS, ...config });
  const nodes = [router, node("low", ["r"]), node("high", ["r"]), node("other", ["r"]), node("always", ["r"])];
  return new Trial(workflow(nodes)).begin({ json: input });
}

const routes = [
  { when: "input.n < 10", to: "low" },
  { when: "input.n < 20", to: ["high", "low"] },
];

const cases: readonly (readonly [what: string, config: Record<string, Json>, n: number, chosen: readonly string[]])[] =
  [
    ["exclusive takes the first route that fits", { routes }, 5, ["low"]],
    ["exclusive takes a later one if only that fits", { routes }, 15, ["high", "low"]],
    ["exclusive without else may choose nothing", { routes }, 25, []],
    ["exclusive takes else if none fits", { routes, else: "other" }, 25, ["other"]],
    ["exclusive leaves else if one fits", { routes, else: "other" }, 5, ["low"]],
    ["inclusive takes all routes that fit, each target once", { routes, mode: "inclusive" }, 5, ["low", "high"]],
    ["inclusive takes one if one fits", { routes, mode: "inclusive" }, 15, ["high", "low"]],
    ["inclusive takes else if none fits", { routes, mode: "inclusive", else: ["other", "low"] }, 25, ["other", "low"]],
    ["inclusive leaves else if one fits", { routes, mode: "inclusive", else: "other" }, 15, ["high", "low"]],
  ];

test.each(cases)("%s", (_, config, n, chosen) => {
  const trial = routed(config, { n });
  expect(trial.view("r")).toMatchObject({ status: "COMPLETED", output: { json: { chosen } } });
  const named = new Set(
    [...(config["routes"] as { to: string | string[] }[]).flatMap(({ to }) => to), config["else"] ?? []].flat(),
  );
  for (const id of ["low", "high", "other", "always"]) {
    expect([id, trial.shown[id]]).toEqual([id, chosen.includes(id) || !named.has(id) ? "QUEUED" : "SKIPPED route"]);
  }
});

describe("a condition that cannot be evaluated", () => {
  const bad = [
    { when: "input.nothing > 1", to: "low" },
    { when: "input.n > 1", to: "high" },
  ];

  test("fails the router, which is not tried again", () => {
    const trial = routed({ routes: bad }, { n: 5 });
    expect(trial.view("r")).toMatchObject({ status: "FAILED", error: { code: "CONDITION_ERROR", retryable: false } });
    expect(trial.letters).toMatchObject([{ id: "x:1:r", class: "poison" }]);
  });

  test("does not fit, if the router says skip", () => {
    expect(routed({ routes: bad, on_error: "skip" }, { n: 5 }).view("r").output).toEqual({
      json: { chosen: ["high"] },
    });
    expect(routed({ routes: bad, on_error: "skip", else: "other" }, { n: 0 }).view("r").output).toEqual({
      json: { chosen: ["other"] },
    });
  });

  test("behind the one that fits is not evaluated", () => {
    expect(routed({ routes: bad.toReversed() }, { n: 5 }).view("r").output).toEqual({ json: { chosen: ["high"] } });
  });
});

describe("what was not chosen", () => {
  test("is skipped whatever its other parents say, and harms nobody behind it", () => {
    const router = engineNode("r", "router", { ...DEFAULTS, routes: [{ when: "false", to: "no" }] });
    const nodes = [router, node("p"), node("no", ["r", "p"]), node("after", ["no", "p"]), node("only", ["no"])];
    const trial = new Trial(workflow(nodes)).begin();
    expect(trial.shown).toMatchObject({ no: "SKIPPED route", only: "SKIPPED condition", after: "PENDING" });
    expect(trial.completes("p").shown).toMatchObject({ after: "QUEUED" });
    expect(trial.completes("after").summary.status).toBe("COMPLETED");
  });

  test("runs no more, though a join that needs only one parent could have", () => {
    const router = engineNode("r", "router", { ...DEFAULTS, routes: [{ when: "false", to: "j" }] }, ["p"]);
    const nodes = [node("p"), node("q"), router, node("j", ["r", "q"], { join: "one_success" })];
    const trial = new Trial(workflow(nodes)).begin().completes("p");
    expect(trial.completes("q").shown["j"]).toBe("SKIPPED route");
  });

  test("has begun already, and goes on, if its join did not wait for the router", () => {
    const router = engineNode("r", "router", { ...DEFAULTS, routes: [{ when: "false", to: "j" }] }, ["p"]);
    const nodes = [node("p"), node("q"), router, node("j", ["r", "q"], { join: "one_success" })];
    const trial = new Trial(workflow(nodes)).begin().completes("q").completes("p");
    expect(trial.shown["j"]).toBe("QUEUED");
  });

  test("leaves its line, if it stood ready and had not begun", () => {
    const router = engineNode("r", "router", { ...DEFAULTS, routes: [{ when: "false", to: "j" }] }, ["p"]);
    const nodes = [node("p"), node("q"), router, node("j", ["r", "q"], { join: "one_success" })];
    const trial = new Trial(workflow(nodes)).begin();
    trial.room = () => 0;
    expect(trial.completes("q").state.ready.count).toBe(1);
    trial.send({ kind: "taskCompleted", token: trial.token("p"), output: { json: 1 }, runningMs: 1 });
    trial.step();
    expect([trial.state.ready.count, trial.state.skips.length]).toEqual([0, 1]);
    trial.room = () => 9;
    expect(trial.settle().shown["j"]).toBe("SKIPPED route");
    expect(trial.taskTexts("j")).toEqual([]);
  });

  test("is skipped once, if two routers leave it out", () => {
    const leaveOut = (id: string): ReturnType<typeof engineNode> =>
      engineNode(id, "router", { ...DEFAULTS, routes: [{ when: "false", to: "no" }] });
    const trial = new Trial(workflow([leaveOut("r1"), leaveOut("r2"), node("no", ["r1", "r2"])])).begin();
    expect(trial.shown["no"]).toBe("SKIPPED route");
    expect(trial.kinds().filter((kind) => kind === "nodeSkipped")).toHaveLength(1);
  });

  test("is skipped, if only one of two routers leaves it out", () => {
    const choose = (id: string, when: string): ReturnType<typeof engineNode> =>
      engineNode(id, "router", { ...DEFAULTS, routes: [{ when, to: "no" }] });
    const trial = new Trial(workflow([choose("r1", "true"), choose("r2", "false"), node("no", ["r1", "r2"])])).begin();
    expect(trial.shown["no"]).toBe("SKIPPED route");
  });

  test("loses the timeout of its join", () => {
    const router = engineNode("r", "router", { ...DEFAULTS, routes: [{ when: "false", to: "j" }] }, ["p"]);
    const j = node("j", ["q", "r", "s"], { join_timeout_seconds: 5 });
    const trial = new Trial(workflow([node("p"), node("q"), node("s"), router, j]))
      .begin()
      .completes("q")
      .completes("p");
    expect(trial.shown["j"]).toBe("SKIPPED route");
    expect(trial.at(60_000).step()).toEqual([]);
  });
});

test("a router that itself is skipped or failed leaves its targets to their joins", () => {
  const router = engineNode("r", "router", { ...DEFAULTS, routes: [{ when: "true", to: "a" }] }, [], {
    condition: "false",
  });
  const trial = new Trial(workflow([router, node("a", ["r"]), node("b", [{ id: "r", on: "done" }])])).begin();
  expect(trial.shown).toEqual({ r: "SKIPPED condition", a: "SKIPPED condition", b: "QUEUED" });
});

test("routes read outputs of nodes before, and a large one is asked for", () => {
  const router = engineNode("r", "router", { ...DEFAULTS, routes: [{ when: "p.n > 1", to: "a" }] }, ["p"]);
  const trial = new Trial(workflow([node("p"), router, node("a", ["r"])])).begin();
  const blob = { hash: "h", bytes: 80_000 };
  trial.send({ kind: "taskCompleted", token: trial.token("p"), output: { blob }, runningMs: 1 });
  expect([trial.step(), trial.last.needs]).toEqual([[], [{ blob }]]);
  trial.fetched.set("h", { n: 2 });
  expect(trial.settle().shown["a"]).toBe("QUEUED");
});
