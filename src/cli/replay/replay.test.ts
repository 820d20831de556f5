import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../json/json.ts";
import type { ShownEvent, ShownExecution } from "../shapes.ts";
import { differences } from "./compare.ts";
import { readRecording, type Recording } from "./recording.ts";
import { redact } from "./redact.ts";
import { replay, type Replayed } from "./replay.ts";

const DAY_MS = 86_400_000;

type Row = readonly [atMs: number, type: string, node?: string | undefined, data?: JsonObject, attempt?: number];

/** A recording by hand: when, what, of which node, with what. */
function recording(definition: JsonObject, rows: readonly Row[]): Recording {
  const events = rows.map(([atMs, type, node, data = {}, attempt], i): ShownEvent => {
    const at = new Date(Date.UTC(2026, 0, 1) + atMs).toISOString();
    return {
      seq: i + 1,
      type,
      at,
      ...(node !== undefined && { node_id: node }),
      ...(attempt !== undefined && { attempt }),
      data,
    };
  });
  const execution = {
    execution_id: "0198a1df-0000-7000-8000-000000000001",
    generation: 1,
    input: {},
    created_at: events[0]!.at,
  };
  return {
    millrace_export: 1,
    exported_at: "",
    release: "",
    execution: execution as unknown as ShownExecution,
    definition,
    events,
  };
}

async function replayed(given: Recording): Promise<ShownExecution & Pick<Replayed, "virtualMs">> {
  const result = await replay(given);
  if ("fault" in result) throw new Error(result.fault);
  return { ...result.execution, virtualMs: result.virtualMs };
}

describe("a replay", () => {
  test("lets days pass in no time, and decides a review when it was decided", async () => {
    const definition = {
      name: "w",
      nodes: [
        { id: "ask", handler: "review", config: { title: "ok?" } },
        { id: "later", handler: "delay", dependencies: ["ask"], config: { seconds: (3 * DAY_MS) / 1_000 } },
        { id: "out", handler: "output", dependencies: ["later"], config: { decision: "{{ ask.decision }}" } },
      ],
    };
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
        [2 * DAY_MS, "command_applied", undefined, { command: "decideReview" }],
        [2 * DAY_MS, "node_completed", "ask", { output: { decision: "approve", data: null } }],
      ]),
    );
    expect([result.status, result.output]).toEqual(["COMPLETED", { decision: "approve" }]);
    expect(result.virtualMs).toBeGreaterThanOrEqual(5 * DAY_MS);
  });

  test("gives each attempt what it gave, of a child too, and opens the generations that were opened", async () => {
    const definition = {
      name: "w",
      nodes: [
        { id: "a", handler: "mine", retry: { max_attempts: 2, base_delay_seconds: 1 } },
        { id: "child", handler: "workflow", dependencies: ["a"], config: { name: "other" } },
        { id: "b", handler: "mine", dependencies: ["child"], retry: { max_attempts: 1 } },
      ],
    };
    const error = { code: "HTTP_503", message: "busy", retryable: true };
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
        [10, "task_failed", "a", { error, retry_at: "2026-01-01T00:00:01.010Z" }, 1],
        [1_050, "task_completed", "a", { output: 1 }, 2],
        [2_000, "node_completed", "child", { output: { c: 2 } }],
        [2_100, "task_failed", "b", { error: { ...error, retryable: false }, retry_at: null }, 1],
        [60_000, "command_applied", undefined, { command: "retry" }],
        [60_000, "generation_opened", undefined, { generation: 2, scope: "failed" }],
        [60_100, "task_completed", "b", { output: 3 }, 1],
      ]),
    );
    expect(result).toMatchObject({
      status: "COMPLETED",
      generation: 2,
      nodes: { a: { attempt: 2, output: 1 }, child: { output: { c: 2 } }, b: { output: 3 } },
    });
  });

  test("does not time out what waited long for a worker, or was lost with three", async () => {
    const definition = { name: "w", nodes: [{ id: "a", handler: "mine", timeout_seconds: 2 }] };
    const error = { code: "POISON_TASK", message: "lost 3 times", retryable: false };
    const rows = (end: Row): Row[] => [
      [0, "accepted", undefined, { input: {} }],
      [0, "started"],
      [0, "task_dispatched", "a", {}, 1],
      end,
    ];
    const late = await replayed(recording(definition, rows([60_000, "task_completed", "a", { output: 1 }, 1])));
    expect(late).toMatchObject({ status: "COMPLETED", nodes: { a: { attempt: 1, output: 1 } } });
    const lost = await replayed(recording(definition, rows([60_000, "task_failed", "a", { error }, 1])));
    expect(lost).toMatchObject({ status: "FAILED", nodes: { a: { attempt: 1, error } } });
  });

  test("leaves alone what had no result when something else ended the execution", async () => {
    const definition = {
      name: "w",
      nodes: [
        { id: "a", handler: "mine", retry: { max_attempts: 1 } },
        { id: "b", handler: "mine" },
      ],
    };
    const error = { code: "BROKEN", message: "broke", retryable: false };
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
        [0, "task_dispatched", "a", {}, 1],
        [0, "task_dispatched", "b", {}, 1],
        [5_000, "task_failed", "a", { error, retry_at: null }, 1],
      ]),
    );
    expect(result).toMatchObject({
      status: "FAILED",
      error: { code: "BROKEN" },
      nodes: { b: { status: "CANCELLED", reason: "fail_fast" } },
    });
  });

  test("begins a fork with what it took over", async () => {
    const definition = {
      name: "w",
      nodes: [
        { id: "a", handler: "mine" },
        { id: "out", handler: "output", dependencies: ["a"], config: { a: "{{ a }}" } },
      ],
    };
    const fork = { execution: "0198a1df-0000-7000-8000-000000000000", kept: [{ node: "a", output: 1 }] };
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {}, fork }],
        [0, "started"],
      ]),
    );
    expect(result).toMatchObject({ status: "COMPLETED", output: { a: 1 } });
  });

  test("gives each item of a map what the graph inside it gave", async () => {
    const inside = [
      { id: "x", handler: "mine" },
      { id: "y", handler: "mine", dependencies: ["x"] },
    ];
    const definition = {
      name: "w",
      nodes: [{ id: "m", handler: "map", config: { items: [1, 2], nodes: inside, tolerated_failures: 1 } }],
    };
    const error = { code: "CHILD_FAILED", message: "failed", retryable: false };
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
        [100, "node_completed", "m[0]", { output: { y: 1 } }],
        [200, "node_failed", "m[1]", { error }],
      ]),
    );
    expect(result).toMatchObject({ status: "COMPLETED", nodes: { m: { output: [{ y: 1 }, null] } } });
  });

  test("gives each item of a map what the workflow gave that it called", async () => {
    const called = { items: [1, 2], handler: "workflow", config: { name: "kid", input: { n: "{{ item }}" } } };
    const result = await replayed(
      recording({ name: "w", nodes: [{ id: "m", handler: "map", config: called }] }, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
        [100, "node_completed", "m[0]", { output: 1 }],
        [200, "node_completed", "m[1]", { output: 2 }],
      ]),
    );
    expect(result).toMatchObject({ status: "COMPLETED", nodes: { m: { output: [1, 2] } } });
  });

  test("needs nobody to raise a budget that was raised, and exceeds one that was exceeded", async () => {
    const definition = {
      name: "w",
      budget: { calls: 1, on_limit: "pause" },
      on_error: "fail_branch",
      nodes: [
        { id: "a", handler: "mine" },
        { id: "b", handler: "mine", dependencies: ["a"] },
        { id: "c", handler: "mine", dependencies: ["b"], budget: { calls: 1, key: "all", on_limit: "fail" } },
      ],
    };
    const error = { code: "BUDGET_EXCEEDED", message: "used up", retryable: false };
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
        [10, "task_completed", "a", { output: 1 }, 1],
        [20, "command_applied", undefined, { command: "decideReview", by: "ann" }],
        [20, "gate_granted", "b", {}],
        [30, "task_completed", "b", { output: 2 }, 1],
        [30, "node_failed", "c", { error }],
      ]),
    );
    expect(result).toMatchObject({
      status: "PARTIAL",
      nodes: { b: { output: 2 }, c: { status: "FAILED", error: { code: "BUDGET_EXCEEDED" } } },
    });
  });

  test("has large outputs in full, and what a large map gave as a whole", async () => {
    const definition = {
      name: "w",
      nodes: [
        { id: "a", handler: "mine" },
        { id: "m", handler: "map", config: { items: [1, 2], handler: "mine" } },
        { id: "z", handler: "mine", dependencies: ["a", "m"] },
      ],
    };
    const large = "x".repeat(100_000);
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
        [0, "map_opened", "m", { chunked: true }],
        [10, "task_completed", "a", { output: large }, 1],
        [20, "node_completed", "m[0]", { output: { m: [1, 2] } }],
        [20, "node_completed", "m", { output: [1, 2] }],
        [30, "task_completed", "z", { output: large }, 1],
      ]),
    );
    expect(result).toMatchObject({
      status: "COMPLETED",
      output: { z: large },
      nodes: { a: { output: large }, m: { output: [1, 2] } },
    });
  });

  test("lets two people decide what needs two", async () => {
    const definition = {
      name: "w",
      nodes: [
        { id: "ask", handler: "review", config: { title: "ok?", four_eyes: true } },
        { id: "other", handler: "mine" },
      ],
    };
    const decision = { decision: "approve", data: null };
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
        [100, "command_applied", undefined, { command: "decideReview", by: "ann" }],
        [100, "review_changed", "ask", { first: { ...decision, by: "ann" } }],
        [100, "task_completed", "other", { output: 1 }, 1],
        [200, "command_applied", undefined, { command: "decideReview", by: "bob" }],
        [200, "node_completed", "ask", { output: { ...decision, by: "bob" } }],
      ]),
    );
    expect(result).toMatchObject({
      status: "COMPLETED",
      nodes: { ask: { output: { by: "bob", first: { by: "ann" } } }, other: { output: 1 } },
    });
  });

  test("decides a review of an earlier generation in that generation", async () => {
    const definition = {
      name: "w",
      nodes: [
        { id: "ask", handler: "review", config: { title: "ok?" } },
        { id: "a", handler: "mine", dependencies: ["ask"], retry: { max_attempts: 1 } },
      ],
    };
    const error = { code: "BROKEN", message: "broke", retryable: false };
    const given = recording(definition, [
      [0, "accepted", undefined, { input: {} }],
      [0, "started"],
      [100, "command_applied", undefined, { command: "decideReview" }],
      [100, "node_completed", "ask", { output: { decision: "approve", data: null } }],
      [200, "task_failed", "a", { error, retry_at: null }, 1],
      [300, "command_applied", undefined, { command: "retry" }],
      [300, "generation_opened", undefined, { generation: 2, scope: "failed" }],
      [400, "task_completed", "a", { output: 1 }, 1],
    ]);
    const result = await replayed({ ...given, execution: { ...given.execution, generation: 2 } });
    expect(result).toMatchObject({ status: "COMPLETED", generation: 2, nodes: { a: { output: 1 } } });
  });

  test("says of what was not recorded that it was not", async () => {
    const definition = { name: "w", nodes: [{ id: "a", handler: "mine", retry: { max_attempts: 1 } }] };
    const result = await replayed(
      recording(definition, [
        [0, "accepted", undefined, { input: {} }],
        [0, "started"],
      ]),
    );
    expect(result.nodes!["a"]!.error!.code).toBe("NOT_RECORDED");
  });
});

describe("a comparison", () => {
  const node = (status: string, output: Json = null): JsonObject => ({ status, attempt: 1, output, error: null });
  const execution = (status: string, nodes: JsonObject, output: Json = null): ShownExecution =>
    ({ status, nodes, output }) as unknown as ShownExecution;

  test("tells what is otherwise, node by node", () => {
    const recorded = execution("COMPLETED", { a: node("COMPLETED", 1), b: node("COMPLETED"), gone: node("COMPLETED") });
    const now = execution("FAILED", { a: node("COMPLETED", 2), b: node("FAILED"), fresh: node("SKIPPED") });
    expect(differences(recorded, now)).toEqual([
      "the execution: recorded COMPLETED, now FAILED",
      "a: recorded the output 1, now 2",
      "b: recorded COMPLETED, now FAILED",
      "gone: recorded COMPLETED, not there any more",
      "fresh: not recorded, now SKIPPED",
    ]);
    expect(differences(recorded, recorded)).toEqual([]);
  });

  test("does not care who decided a review, and when, nor for what was cut out", () => {
    const before = { decision: "approve", by: "ann", at: "2026", token: "[redacted]" };
    const after = { decision: "approve", by: "replay", at: "2027", token: "t0p" };
    expect(
      differences(
        execution("COMPLETED", { r: node("COMPLETED", before) }),
        execution("COMPLETED", { r: node("COMPLETED", after) }),
      ),
    ).toEqual([]);
  });
});

describe("what is exported", () => {
  const cases: readonly [given: Json, kept: Json][] = [
    [
      { password: "x", n: 1 },
      { password: "[redacted]", n: 1 },
    ],
    [
      { headers: { Authorization: "Basic abc", "X-Api-Key": "k", accept: "json" } },
      { headers: { Authorization: "[redacted]", "X-Api-Key": "[redacted]", accept: "json" } },
    ],
    [{ api_key: "{{ secrets.KEY }}" }, { api_key: "{{ secrets.KEY }}" }],
    [{ text: "call with Bearer abcdefgh12345 now" }, { text: "call with [redacted] now" }],
    [{ url: "https://user:pa55@host/x" }, { url: "https://[redacted]@host/x" }],
    [["sk-abcdefghijklmnopqrstuv"], ["[redacted]"]],
    [
      { usage: { prompt_tokens: 12 }, token_count: 3, secrets: ["a", "b"] },
      { usage: { prompt_tokens: 12 }, token_count: 3, secrets: ["[redacted]", "[redacted]"] },
    ],
    ["-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----", "[redacted]"],
  ];
  test.each(cases)("%j is %j", (given, kept) => {
    expect(redact(given)).toEqual(kept);
  });

  test.each([
    ["{", /it is not JSON/],
    ["[]", /it is no export/],
    ['{"millrace_export": 2}', /a later release/],
    ['{"millrace_export": 1}', /parts of it are missing/],
    [
      '{"millrace_export": 1, "execution": {"finished_at": null}, "definition": {}, "events": []}',
      /exported before its end/,
    ],
  ])("is not %s", (text, fault) => {
    expect(readRecording(text)).toEqual({ fault: expect.stringMatching(fault) as string });
  });
});
