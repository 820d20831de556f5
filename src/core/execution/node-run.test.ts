import { expect, test } from "vitest";
import { NodeRun } from "./node-run.ts";

test("a run that nothing has become of is told in no words", () => {
  expect(JSON.stringify(new NodeRun(1))).toBe("{}");
  const run = new NodeRun(1);
  // As evolve does with each dispatch and each result: to write what is there already is nothing.
  run.lost = 0;
  run.round = 0;
  run.late = null;
  run.error = null;
  expect(run).toEqual(new NodeRun(1));
});

test("what is told of a run makes the same again", () => {
  const run = new NodeRun(3);
  run.attempt = 2;
  run.nonces = ["n", "m"];
  run.rerun = 2;
  run.error = { code: "DOWN", message: "it is", retryable: true };
  run.skipReason = "upstream_failed";
  run.cachedFrom = "x";
  run.anew = true;
  run.chosen = [1, 2];
  run.usage = { tokens: 1 };
  const told = JSON.parse(JSON.stringify(run)) as Partial<NodeRun>;
  expect(told).toMatchObject({ generation: 3, rerun: 2, skipReason: "upstream_failed", anew: true, chosen: [1, 2] });
  expect(NodeRun.from(told)).toEqual(run);
  run.error = null;
  run.rerun = 1;
  expect(JSON.parse(JSON.stringify(run))).not.toHaveProperty("error");
});

test("no field of a run is left out of what is told of it", () => {
  const run = new NodeRun(1);
  const common = Object.keys(run)
    .filter((field) => field !== "rare")
    .map((field) => field.replace(/After$/, "AtMs"));
  for (const [i, field] of common.entries()) Reflect.set(run, field, field === "nonces" ? ["n"] : i + 2);
  // One that is either or not.
  run.answered = true;
  expect(Object.keys(JSON.parse(JSON.stringify(run)) as object).toSorted()).toEqual(common.toSorted());
});

test("a moment is what it was, whichever a run was told first", () => {
  for (const atMs of [1_700_000_000_000, 1_800_000_000_000, 1_700_000_000_000.25, 1_600_000_000_001, 0, 17, null]) {
    const run = new NodeRun(1);
    [run.queuedAtMs, run.startedAtMs, run.endedAtMs] = [atMs, atMs, atMs];
    expect([run.queuedAtMs, run.startedAtMs, run.endedAtMs]).toEqual([atMs, atMs, atMs]);
    expect(NodeRun.from(JSON.parse(JSON.stringify(run)) as Partial<NodeRun>)).toEqual(run);
  }
});

test("what a snapshot of an earlier format says in full is read as well", () => {
  const full = { generation: 1, rerun: 1, unsure: [], round: 0, attempt: 1, lost: 0, error: null, failures: 4 };
  const run = NodeRun.from(full);
  expect([run.attempt, run.failures, run.error, run.child]).toEqual([1, 4, null, null]);
});
