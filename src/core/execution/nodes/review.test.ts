import { describe, expect, test } from "vitest";
import type { Json } from "../../../json/json.ts";
import { executionMachine } from "../machine.ts";
import { engineNode, node, START_MS, Trial, workflow } from "../test-execution.ts";

const branch = { on_error: "fail_branch" } as const;

function reviewing(config: Record<string, Json> = {}, input: Json = null): Trial {
  const review = engineNode("v", "review", { due_seconds: 100, on_due: "fail", ...config }, [], branch);
  return new Trial(workflow([review, node("b", ["v"])])).begin({ json: input });
}

test("it waits for a person, until it is due by the calendar", () => {
  const trial = reviewing();
  expect(trial.view("v")).toMatchObject({ status: "WAITING", reason: "review", until: START_MS + 100_000, attempt: 0 });
  expect(executionMachine.nextCalendarMs!(trial.state)).toBe(START_MS + 100_000);
  trial.calendarAheadMs = -1;
  expect(trial.at(100_000).step()).toEqual([]);
});

describe("when nobody has decided for a while", () => {
  const escalate = { after_seconds: 20, assignees: ["eve", "ann"] };

  test("others are asked too, and it stays due when it was", () => {
    const trial = reviewing({ assignees: ["ann"], escalate });
    expect(trial.view("v").until).toBe(START_MS + 100_000);
    expect(executionMachine.nextCalendarMs!(trial.state)).toBe(START_MS + 20_000);
    expect(JSON.parse(trial.listings.at(-1)!.text!)).toMatchObject({
      assignees: ["ann"],
      escalatesAtMs: START_MS + 20_000,
      dueAtMs: START_MS + 100_000,
    });
    expect(trial.at(20_000).step()).toMatchObject([{ kind: "reviewEscalated", node: "v", assignees: ["ann", "eve"] }]);
    const listed = JSON.parse(trial.listings.at(-1)!.text!);
    expect(listed).toMatchObject({ assignees: ["ann", "eve"], dueAtMs: START_MS + 100_000 });
    expect(listed).not.toHaveProperty("escalatesAtMs");
    expect(trial.at(99_999).step()).toEqual([]);
    expect(trial.at(100_000).step()).toMatchObject([{ kind: "reviewDue" }, { kind: "nodeFailed" }]);
  });

  test("nobody is asked of a review that was decided", () => {
    const trial = reviewing({ escalate });
    const of = { request: "d1", instance: "v", generation: 1, decision: "approve", data: null } as const;
    trial.send({ kind: "decideReview", ...of }, "bob");
    trial.settle();
    expect(trial.at(20_000).step()).toEqual([]);
    expect(trial.view("v").status).toBe("COMPLETED");
  });

  test("that must be before it is due", () => {
    const trial = reviewing({ escalate: { after_seconds: 100, assignees: [] } });
    expect(trial.view("v")).toMatchObject({ status: "FAILED", error: { code: "CONFIG_INVALID" } });
  });
});

describe("when nobody has decided in time", () => {
  test("it fails, and is not tried again", () => {
    const trial = reviewing().at(100_000);
    expect(trial.step()).toMatchObject([
      { kind: "reviewDue", node: "v" },
      { kind: "nodeFailed", node: "v" },
    ]);
    expect(trial.view("v")).toMatchObject({ status: "FAILED", error: { code: "REVIEW_EXPIRED", retryable: false } });
    expect(trial.letters).toMatchObject([{ id: "x:1:v", class: "poison" }]);
  });

  test("under fail_fast the execution fails with it", () => {
    const review = engineNode("v", "review", { due_seconds: 100, on_due: "fail" });
    const trial = new Trial(workflow([review])).begin().at(100_000).settle();
    expect(trial.summary).toMatchObject({ status: "FAILED", error: { code: "REVIEW_EXPIRED", node: "v" } });
  });

  test.each(["approve", "reject"])("it decides by itself to %s, if it says so", (decision) => {
    const trial = reviewing({ on_due: { decision, data: { why: "late" } } })
      .at(100_000)
      .settle();
    const at = new Date(START_MS + 100_000).toISOString();
    expect(trial.view("v")).toMatchObject({
      status: "COMPLETED",
      output: { json: { decision, data: { why: "late" }, by: "on_due", at, comment: null } },
    });
    expect(trial.shown["b"]).toBe("QUEUED");
  });

  test("decided without data it has none", () => {
    const trial = reviewing({ on_due: { decision: "reject" } })
      .at(100_000)
      .settle();
    expect(trial.view("v").output).toMatchObject({ json: { decision: "reject", data: null } });
  });

  test("it is not judged while messages wait to be read: the decision may be among them", () => {
    const trial = reviewing().at(100_000);
    trial.deadlineMs = START_MS + 99_000;
    expect(trial.step()).toEqual([]);
    const decision = { instance: "v", generation: 1, decision: "approve", data: null } as const;
    expect(trial.does({ kind: "decideReview", ...decision }).shown["v"]).toBe("COMPLETED");
  });
});

describe("what is shown of it", () => {
  test("comes from templates", () => {
    const config = { title: "Pay {{ input.n }}?", assignees: ["{{ input.who }}"] };
    const trial = reviewing(config, { n: 5, who: "ann" });
    expect(JSON.parse(trial.listings[0]!.text!)).toMatchObject({ title: "Pay 5?", assignees: ["ann"] });
  });

  test("a title that is no text is shown as JSON", () => {
    const trial = reviewing({ title: "{{ input }}" }, { n: 5 });
    expect(JSON.parse(trial.listings[0]!.text!)).toMatchObject({ title: '{"n":5}' });
  });
});

test.each([0, -1, "long"])("a time of %j is none", (s) => {
  const trial = reviewing({ due_seconds: "{{ input.s }}" }, { s });
  expect(trial.view("v").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: "/due_seconds" } });
});

test.each(["x", 5, null, {}, { decision: "maybe" }])("to do %j when it is due is nothing", (onDue) => {
  const trial = reviewing({ on_due: "{{ input.onDue }}" }, { onDue });
  expect(trial.view("v").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: "/on_due" } });
});

const FORM = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

test.each([
  ["form", "text"],
  ["form", null],
  ["form", { type: "thing" }],
  ["assignees", "ann"],
  ["assignees", [5]],
  ["four_eyes", "yes"],
  ["escalate", "soon"],
  ["due_seconds", 31_536_001],
] as const)("%s of %j is none", (name, value) => {
  const trial = reviewing({ [name]: "{{ input.value }}" }, { value: value as never });
  expect(trial.view("v").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: `/${name}` } });
});

test.each([[5], ["ann", null]])("to escalate to %j is to nobody", (...assignees) => {
  const trial = reviewing({ escalate: { after_seconds: 1, assignees: "{{ input.assignees }}" } }, { assignees });
  expect(trial.view("v").error).toMatchObject({ details: { pointer: "/escalate/assignees" } });
});

test.each([
  [{ n: 1 }, undefined],
  [{ n: "one" }, '"on_due/data" does not fit the form at /n: it must be an integer, not a string'],
  [null, '"on_due/data" does not fit the form: it must be an object, not null'],
])("when it is due %j is held against the form", (data, message) => {
  const trial = reviewing({ form: FORM, on_due: { decision: "approve", data: "{{ input.data }}" } }, { data });
  expect(trial.view("v").error?.message).toBe(message);
});

test("when it is due nothing at all need not fit the form", () => {
  expect(reviewing({ form: FORM, on_due: { decision: "reject" } }).shown["v"]).toBe("WAITING review");
});

describe("config.mock", () => {
  test("true approves at once", () => {
    expect(reviewing({ mock: true }).view("v")).toMatchObject({
      status: "COMPLETED",
      output: { json: { decision: "approve", data: null, by: "mock" } },
    });
  });

  test("any other value is the output", () => {
    const trial = reviewing({ mock: { decision: "reject" } });
    expect(trial.view("v").output).toEqual({ json: { decision: "reject" } });
    expect(trial.listings).toEqual([]);
  });

  test("false is none", () => {
    expect(reviewing({ mock: false }).shown["v"]).toBe("WAITING review");
  });
});
