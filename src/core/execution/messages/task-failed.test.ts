import { describe, expect, test } from "vitest";
import type { WorkflowNode } from "../../../definition/workflow.ts";
import { failure, node, RETRYABLE, START_MS, Trial, workflow } from "../test-execution.ts";

const retry = { max_attempts: 3, base_delay_seconds: 2, max_delay_seconds: 60, exponential_base: 2, jitter: 0.5 };
const solo = (more: Partial<WorkflowNode> = {}): Trial =>
  new Trial(workflow([node("a", [], { retry, on_error: "fail_branch", ...more })]), { random: () => 0.5 }).begin();

function fail(trial: Trial, error: Parameters<typeof failure>[0], retryAfterMs?: number): readonly object[] {
  const more = retryAfterMs === undefined ? {} : { retryAfterMs };
  return trial.send({ kind: "taskFailed", token: trial.token("a"), error: failure(error), runningMs: 5, ...more });
}

describe("a failed attempt", () => {
  test("shows when it began and what it has cost, however short it was", () => {
    const trial = solo().at(7_000).fails("a", { retryable: false }, { total_tokens: 12 });
    expect(trial.view("a")).toMatchObject({
      status: "FAILED",
      startedAtMs: START_MS + 6_995,
      usage: { total_tokens: 12 },
    });
  });

  test("is followed by another after the backoff, if it may and one is left", () => {
    const trial = solo();
    expect(fail(trial, RETRYABLE)).toEqual([
      {
        kind: "taskFailed",
        atMs: START_MS,
        node: "a",
        attempt: 1,
        delivery: 1,
        error: failure(RETRYABLE),
        startedAtMs: START_MS,
        retryAtMs: START_MS + 2500,
      },
    ]);
    expect(trial.last).toMatchObject({ reply: { ok: { accepted: true } }, deadLetters: [], revoke: [] });
    expect(trial.view("a")).toMatchObject({
      status: "WAITING",
      reason: "retry",
      until: START_MS + 2500,
      attempt: 1,
      error: failure(RETRYABLE),
    });
  });

  test("of a running node is followed by another just so", () => {
    const trial = solo();
    trial.starts("a");
    fail(trial, RETRYABLE);
    expect(trial.status("a")).toBe("waiting");
  });

  test("waits for as long as the server asked, if that is longer", () => {
    expect(fail(solo(), RETRYABLE, 9000)).toMatchObject([{ retryAtMs: START_MS + 9000 }]);
    expect(fail(solo(), RETRYABLE, 10)).toMatchObject([{ retryAtMs: START_MS + 2500 }]);
    expect(fail(solo(), RETRYABLE, 9_000_000)).toMatchObject([{ retryAtMs: START_MS + 3_600_000 }]);
  });

  test("that is the last one fails the node, as exhausted", () => {
    const trial = solo();
    for (const attempt of [1, 2]) {
      fail(trial, RETRYABLE);
      trial.at(attempt * 100_000).settle();
    }
    expect(trial.task("a").attempt).toBe(3);
    expect(fail(trial, RETRYABLE)).toMatchObject([{ kind: "taskFailed", attempt: 3, retryAtMs: null }]);
    expect(trial.last.deadLetters).toMatchObject([{ id: "x:1:a", class: "exhausted", queue: "step" }]);
    expect(trial.status("a")).toBe("failed");
  });

  test("that may not be repeated fails the node at once, as poison", () => {
    const trial = solo();
    expect(fail(trial, {})).toMatchObject([{ kind: "taskFailed", attempt: 1, retryAtMs: null }]);
    const [letter] = trial.last.deadLetters!;
    expect(letter).toMatchObject({ class: "poison" });
    expect(JSON.parse(letter!.text)).toEqual({
      execution_id: "x",
      generation: 1,
      node_id: "a",
      original_message_id: "x:1:a:1",
      handler: "step",
      attempts: 1,
      error: failure(),
      config: {},
      rejected_at_ms: START_MS,
      status: "open",
    });
  });

  test.each([
    ["all", {}, 1],
    ["all", RETRYABLE, 1],
    ["non_retryable", {}, 1],
    ["non_retryable", RETRYABLE, 0],
    ["exhausted", {}, 0],
    ["exhausted", RETRYABLE, 1],
    ["none", {}, 0],
    ["none", RETRYABLE, 0],
  ] as const)("under the policy %s, with %j, leaves %i dead letters", (dlq, error, letters) => {
    const trial = solo({ dlq, retry: { ...retry, max_attempts: 1 } });
    fail(trial, error);
    expect(trial.last.deadLetters).toHaveLength(letters);
  });
});

test("attempts are numbered from 1, and each has deliveries of its own", () => {
  const trial = solo();
  fail(trial, RETRYABLE);
  trial.at(100_000).settle().loses("a");
  expect(trial.taskTexts("a").map(({ attempt, delivery }) => [attempt, delivery])).toEqual([
    [1, 1],
    [2, 1],
    [2, 2],
  ]);
  expect(new Set(trial.taskTexts("a").map((task) => task.idempotencyKey)).size).toBe(1);
});

describe("a failure that counts for nothing", () => {
  test("comes from a zombie whose task another worker has", () => {
    const trial = solo();
    const zombie = trial.token("a");
    trial.loses("a");
    const body = { kind: "taskFailed", token: zombie, error: failure(), runningMs: 5 } as const;
    expect(trial.send(body)).toMatchObject([{ kind: "resultIgnored", reason: "staleAttempt" }]);
    expect(trial.last.reply).toEqual({ refused: "STALE_ATTEMPT" });
    expect(trial.status("a")).toBe("queued");
  });

  test("comes from a lost delivery whose next one is not out yet", () => {
    const trial = solo();
    trial.room = () => 0;
    const zombie = trial.token("a");
    trial.loses("a");
    expect(trial.token("a")).toBe(zombie);
    expect(fail(trial, {})).toMatchObject([{ kind: "resultIgnored", reason: "staleAttempt" }]);
    expect(trial.status("a")).toBe("queued");
  });

  test("comes after the node completed, or a second time", () => {
    const trial = new Trial(workflow([node("a"), node("b")])).begin();
    trial.completes("a");
    const error = failure();
    const token = trial.token("a");
    expect(trial.send({ kind: "taskFailed", token, error, runningMs: 5 })).toMatchObject([{ reason: "staleAttempt" }]);
    expect(trial.status("a")).toBe("completed");
  });

  test("comes after the end, and is recorded as closed", () => {
    const trial = solo();
    trial.send({ kind: "cancel", request: "r" });
    expect(fail(trial, {})).toMatchObject([{ kind: "resultIgnored", reason: "closed" }]);
    expect(trial.last.reply).toEqual({ ok: { accepted: false, recorded: true } });
    expect(trial.last.deadLetters).toEqual([]);
  });

  test("is forged", () => {
    const trial = solo();
    const token = trial.token("a", { nonce: "guess" });
    expect(trial.send({ kind: "taskFailed", token, error: failure(), runningMs: 5 })).toMatchObject([
      { reason: "unknownDispatch" },
    ]);
    expect(trial.last.reply).toEqual({ refused: "TASK_TOKEN_INVALID" });
  });
});
