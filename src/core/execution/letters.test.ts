import { describe, expect, test } from "vitest";
import type { WorkflowNode } from "../../definition/workflow.ts";
import type { JsonObject } from "../../json/json.ts";
import { engineNode, mapNode, node, RETRYABLE, START_MS, Trial, workflow } from "./test-execution.ts";

const branch: Partial<WorkflowNode> = { on_error: "fail_branch" };
const once = { max_attempts: 1, base_delay_seconds: 0, max_delay_seconds: 0, exponential_base: 1, jitter: 0 };

function letterOf(trial: Trial): Record<string, unknown> {
  expect(trial.letters).toHaveLength(1);
  const { id, class: kind, queue, text } = trial.letters[0]!;
  return { id, class: kind, queue, ...(JSON.parse(text) as object) };
}

test("a letter has all that one needs to know of the failure", () => {
  const config = { url: "{{ input.url }}", auth: "{{ secrets.TOKEN }}" };
  const trial = new Trial(workflow([node("a", [], { config, queue: "q", ...branch })])).begin({ json: { url: "u" } });
  trial
    .fails("a", RETRYABLE)
    .at(1000)
    .settle()
    .fails("a", { details: { status: 500 } });
  expect(letterOf(trial)).toEqual({
    id: "x:1:a",
    class: "poison",
    queue: "q",
    execution_id: "x",
    generation: 1,
    node_id: "a",
    original_message_id: "x:1:a:2",
    handler: "step",
    attempts: 2,
    error: { code: "HANDLER_ERROR", message: "broke", retryable: false, details: { status: 500 } },
    config,
    rejected_at_ms: START_MS + 1000,
    status: "open",
  });
});

describe("of a config that is out of all proportion a letter shows", () => {
  const shown = (config: JsonObject): unknown =>
    letterOf(new Trial(workflow([node("a", [], { config })])).begin().fails("a"))["config"];
  const large = (bytes: number) => ({ $large: { bytes, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string } });

  test("all but its largest members", () => {
    const small = "s".repeat(8_000);
    expect(shown({ first: 1, text: "é".repeat(20_000), list: [small, small], small })).toEqual({
      first: 1,
      text: large(40_002),
      list: large(16_007),
      small,
    });
  });

  test("how large it is, if it has very many", () => {
    const config = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i]));
    expect(shown(config)).toEqual(large(JSON.stringify(config).length));
  });

  test("all of it up to 16 KiB", () => {
    const config = { text: "x".repeat(16 * 1024 - '{"text":""}'.length) };
    expect(shown(config)).toEqual(config);
  });
});

// Engine's own nodes too, each by its own fault.
const faults: readonly (readonly [string, () => Trial, string, string])[] = [
  [
    "a handler's last attempt",
    () => new Trial(workflow([node("a", [], { retry: once })])).begin().fails("a", RETRYABLE),
    "exhausted",
    "HANDLER_ERROR",
  ],
  ["a handler's refusal", () => new Trial(workflow([node("a")])).begin().fails("a"), "poison", "HANDLER_ERROR"],
  ["a handler's timeout", () => timedOut(), "exhausted", "TIMEOUT"],
  [
    "a wait in the queue",
    () => new Trial(workflow([node("a", [], { queue_timeout_seconds: 5 })])).begin().at(5000).settle(),
    "poison",
    "QUEUE_TIMEOUT",
  ],
  [
    "a poisoned task",
    () => new Trial(workflow([node("a")])).begin().loses("a").loses("a").loses("a"),
    "poison",
    "POISON_TASK",
  ],
  [
    "a template",
    () => new Trial(workflow([node("a", [], { config: { x: "{{ input.x }}" } })])).begin({ json: {} }),
    "poison",
    "TEMPLATE_UNRESOLVED",
  ],
  [
    "a condition",
    () => new Trial(workflow([node("a", [], { condition: "input.x" })])).begin({ json: {} }),
    "poison",
    "CONDITION_ERROR",
  ],
  [
    "a signal that did not come",
    () => new Trial(workflow([engineNode("a", "wait", { signal: "s", timeout_seconds: 5 })])).begin().at(5000).settle(),
    "poison",
    "SIGNAL_TIMEOUT",
  ],
  [
    "a review that nobody decided",
    () =>
      new Trial(workflow([engineNode("a", "review", { due_seconds: 5, on_due: "fail" })])).begin().at(5000).settle(),
    "poison",
    "REVIEW_EXPIRED",
  ],
  [
    "a map of no list",
    () => new Trial(workflow([mapNode("a", { items: "{{ input }}", handler: "step" })])).begin({ json: 5 }),
    "poison",
    "MAP_ITEMS_INVALID",
  ],
];

function timedOut(): Trial {
  const trial = new Trial(workflow([node("a", [], { retry: once, timeout_seconds: 5 })])).begin();
  trial.starts("a");
  return trial.at(60_000).settle();
}

test.each(faults)("%s leaves one, of class %s", (_, make, kind, code) => {
  expect(letterOf(make())).toMatchObject({ id: "x:1:a", class: kind, error: { code } });
});

describe("no letter is left", () => {
  test.each<[string, () => Trial]>([
    ["by an attempt that is followed by another", () => new Trial(workflow([node("a")])).begin().fails("a", RETRYABLE)],
    [
      "by what was skipped or cut off",
      () => new Trial(workflow([node("f", [], { dlq: "none" }), node("a", ["f"]), node("b")])).begin().fails("f"),
    ],
    ["by a cancel", () => new Trial(workflow([node("a")])).begin().does({ kind: "cancel" })],
    [
      "by the workflow's timeout",
      () => new Trial(workflow([node("a")], { timeout_seconds: 5 })).begin().at(5000).settle(),
    ],
    ["by an end", () => new Trial(workflow([engineNode("e", "end", { status: "FAILED" })])).begin()],
    ["by a result that came too late", () => late()],
  ])("%s", (_, make) => {
    const trial = make();
    expect(trial.letters).toEqual([]);
    expect(trial.state.letters.size).toBe(0);
  });

  function late(): Trial {
    const trial = new Trial(workflow([node("a")])).begin().does({ kind: "cancel" });
    return trial.fails("a");
  }
});

test("one that was caught, or is tolerated, leaves one all the same", () => {
  const caught = new Trial(workflow([node("a"), node("c", [{ id: "a", on: "failed" }])])).begin().fails("a");
  expect(letterOf(caught)).toMatchObject({ node_id: "a" });
  const tolerated = new Trial(workflow([node("a", [], { on_error: "continue" })])).begin().fails("a");
  expect(letterOf(tolerated)).toMatchObject({ node_id: "a" });
});

test("the state knows each that was written, by the policy of its node", () => {
  for (const dlq of ["all", "non_retryable", "exhausted", "none"] as const) {
    const trial = new Trial(
      workflow([node("a", [], { dlq, ...branch }), node("b", [], { dlq, retry: once, ...branch })]),
    ).begin();
    trial.fails("a").fails("b", RETRYABLE);
    expect([dlq, [...trial.state.letters.keys()]]).toEqual([dlq, trial.letters.map(({ id }) => id)]);
  }
});
