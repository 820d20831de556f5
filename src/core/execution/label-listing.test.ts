import { expect, test } from "vitest";
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

test("without labels nothing is listed, and nothing of it is written down", () => {
  const trial = new Trial(one);
  trial.send(startBody());
  expect(trial.last.listings).toBeUndefined();
  expect(trial.events[0]).not.toHaveProperty("labels");
});
