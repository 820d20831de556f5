import { describe, expect, test } from "vitest";
import type { Json } from "../../../json/json.ts";
import type { DecideReview } from "../../message.ts";
import { recovered } from "../recovered.ts";
import { EXAMPLES, lastingExamples, parseReviewId, reviewId } from "../review-listing.ts";
import { restore, snapshot } from "../snapshot.ts";
import { engineNode, mapNode, node, START_MS, Trial, workflow } from "../test-execution.ts";

const review = (config: Record<string, Json> = {}): ReturnType<typeof engineNode> =>
  engineNode("v", "review", { due_seconds: 604_800, on_due: "fail", ...config });

const decide = (more: Partial<DecideReview> = {}): Omit<DecideReview, "request"> & { request?: string } => ({
  kind: "decideReview",
  instance: "v",
  generation: 1,
  decision: "approve",
  data: null,
  ...more,
});

test.each(["approve", "reject"] as const)("to %s completes the node, with who decided what and when", (decision) => {
  const trial = new Trial(workflow([review(), node("b", ["v"])])).begin().at(5000);
  const answer = trial.ask(decide({ decision, data: { amount: 3 }, comment: "fine" }), "ann");
  expect(answer).toEqual({ ok: { execution_id: "x", status: "RUNNING", generation: 1 } });
  trial.settle();
  const at = new Date(START_MS + 5000).toISOString();
  expect(trial.view("v")).toMatchObject({
    status: "COMPLETED",
    output: { json: { decision, data: { amount: 3 }, by: "ann", at, comment: "fine" } },
  });
  expect(trial.shown["b"]).toBe("QUEUED");
});

test("without a comment there is none, and the time is that of the calendar", () => {
  const trial = new Trial(workflow([review()])).begin();
  trial.calendarAheadMs = 3_600_000;
  trial.does(decide());
  const at = new Date(START_MS + 3_600_000).toISOString();
  expect(trial.view("v").output).toEqual({ json: { decision: "approve", data: null, by: "test", at, comment: null } });
});

describe("a review is decided once", () => {
  test("the second decision finds it closed", () => {
    const trial = new Trial(workflow([review(), node("b", ["v"])])).begin().does(decide());
    expect(trial.ask(decide({ decision: "reject" }))).toMatchObject({ refused: "REVIEW_CLOSED" });
    expect(trial.view("v").output).toMatchObject({ json: { decision: "approve" } });
  });

  test("the same decision sent again gets the same answer", () => {
    const trial = new Trial(workflow([review(), node("b", ["v"])])).begin();
    const answer = trial.ask(decide({ request: "r" }));
    expect(trial.ask(decide({ request: "r" }))).toEqual(answer);
    expect(trial.last.events).toEqual([]);
  });

  test.each<[string, (trial: Trial) => Trial, Partial<DecideReview>]>([
    ["of another generation", (t) => t.does({ kind: "cancel" }).does({ kind: "retry", scope: "failed" }), {}],
    ["of an execution that is over", (t) => t.does({ kind: "cancel" }), {}],
    ["of a node that is no review", (t) => t, { instance: "b" }],
    ["of a node that does not exist", (t) => t, { instance: "zz" }],
    ["of one that nobody decided in time", (t) => t.at(604_800_000).settle(), {}],
  ])("one %s is closed", (_, then, more) => {
    const waiting = { ...review(), on_error: "fail_branch" } as const;
    const trial = then(new Trial(workflow([waiting, node("b")], { timeout_seconds: 0 })).begin());
    expect(trial.ask(decide(more))).toMatchObject({ refused: "REVIEW_CLOSED" });
  });

  test("a new generation asks anew", () => {
    const trial = new Trial(workflow([review()])).begin().does(decide({ decision: "reject" }));
    trial.does({ kind: "retry", scope: "descendants", from: "v" });
    expect(trial.shown["v"]).toBe("WAITING review");
    trial.does(decide({ generation: 2 }));
    expect(trial.view("v").output).toMatchObject({ json: { decision: "approve" } });
  });
});

describe("data is checked against the form", () => {
  const form = { type: "object", properties: { amount: { type: "number", minimum: 1 } }, required: ["amount"] };

  test("what does not fit is refused, with where and why, and the review stays open", () => {
    const trial = new Trial(workflow([review({ form })])).begin();
    expect(trial.ask(decide({ data: { amount: 0 } }))).toMatchObject({
      refused: "REVIEW_INVALID",
      errors: [{ path: "/amount", message: expect.stringContaining("1") as string }],
    });
    expect(trial.ask(decide({ data: null }))).toMatchObject({
      refused: "REVIEW_INVALID",
      detail: 'No data was given, and the form of the review asks for "amount"',
    });
    expect(trial.ask(decide({ decision: "reject", data: { no: 1 } }))).toMatchObject({ refused: "REVIEW_INVALID" });
    expect(trial.shown["v"]).toBe("WAITING review");
    trial.does(decide({ data: { amount: 2 } }));
    expect(trial.view("v").output).toMatchObject({ json: { data: { amount: 2 } } });
  });

  test("the same refusal again tells the same faults", () => {
    const trial = new Trial(workflow([review({ form })])).begin();
    const first = trial.ask(decide({ data: {}, request: "r" }));
    expect(trial.ask(decide({ data: {}, request: "r" }))).toEqual(first);
    expect(first).toHaveProperty("errors");
  });

  test("without a form anything goes", () => {
    const trial = new Trial(workflow([review()])).begin().does(decide({ data: ["anything"] }));
    expect(trial.view("v").output).toMatchObject({ json: { data: ["anything"] } });
  });
});

describe("where two people have to decide", () => {
  const both = (more: Record<string, Json> = {}): Trial =>
    new Trial(workflow([review({ four_eyes: true, ...more }), node("b", ["v"])], { timeout_seconds: 0 })).begin();

  test("the first one's word is kept, and the second one's counts", () => {
    const trial = both();
    expect(trial.ask(decide({ decision: "reject", comment: "no" }), "ann")).toHaveProperty("ok");
    expect(trial.shown["v"]).toBe("WAITING review");
    expect(trial.ask(decide(), "ann")).toMatchObject({ refused: "REVIEW_SAME_PERSON" });
    expect(trial.ask(decide({ data: 7 }), "bob")).toHaveProperty("ok");
    const first = { decision: "reject", by: "ann", at: expect.any(String) as string, comment: "no", data: null };
    expect(trial.view("v").output).toMatchObject({ json: { decision: "approve", data: 7, by: "bob", first } });
    expect(trial.ask(decide(), "carl")).toMatchObject({ refused: "REVIEW_CLOSED" });
  });

  test("what the first has corrected stands if the second approves without a word", () => {
    const trial = both({ values: { total: 4, name: "x" } });
    trial.ask(decide({ data: { total: 5, name: "x" } }), "ann");
    expect(trial.ask(decide({ data: null }), "bob")).toHaveProperty("ok");
    const output = { data: { total: 5, name: "x" }, locks: ["total"], by: "bob", first: { data: { total: 5 } } };
    expect(trial.view("v").output).toMatchObject({ json: output });
  });

  test("of one who has rejected nothing is taken over", () => {
    const trial = both({ values: { total: 4 } });
    trial.ask(decide({ decision: "reject", data: { total: 5 } }), "ann");
    trial.ask(decide({ data: null }), "bob");
    expect(trial.view("v").output).toMatchObject({ json: { data: { total: 4 }, first: { data: { total: 5 } } } });
  });

  test("and so it does when the due date comes before the second", () => {
    const trial = both({ values: { total: 4 }, on_due: { decision: "approve" } });
    trial.ask(decide({ data: { total: 5 } }), "ann");
    trial.at(604_800_000).settle();
    expect(trial.view("v").output).toMatchObject({ json: { data: { total: 5 }, locks: ["total"], by: "on_due" } });
  });

  test("what was too large to be kept has to be said again", () => {
    const trial = both({ values: { total: 4 } });
    const data = { total: "9".repeat(70_000) };
    trial.ask(decide({ data }), "ann");
    const refused = { refused: "REVIEW_INVALID", detail: expect.stringMatching(/say what you approve$/) as string };
    expect(trial.ask(decide({ data: null }), "bob")).toMatchObject(refused);
    expect(trial.ask(decide({ data }), "bob")).toHaveProperty("ok");
  });

  test("what does not fit the form is nobody's word", () => {
    const trial = both({ form: { type: "number" } });
    expect(trial.ask(decide({ data: "x" }), "ann")).toMatchObject({ refused: "REVIEW_INVALID" });
    expect(trial.ask(decide({ data: 1 }), "ann")).toHaveProperty("ok");
    expect(trial.state.runs[0]!.wait).toMatchObject({ first: { by: "ann", data: 1 } });
  });

  test("a new generation begins with nobody's word", () => {
    const trial = both();
    trial.does(decide()).does({ kind: "cancel" }).does({ kind: "retry", scope: "failed" });
    expect(trial.state.runs[0]!.wait).not.toHaveProperty("first");
  });

  test("nobody has to wait for the second beyond its due date", () => {
    const trial = both({ on_due: { decision: "reject" } }).does(decide());
    trial.at(604_800_000).settle();
    expect(trial.view("v").output).toMatchObject({ json: { decision: "reject", by: "on_due" } });
  });
});

describe("what was proposed", () => {
  const values = { total: 3, list: [1, { a: 1, b: 2 }] };

  test.each<[string, Json, string[]]>([
    ["the same", { total: 3, list: [1, { b: 2, a: 1 }] }, []],
    ["another value", { total: 4, list: [1, { a: 1, b: 2 }] }, ["total"]],
    ["another type", { total: "3" }, ["total"]],
    ["something within", { list: [1, { a: 1, b: 3 }] }, ["list"]],
    ["a field more", { more: null }, ["more"]],
    ["no fields at all", "fine", []],
  ])("is locked where a person set it otherwise: %s", (_, data, locks) => {
    const trial = new Trial(workflow([review({ values })])).begin().does(decide({ data }));
    expect(trial.view("v").output).toMatchObject({ json: { data, locks } });
  });

  test("is taken by whoever approves without a word, and by a due date that does", () => {
    const trial = new Trial(workflow([review({ values })])).begin().does(decide());
    expect(trial.view("v").output).toMatchObject({ json: { data: values, locks: [] } });
    const patient = workflow([review({ values, on_due: { decision: "approve" } })], { timeout_seconds: 0 });
    const late = new Trial(patient).begin();
    late.at(604_800_000).settle();
    expect(late.view("v").output).toMatchObject({ json: { data: values, by: "on_due", locks: [] } });
  });
});

test("a review that is assigned is listed with whoever is to decide, also after the store was lost", () => {
  const trial = new Trial(workflow([review({ assignees: ["ann"] })])).begin().at(1000);
  trial.does({ kind: "assignReview", instance: "v", generation: 1, assignees: ["bob"] });
  expect(JSON.parse(trial.listings.at(-1)!.text!)).toMatchObject({ assignees: ["bob"], openedAtMs: START_MS });
  expect(recovered(trial.state, trial.context).listings).toEqual(trial.listings.slice(-1));
  expect(restore("x", trial.state.plan, snapshot(trial.state)).runs[0]).toEqual(trial.state.runs[0]);
});

test("large data becomes a blob of the execution", () => {
  const trial = new Trial(workflow([review()])).begin();
  trial.ask(decide({ data: "x".repeat(70_000) }));
  const [blob] = trial.last.blobs!;
  expect(trial.view("v").output).toEqual({ blob: { hash: blob!.hash, bytes: blob!.text.length } });
});

describe("open reviews are listed", () => {
  test("with what people need to decide, from the moment they wait to the decision", () => {
    const config = { title: "Pay {{ input.n }}?", form: { type: "object" }, assignees: ["ann", "bob"] };
    const trial = new Trial(workflow([review(config)], { name: "pay" })).begin({ json: { n: 5 } });
    expect(trial.listings).toMatchObject([{ list: "review", id: "x:1:v" }]);
    expect(JSON.parse(trial.listings[0]!.text!)).toEqual({
      execution: "x",
      generation: 1,
      node: "v",
      workflow: "pay",
      title: "Pay 5?",
      form: { type: "object" },
      assignees: ["ann", "bob"],
      openedAtMs: START_MS,
      dueAtMs: START_MS + 604_800_000,
    });
    trial.does(decide({ data: {} }));
    expect(trial.listings.slice(1)).toEqual([{ list: "review", id: "x:1:v", text: null }]);
  });

  test.each<[string, (trial: Trial) => Trial]>([
    ["is due", (t) => t.at(604_800_000).settle()],
    ["is cut off by a cancel", (t) => t.does({ kind: "cancel" })],
    ["is cut off by a failure", (t) => t.fails("f")],
    ["is cut off by the workflow's timeout", (t) => t.at(900_000_000).settle()],
  ])("until it %s", (_, then) => {
    const trial = new Trial(workflow([review(), node("f", [], { queue_timeout_seconds: 999_999_999 })])).begin();
    expect(then(trial).listings.at(-1)).toEqual({ list: "review", id: "x:1:v", text: null });
  });

  test("each item of a map has its own, and all go with the map", () => {
    const config = { title: "Item {{ index }}", due_seconds: 100, on_due: "fail" };
    const map = mapNode("m", { items: ["a", "b", "c"], handler: "review", config }, [], { on_error: "fail_branch" });
    const trial = new Trial(workflow([map])).begin();
    expect(trial.listings.map(({ id }) => id)).toEqual(["x:1:m[0]", "x:1:m[1]", "x:1:m[2]"]);
    trial.does(decide({ instance: "m[1]" }));
    expect(trial.listings.slice(3)).toEqual([{ list: "review", id: "x:1:m[1]", text: null }]);
    trial.at(100_000).settle();
    expect(trial.view("m").error?.code).toBe("MAP_FAILED");
    const closed = trial.listings.slice(4).map(({ id, text }) => [id, text]);
    expect(new Set(closed.map(String))).toEqual(new Set(["x:1:m[0],", "x:1:m[2],"]));
  });

  test("under a name that leads back to them", () => {
    expect(parseReviewId(reviewId("x", 2, "m[3]"))).toEqual({ execution: "x", generation: 2, instance: "m[3]" });
    for (const bad of ["", "x", "x:1", "x:0:v", "x:one:v", ":1:v"]) expect(parseReviewId(bad)).toBeUndefined();
  });
});

test("who says no need not fill in the form", () => {
  const form = { type: "object", required: ["amount"] };
  const trial = new Trial(workflow([review({ form })])).begin();
  expect(trial.ask(decide({ decision: "reject" }))).toMatchObject({ ok: {} });
  expect(trial.settle().shown["v"]).toBe("COMPLETED");
});

test("a journal tells where what was made of a proposal stands, in whichever generation that was", () => {
  const trial = new Trial(workflow([review({ values: { total: 3 } })])).begin().does(decide({ data: { total: 4 } }));
  const before = trial.events.length;
  trial.does({ kind: "retry", scope: "descendants", from: "v" });
  trial.does(decide({ generation: 2, data: { total: 5 } }));
  const left = trial.listings.filter(({ list }) => list === EXAMPLES).map(({ list, id }) => ({ list, id }));
  expect(left.map(({ id }) => id)).toEqual(["x:1:v", "x:2:v"]);
  expect(lastingExamples("x", trial.events, 0)).toEqual(left);
  expect(lastingExamples("x", trial.events, before)).toEqual(left.slice(1));
  const plain = new Trial(workflow([review()])).begin().does(decide());
  expect(lastingExamples("x", plain.events, 0)).toEqual([]);
});
