import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../json/json.ts";
import { handedLabels, lastingLists } from "./label-listing.ts";
import { recovered } from "./recovered.ts";
import { restore, snapshot } from "./snapshot.ts";
import { node, startBody, Trial, workflow } from "./test-execution.ts";

const one = workflow([node("a")]);

test("an execution is on the list of each of its labels, from its acceptance on", () => {
  const trial = new Trial(one);
  trial.send({ ...startBody(), labels: { env: "prod", team: "a" } });
  const text = JSON.stringify({ env: "prod", team: "a" });
  expect(trial.last.listings).toEqual([
    { list: "label/env=prod", id: "x", text },
    { list: "label/team=a", id: "x", text },
  ]);
  expect(trial.state.labels).toEqual({ env: "prod", team: "a" });
  expect(recovered(trial.state, trial.context).listings).toEqual(trial.last.listings);
  expect(restore("x", trial.state.plan, snapshot(trial.state)).labels).toEqual({ env: "prod", team: "a" });
});

test("a trigger adds labels and replaces values, and nobody finds it by the old one", () => {
  const trial = new Trial(one);
  trial.send({ ...startBody(), hold: true, labels: { env: "test", team: "a" } });
  trial.send({ kind: "trigger", request: "r", labels: { env: "prod", run: "7" } });
  expect(trial.state.labels).toEqual({ env: "prod", team: "a", run: "7" });
  const text = JSON.stringify({ env: "prod", team: "a", run: "7" });
  expect(trial.last.listings).toEqual([
    { list: "label/env=test", id: "x", text: null },
    { list: "label/env=prod", id: "x", text },
    { list: "label/team=a", id: "x", text },
    { list: "label/run=7", id: "x", text },
  ]);
});

describe("the labels of a definition", () => {
  const labelled = (labels: JsonObject): Trial => new Trial(workflow([node("a")], { labels }));

  test("are those of its executions, before which those come that it was told", () => {
    const trial = labelled({ team: "a", env: "test", build: 7, stable: true });
    trial.send({ ...startBody(), labels: { env: "prod" } });
    expect(trial.state.labels).toEqual({ env: "prod", team: "a", build: "7", stable: "true" });
    expect(trial.last.listings!.map(({ list }) => list)).toContain("label/team=a");
  });

  test("that nobody can ask for are left out, and so is what is too much", () => {
    const trial = labelled({ "a b": "x", list: [1], nested: {}, comma: "a,b", none: null, empty: "" });
    trial.send(startBody());
    expect(trial.events[0]).not.toHaveProperty("labels");
    const many = labelled(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`l${i}`, i])));
    many.send({ ...startBody(), labels: { mine: "x" } });
    expect(Object.keys(many.state.labels!).length).toBe(16);
    expect(many.state.labels).toHaveProperty("mine");
  });

  test("come before those of whoever has called it", () => {
    const trial = labelled({ part: "ocr" });
    const parent = { entity: "execution/p", instance: "n" };
    trial.send({ ...startBody(), parent, labels: { part: "pipeline", customer: "c" } });
    expect(trial.state.labels).toEqual({ part: "ocr", customer: "c" });
  });
});

test("whom it calls has its labels, apart from what only says what it is itself", () => {
  const call = node("c", [], { handler: "workflow", config: { name: "child" }, timeout_seconds: null });
  const labels = { run: "7", "millrace/batch": "true" };
  const trial = new Trial(workflow([call]));
  trial.send({ ...startBody(), labels });
  trial.settle();
  expect(handedLabels(trial.state)).toEqual({ labels: { run: "7" } });
});

test("an event tells all lists that it stays on, or nothing of them", () => {
  const trial = new Trial(one);
  trial.send({ ...startBody(), hold: true, labels: { env: "test", team: "a" } });
  trial.send({ kind: "trigger", request: "r", labels: { env: "prod" } });
  const lists = trial.events.flatMap((event) => [lastingLists("x", event)?.map(({ list }) => list) ?? []]);
  expect(lists.filter((list) => list.length > 0)).toEqual([
    ["label/env=test", "label/team=a"],
    ["label/env=prod", "label/team=a"],
  ]);
  const plain = new Trial(one).begin();
  expect(plain.events.map((event) => lastingLists("x", event))).toEqual(plain.events.map(() => undefined));
});

test("without labels nothing is listed, and nothing of it is written down", () => {
  const trial = new Trial(one);
  trial.send(startBody());
  expect(trial.last.listings).toBeUndefined();
  expect(trial.events[0]).not.toHaveProperty("labels");
});
