import { describe, expect, test } from "vitest";
import { viewExecution } from "../test-summary.ts";
import { node, NONCE, RETRYABLE, START_MS, Trial, workflow } from "../test-execution.ts";

const two = workflow([node("a"), node("b", ["a"])]);

function complete(trial: Trial, token: string, output: number): readonly { readonly kind: string }[] {
  return trial.send({ kind: "taskCompleted", token, output: { json: output }, runningMs: 100 });
}

test("a completion before anybody reported the start ends the node, with the start the worker tells", () => {
  const trial = new Trial(two).begin().at(500);
  expect(complete(trial, trial.token("a"), 7)).toEqual([
    {
      kind: "taskCompleted",
      atMs: START_MS + 500,
      node: "a",
      attempt: 1,
      delivery: 1,
      startedAtMs: START_MS + 400,
      output: { json: 7 },
    },
  ]);
  expect(trial.last.reply).toEqual({ ok: { accepted: true } });
  expect(trial.view("a")).toMatchObject({ status: "COMPLETED", output: { json: 7 }, error: null });
});

test("a completion of a running node ends it", () => {
  const trial = new Trial(two).begin();
  trial.starts("a");
  complete(trial, trial.token("a"), 7);
  expect(trial.status("a")).toBe("completed");
});

test("the same completion again is answered the same and changes nothing", () => {
  const trial = new Trial(two).begin();
  const token = trial.token("a");
  complete(trial, token, 7);
  expect(complete(trial, token, 8)).toEqual([]);
  expect(trial.last.reply).toEqual({ ok: { accepted: true } });
  expect(trial.view("a").output).toEqual({ json: 7 });
});

test("the error of an earlier attempt is gone once the node has completed", () => {
  const trial = new Trial(two).begin().fails("a", RETRYABLE).at(100_000).settle();
  trial.completes("a", 1);
  expect(trial.view("a")).toMatchObject({ status: "COMPLETED", attempt: 2, error: null });
});

describe("deliveries of one attempt", () => {
  test("a completion from a lost delivery counts, and what is out for the node is withdrawn", () => {
    const trial = new Trial(two).begin();
    const zombie = trial.token("a");
    trial.loses("a");
    const newest = trial.token("a");
    expect(newest).not.toBe(zombie);
    expect(complete(trial, zombie, 1)).toMatchObject([{ kind: "taskCompleted", delivery: 1 }]);
    expect(trial.last.revoke).toEqual([newest]);
    expect(complete(trial, newest, 2)).toEqual([]);
    expect(trial.view("a").output).toEqual({ json: 1 });
  });

  test("a completion counts while the next delivery waits for room", () => {
    const trial = new Trial(two).begin();
    const zombie = trial.token("a");
    trial.room = () => 0;
    trial.loses("a");
    expect(trial.status("a")).toBe("queued");
    complete(trial, zombie, 1);
    expect(trial.status("a")).toBe("completed");
    expect(trial.state.ready.count).toBe(1);
  });
});

describe("a completion that counts for nothing is written down and refused", () => {
  test.each([
    ["of an earlier attempt", { attempt: 1 }, "staleAttempt", "STALE_ATTEMPT"],
    ["of an attempt that was never made", { attempt: 9 }, "unknownDispatch", "TASK_TOKEN_INVALID"],
    ["of a delivery that was never made", { delivery: 5 }, "unknownDispatch", "TASK_TOKEN_INVALID"],
    ["under another owner's nonce", { nonce: "other" }, "unknownDispatch", "TASK_TOKEN_INVALID"],
    ["of a generation to come", { generation: 2 }, "unknownDispatch", "TASK_TOKEN_INVALID"],
  ] as const)("%s", (_, of, reason, code) => {
    const trial = new Trial(two).begin().fails("a", RETRYABLE).at(100_000).settle();
    const token = trial.token("a", of);
    expect(complete(trial, token, 7)).toEqual([{ kind: "resultIgnored", atMs: trial.nowMs, token, reason }]);
    expect(trial.last.reply).toEqual({ refused: code });
    expect(trial.status("a")).toBe("queued");
  });

  test.each([
    ["no token at all", "garbage"],
    ["a token of another execution", `${NONCE}:y:1:a:1:1`],
    ["a node that does not exist", `${NONCE}:x:1:zz:1:1`],
    ["a node that has not been dispatched", `${NONCE}:x:1:b:1:1`],
  ])("%s", (_, token) => {
    const trial = new Trial(two).begin();
    expect(complete(trial, token, 7)).toMatchObject([{ kind: "resultIgnored", reason: "unknownDispatch" }]);
    expect(trial.last.reply).toEqual({ refused: "TASK_TOKEN_INVALID" });
  });

  test("while the node waits for its next attempt", () => {
    const trial = new Trial(two).begin();
    const token = trial.token("a");
    trial.fails("a", RETRYABLE);
    expect(complete(trial, token, 7)).toMatchObject([{ kind: "resultIgnored", reason: "staleAttempt" }]);
    expect(trial.status("a")).toBe("waiting");
  });

  test("of a generation that is over", () => {
    const trial = new Trial(two).begin();
    const old = trial.token("a");
    trial.does({ kind: "cancel" }).does({ kind: "retry", scope: "failed" });
    expect(trial.token("a")).not.toBe(old);
    expect(complete(trial, old, 7)).toMatchObject([{ kind: "resultIgnored", reason: "staleAttempt" }]);
    expect(trial.last.reply).toEqual({ refused: "STALE_ATTEMPT" });
    expect(trial.status("a")).toBe("queued");
  });

  test("after the node has failed", () => {
    const trial = new Trial(workflow([node("a", [], { on_error: "continue" }), node("b", ["a"])])).begin();
    const token = trial.token("a");
    trial.fails("a");
    expect(complete(trial, token, 7)).toMatchObject([{ kind: "resultIgnored", reason: "staleAttempt" }]);
    expect(trial.status("a")).toBe("failed");
  });
});

describe("a completion after the end of the execution", () => {
  test("is recorded once, and the node stays as it reads", () => {
    const trial = new Trial(two).begin();
    const token = trial.token("a");
    trial.send({ kind: "cancel", request: "r" });
    const before = viewExecution(trial.state);
    expect(complete(trial, token, 7)).toEqual([
      { kind: "lateResult", atMs: START_MS, node: "a", attempt: 1, delivery: 1, output: { json: 7 } },
    ]);
    expect(trial.last.reply).toEqual({ ok: { accepted: false, recorded: true } });
    expect(complete(trial, token, 8)).toEqual([]);
    expect(trial.last.reply).toEqual({ ok: { accepted: false, recorded: true } });
    const { inputHash } = trial.state.runs[0]!;
    expect(inputHash).toMatch(/^[0-9a-f]{32}$/);
    expect(trial.state.runs[0]!.late).toEqual({ output: { json: 7 }, inputHash });
    expect(viewExecution(trial.state)).toEqual({ ...before, version: before.version + 1 });
  });

  test("of a node that had completed before is the same completion again", () => {
    const trial = new Trial(two).begin();
    const token = trial.token("a");
    trial.completes("a", 1);
    trial.send({ kind: "cancel", request: "r" });
    expect(complete(trial, token, 2)).toEqual([]);
    expect(trial.last.reply).toEqual({ ok: { accepted: true } });
  });
});
