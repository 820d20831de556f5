import { expect, test } from "vitest";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import { showEvent } from "./event-view.ts";

test("the end shows its error as the execution does, with the node that failed first", () => {
  const error = { code: "BROKEN", message: "broke", retryable: false, node: "f" };
  const event: ExecutionEvent = {
    kind: "executionEnded",
    atMs: 0,
    status: "failed",
    reason: "fail_fast",
    error,
    cause: "catch",
  };
  expect(showEvent(7, event, "x")).toEqual({
    seq: 7,
    type: "execution_ended",
    at: "1970-01-01T00:00:00.000Z",
    data: {
      status: "FAILED",
      reason: "fail_fast",
      error: { code: "BROKEN", message: "broke", retryable: false, node_id: "f" },
      cause: "catch",
    },
  });
});
