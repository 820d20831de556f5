import { describe, expect, test } from "vitest";
import type { RepeatPolicy, WorkflowNode } from "../../definition/workflow.ts";
import { executionMachine } from "./machine.ts";
import { engineNode, failure, node, RETRYABLE, START_MS, Trial, workflow } from "./test-execution.ts";

const branch: Partial<WorkflowNode> = { on_error: "fail_branch" };

function repeating(repeat: Partial<RepeatPolicy> = {}, more: Partial<WorkflowNode> = {}): Trial {
  const policy = { until: "r.done", every_seconds: 10, max: 3, ...repeat };
  return new Trial(workflow([node("r", [], { repeat: policy, ...branch, ...more }), node("b", ["r"])])).begin({
    json: { limit: 2 },
  });
}

test("a round is a task with its number, in its token too", () => {
  const trial = repeating();
  expect(trial.task("r")).toMatchObject({
    token: "nonce:x:1:r@1:1:1",
    iteration: 1,
    attempt: 1,
    idempotencyKey: "x/r@1/1",
  });
  expect(trial.view("r")).toMatchObject({ status: "QUEUED", iteration: 1, attempt: 1 });
});

test("it is repeated after the wait until the expression holds, and its output is that of the last round", () => {
  const trial = repeating().at(1000).completes("r", { done: false, n: 1 });
  expect(trial.view("r")).toMatchObject({ status: "WAITING", reason: "timer", until: START_MS + 11_000, iteration: 1 });
  expect(executionMachine.nextWakeMs(trial.state)).toBe(START_MS + 11_000);
  expect(trial.shown["b"]).toBe("PENDING");
  expect(trial.at(10_999).step()).toEqual([]);
  trial.at(11_000).settle();
  expect(trial.task("r")).toMatchObject({ token: "nonce:x:1:r@2:1:1", iteration: 2, idempotencyKey: "x/r@2/1" });
  trial.completes("r", { done: true, n: 2 });
  expect(trial.view("r")).toMatchObject({ status: "COMPLETED", iteration: 2, output: { json: { done: true, n: 2 } } });
  expect(trial.shown["b"]).toBe("QUEUED");
});

test("the first round may be enough", () => {
  expect(repeating().completes("r", { done: true }).view("r")).toMatchObject({ status: "COMPLETED", iteration: 1 });
});

test("without a wait the next round begins at once", () => {
  const trial = repeating({ every_seconds: 0 }).completes("r", { done: false });
  expect(trial.view("r")).toMatchObject({ status: "QUEUED", iteration: 2 });
});

test("out of rounds it fails, and is not tried again", () => {
  const trial = repeating({ every_seconds: 0 });
  for (let round = 1; round <= 3; round++) trial.completes("r", { done: false });
  expect(trial.view("r")).toMatchObject({
    status: "FAILED",
    iteration: 3,
    error: { code: "REPEAT_EXHAUSTED", retryable: false, message: 'It was repeated 3 times, and "until" never held' },
  });
  expect(trial.letters).toMatchObject([{ id: "x:1:r", class: "poison" }]);
  expect(trial.tasks).toHaveLength(3);
});

describe("`until`", () => {
  test("sees the node by its id, the input and the nodes before", () => {
    const repeat = { until: "r.n > p.n + input.limit", every_seconds: 0, max: 9 };
    const trial = new Trial(workflow([node("p"), node("r", ["p"], { repeat })])).begin({ json: { limit: 2 } });
    trial.completes("p", { n: 1 }).completes("r", { n: 3 });
    expect(trial.view("r").iteration).toBe(2);
    expect(trial.completes("r", { n: 4 }).status("r")).toBe("completed");
  });

  test("that cannot be evaluated fails the node", () => {
    const trial = repeating().completes("r", { nothing: 1 });
    expect(trial.view("r")).toMatchObject({ status: "FAILED", error: { code: "CONDITION_ERROR", retryable: false } });
  });

  test("asks for a large output first", () => {
    const trial = repeating();
    const blob = { hash: "h", bytes: 90_000 };
    trial.send({ kind: "taskCompleted", token: trial.token("r"), output: { blob }, runningMs: 1 });
    expect([trial.step(), trial.last.needs]).toEqual([[], [{ blob }]]);
    expect(trial.view("r").status).toBe("WAITING");
    trial.fetched.set("h", { done: true });
    expect(trial.settle().view("r")).toMatchObject({ status: "COMPLETED", output: { blob } });
  });

  test("keeps an output in memory until it has been judged", () => {
    const trial = repeating();
    const output = { json: { done: false, text: "x".repeat(3000) }, bytes: 3020 };
    trial.send({ kind: "taskCompleted", token: trial.token("r"), output, runningMs: 1 });
    trial.settle();
    expect(trial.view("r")).toMatchObject({ status: "WAITING", reason: "timer" });
  });
});

describe("attempts", () => {
  const retry = { max_attempts: 2, base_delay_seconds: 1, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };

  test("belong to a round: each has all of them", () => {
    const trial = repeating({ every_seconds: 0 }, { retry });
    trial.fails("r", RETRYABLE);
    expect(trial.view("r")).toMatchObject({ status: "WAITING", reason: "retry", iteration: 1, attempt: 1 });
    trial.at(1000).settle().completes("r", { done: false });
    expect(trial.task("r")).toMatchObject({ iteration: 2, attempt: 1, delivery: 1 });
    trial.fails("r", RETRYABLE).at(2000).settle();
    expect(trial.task("r")).toMatchObject({ iteration: 2, attempt: 2, token: "nonce:x:1:r@2:2:1" });
    trial.fails("r", RETRYABLE);
    expect(trial.view("r")).toMatchObject({ status: "FAILED", attempt: 2, error: failure(RETRYABLE) });
  });

  test("and deliveries too", () => {
    const trial = repeating({ every_seconds: 0 }).loses("r").loses("r").completes("r", { done: false });
    trial.loses("r").loses("r");
    expect(trial.task("r")).toMatchObject({ iteration: 2, delivery: 3 });
  });

  test("of one round have one key", () => {
    const trial = repeating({ every_seconds: 0 }, { retry }).fails("r", RETRYABLE).at(1000).settle();
    trial.completes("r", { done: false });
    expect(trial.taskTexts("r").map(({ idempotencyKey }) => idempotencyKey)).toEqual(["x/r@1/1", "x/r@1/1", "x/r@2/1"]);
  });
});

describe("a result of another round", () => {
  test("that is over is the same completion again while it is judged or waited, and stale once the next has begun", () => {
    const trial = repeating();
    const token = trial.token("r");
    const completion = { kind: "taskCompleted", token, output: { json: { done: true } }, runningMs: 1 } as const;
    trial.completes("r", { done: false });
    expect(trial.send(completion)).toEqual([]);
    expect(trial.last.reply).toEqual({ ok: { accepted: true } });
    trial.at(10_000).settle();
    expect(trial.send(completion)).toMatchObject([{ kind: "resultIgnored", reason: "staleAttempt" }]);
    expect(trial.last.reply).toEqual({ refused: "STALE_ATTEMPT" });
    expect(trial.view("r")).toMatchObject({ status: "QUEUED", iteration: 2 });
  });

  test("that has not begun is forged", () => {
    const trial = repeating();
    trial.send({ kind: "taskCompleted", token: trial.token("r", { round: 2 }), output: { json: 1 }, runningMs: 1 });
    expect(trial.last.reply).toEqual({ refused: "TASK_TOKEN_INVALID" });
  });

  test("without a round is forged", () => {
    const trial = repeating();
    const token = trial.token("r").replace("r@1", "r");
    trial.send({ kind: "taskCompleted", token, output: { json: 1 }, runningMs: 1 });
    expect(trial.last.reply).toMatchObject({
      refused: expect.stringMatching(/^(STALE_ATTEMPT|TASK_TOKEN_INVALID)$/) as string,
    });
    expect(trial.status("r")).toBe("queued");
  });

  test("from a lost delivery of the round counts, and what is out is withdrawn", () => {
    const trial = repeating();
    const zombie = trial.token("r");
    trial.loses("r");
    const newest = trial.token("r");
    trial.send({ kind: "taskCompleted", token: zombie, output: { json: { done: true } }, runningMs: 1 });
    expect(trial.last.revoke).toEqual([newest]);
    expect(trial.settle().status("r")).toBe("completed");
  });

  test("counts while the next delivery waits for room", () => {
    const trial = repeating();
    const zombie = trial.token("r");
    trial.room = () => 0;
    trial.loses("r");
    trial.send({ kind: "taskCompleted", token: zombie, output: { json: { done: true } }, runningMs: 1 });
    expect(trial.settle().status("r")).toBe("completed");
  });
});

test("each round is made of what there is then", () => {
  const config = { n: "{{ q.n | default(0) }}" };
  const repeat = { until: "false", every_seconds: 0, max: 3 };
  const r = node("r", ["p", "q"], { join: "one_success", config, repeat });
  const trial = new Trial(workflow([node("p"), node("q"), r])).begin().completes("p");
  trial.completes("q", { n: 9 });
  expect(trial.task("r").config).toEqual({ n: 0 });
  trial.completes("r", {});
  expect(trial.task("r").config).toEqual({ n: 9 });
});

test("its condition is asked before the first round only", () => {
  const trial = repeating({ every_seconds: 0 }, { condition: "input.limit == 2" });
  trial.completes("r", { done: false }).completes("r", { done: true });
  expect(trial.view("r")).toMatchObject({ status: "COMPLETED", iteration: 2 });
});

describe("a repeat that is cut off", () => {
  test.each<[string, (trial: Trial) => Trial]>([
    ["between two rounds", (t) => t.completes("r", { done: false })],
    ["in a round", (t) => t],
    ["between two attempts", (t) => t.fails("r", RETRYABLE)],
  ])("%s reads as cancelled, and begins with round 1 in the next generation", (_, then) => {
    const trial = then(repeating()).does({ kind: "cancel" });
    expect(trial.shown["r"]).toBe("CANCELLED cancel");
    trial.does({ kind: "retry", scope: "failed" });
    expect(trial.task("r")).toMatchObject({ generation: 2, iteration: 1, attempt: 1 });
  });
});

describe("the keys of a repeat that is run again", () => {
  const again = (trial: Trial): Trial => trial.does({ kind: "retry", scope: "failed" });
  const keysOf = (trial: Trial): string[] =>
    trial.taskTexts("r").flatMap(({ generation, idempotencyKey }) => (generation === 1 ? [] : idempotencyKey));

  test("are those of before if the first round was cut off", () => {
    expect(keysOf(again(repeating().does({ kind: "cancel" })))).toEqual(["x/r@1/1"]);
  });

  test("are new for rounds that have answered, and stay for the one of which nobody knows", () => {
    const trial = repeating({ every_seconds: 0 }).completes("r", { done: false }).does({ kind: "cancel" });
    again(trial).completes("r", { done: false }).completes("r", { done: false });
    expect(keysOf(trial)).toEqual(["x/r@1/2", "x/r@2/1", "x/r@3/2"]);
  });

  test("stay over several generations until that round has answered", () => {
    const trial = repeating({ every_seconds: 0 }).completes("r", { done: false }).does({ kind: "cancel" });
    again(trial).fails("r");
    again(trial).completes("r", { done: false }).does({ kind: "cancel" });
    again(trial).completes("r", { done: false }).fails("r");
    again(trial).completes("r", { done: false });
    expect(keysOf(trial).join(" ")).toBe("x/r@1/2 x/r@1/3 x/r@2/1 x/r@1/4 x/r@2/1 x/r@1/5 x/r@2/5");
  });

  test("stay if that round was begun again and never went out", () => {
    const trial = repeating({ every_seconds: 0 }).completes("r", { done: false }).does({ kind: "cancel" });
    const { room } = again(trial);
    trial.room = () => 0;
    trial.completes("r", { done: false }).does({ kind: "cancel" });
    trial.room = room;
    again(trial).completes("r", { done: false });
    expect(keysOf(trial)).toEqual(["x/r@1/2", "x/r@1/3", "x/r@2/1"]);
  });

  test("are new for all of them if what it is given was edited", () => {
    const trial = repeating({ every_seconds: 0 }).completes("r", { done: false }).does({ kind: "cancel" });
    trial.does({ kind: "retry", scope: "descendants", from: "r", config: { other: 1 } });
    expect(keysOf(trial.completes("r", { done: false }))).toEqual(["x/r@1/2", "x/r@2/2"]);
  });
});

test("a paused execution begins no round", () => {
  const trial = repeating().completes("r", { done: false }).does({ kind: "pause" }).at(10_000).settle();
  expect(trial.tasks).toHaveLength(1);
  expect(trial.does({ kind: "resume" }).task("r").iteration).toBe(2);
});

test("one that has begun is not stopped by a router that comes later", () => {
  const repeat = { until: "r.done", every_seconds: 5, max: 3 };
  const routes = [{ when: "false", to: "r" }];
  const nodes = [
    node("p"),
    node("q"),
    engineNode("x", "router", { mode: "exclusive", routes, on_error: "fail" }, ["p"]),
    node("r", ["q", "x"], { join: "one_success", repeat }),
  ];
  const trial = new Trial(workflow(nodes)).begin().completes("q").completes("r", { done: false });
  trial.room = () => 0;
  expect(trial.at(5000).settle().shown["r"]).toBe("PENDING");
  expect(trial.completes("p").shown["r"]).toBe("PENDING");
});
