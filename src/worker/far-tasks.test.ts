import { expect, test } from "vitest";
import type { TaskCompleted, TaskFailed } from "../core/message.ts";
import { FarResults } from "./far-tasks.ts";

function told(body: Partial<TaskCompleted> | Partial<TaskFailed>): unknown {
  const text = JSON.stringify({ body: { token: "t", runningMs: 1, ...body } });
  const outcome = "output" in body ? ("completed" as const) : ("failed" as const);
  return new FarResults().read({ ref: "r", token: "t", partition: 0, outcome, text }).body;
}

test.each([
  ["longer than a server waits", 99_999_999_000, 31_536_000],
  ["in the past", -5_000, 0],
  ["an hour", 3_600_000, 3_600],
])("a service that says when to come again, %s, costs no result", (_, ms, seconds) => {
  const error = { code: "BUSY", message: "later", retryable: true };
  expect(told({ kind: "taskFailed", error, retryAfterMs: ms })).toMatchObject({
    error: { code: "BUSY", retry_after_seconds: seconds },
  });
  expect(told({ kind: "taskCompleted", output: { json: 1 }, closeForMs: ms })).toMatchObject({
    output: 1,
    close_limit_seconds: seconds,
  });
});

test.each([
  ["", "HANDLER_ERROR"],
  ["x".repeat(200), "x".repeat(128)],
])("a code that no server takes is told as one that it does", (code, expected) => {
  expect(told({ kind: "taskFailed", error: { code, message: "m", retryable: false } })).toMatchObject({
    error: { code: expected },
  });
});
