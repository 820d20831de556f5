import { describe, expect, test } from "vitest";
import { node, RETRYABLE, START_MS, Trial, workflow } from "../test-execution.ts";

const one = workflow([node("a", [], { on_error: "fail_branch" })]);

test("a lost worker means the same attempt again, under a new token", () => {
  const trial = new Trial(one).begin();
  const first = trial.token("a");
  trial.nonce = "next";
  expect(trial.send({ kind: "deliveryLost", token: first })).toEqual([
    { kind: "deliveryLost", atMs: START_MS, node: "a", attempt: 1, delivery: 1, handedBack: false },
  ]);
  expect(trial.last.reply).toEqual({ ok: { accepted: true } });
  // It may be in its queue again, put back from the state before the loss was heard of.
  expect(trial.last.revoke).toEqual([first]);
  trial.settle();
  expect(trial.task("a")).toMatchObject({ attempt: 1, delivery: 2, token: "next:x:1:a:1:2" });
  expect(trial.view("a")).toMatchObject({ status: "QUEUED", attempt: 1, deliveries: 2 });
});

test("a running node whose worker is lost is queued again, and its start forgotten", () => {
  const trial = new Trial(one).begin();
  trial.starts("a");
  trial.loses("a");
  expect(trial.view("a")).toMatchObject({ status: "QUEUED", startedAtMs: null });
  expect(trial.starts("a")).toHaveLength(1);
});

describe("a task that kills its workers", () => {
  test("is poison after three lost deliveries, and is given to nobody any more", () => {
    const trial = new Trial(one).begin().loses("a").loses("a");
    expect(trial.status("a")).toBe("queued");
    const events = trial.send({ kind: "deliveryLost", token: trial.token("a") });
    expect(events).toMatchObject([
      { kind: "taskFailed", delivery: 3, retryAtMs: null, error: { code: "POISON_TASK", retryable: false } },
    ]);
    expect(trial.last.deadLetters).toMatchObject([{ class: "poison" }]);
    expect(trial.last.revoke).toEqual([trial.token("a")]);
    trial.settle();
    expect(trial.taskTexts("a")).toHaveLength(3);
    expect(trial.state.status).toBe("failed");
  });

  test("ends a fail_fast execution in the same decision", () => {
    const trial = new Trial(workflow([node("a"), node("b")])).begin().loses("a").loses("a").loses("a");
    expect(trial.events.slice(-2).map((event) => event.kind)).toEqual(["taskFailed", "executionEnded"]);
  });

  test("is counted anew in the next attempt", () => {
    const trial = new Trial(one).begin().loses("a").loses("a").fails("a", RETRYABLE).at(100_000).settle();
    trial.loses("a").loses("a");
    expect(trial.status("a")).toBe("queued");
    expect(trial.view("a")).toMatchObject({ attempt: 2, deliveries: 3 });
  });
});

describe("a hand-back", () => {
  test("is free, however often it happens", () => {
    const trial = new Trial(one).begin();
    for (let i = 0; i < 10; i++) {
      trial.send({ kind: "taskHandedBack", token: trial.token("a") });
      expect(trial.last.reply).toEqual({ ok: { accepted: true } });
      trial.settle();
    }
    expect(trial.view("a")).toMatchObject({ status: "QUEUED", attempt: 1, deliveries: 11 });
    trial.loses("a").loses("a");
    expect(trial.status("a")).toBe("queued");
    trial.loses("a");
    expect(trial.view("a").error?.code).toBe("POISON_TASK");
  });
});

test("a hand-back after two lost workers is not the third", () => {
  const trial = new Trial(one).begin().loses("a").loses("a");
  expect(trial.send({ kind: "taskHandedBack", token: trial.token("a") })).toMatchObject([{ handedBack: true }]);
  expect(trial.status("a")).toBe("queued");
});

describe("a loss that counts for nothing", () => {
  const forms = ["deliveryLost", "taskHandedBack"] as const;

  test.each(forms)("%s of an older delivery", (kind) => {
    const trial = new Trial(one).begin();
    const old = trial.token("a");
    trial.loses("a");
    expect(trial.send({ kind, token: old })).toEqual([]);
    expect(trial.last.reply).toEqual({ refused: "STALE_ATTEMPT" });
  });

  test.each(forms)("%s twice for the same delivery, while the next waits for room", (kind) => {
    const trial = new Trial(one).begin();
    trial.room = () => 0;
    const token = trial.token("a");
    trial.loses("a");
    expect(trial.send({ kind, token })).toEqual([]);
    expect(trial.state.runs[0]!.lost).toBe(1);
  });

  test.each(forms)("%s of a completed node, after the end, or forged", (kind) => {
    const trial = new Trial(workflow([node("a"), node("b")])).begin();
    trial.completes("a");
    expect(trial.send({ kind, token: trial.token("a") })).toEqual([]);
    expect(trial.send({ kind, token: "forged" })).toEqual([]);
    trial.send({ kind: "cancel", request: "r" });
    expect(trial.send({ kind, token: trial.token("b") })).toEqual([]);
  });
});
