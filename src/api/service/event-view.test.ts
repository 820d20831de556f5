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

test("a fork shows what it took over as the outputs of its nodes", () => {
  const large = { blob: { hash: "abc", bytes: 70_000 } };
  const kept = [
    { node: "a", output: { json: { atMs: 1 } } },
    { node: "b", output: large },
  ];
  const event = {
    kind: "accepted",
    atMs: 0,
    workflow: "w",
    fork: { execution: "y", kept },
  } as unknown as ExecutionEvent;
  expect(showEvent(1, event, "x").data["fork"]).toEqual({
    execution: "y",
    kept: [
      { node: "a", output: { atMs: 1 } },
      { node: "b", output: { $large: { bytes: 70_000, sha256: "abc", href: "/v1/executions/x/nodes/b" } } },
    ],
  });
});
