import { describe, expect, it } from "vitest";
import { compileCondition } from "../../expression/condition.ts";
import type { NodeView, Scope } from "../../expression/scope.ts";
import { compileValue } from "../../expression/template.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import type { Evidence } from "./evidence.ts";
import { conditionOf } from "./reference-condition.ts";
import type { Given } from "./given.ts";
import { givenTo } from "./reference-config.ts";
import { MISSING, type Reader, UNKNOWN } from "./reference-path.ts";
import { join } from "./reference-rules.ts";
import { Story } from "./story.ts";
import { FATAL, node, TestWorld } from "./test-world.ts";

const A = {
  value: 7,
  text: "hi {{ secrets.X }}",
  flag: true,
  none: null,
  list: [{ x: 1 }, [2]],
  output: { y: 3 },
  error: "key",
};
const INPUT = { n: 2, deep: { s: "é" } };

/** A node about to run: `a` and `a.b-c` have completed, `f` has failed, `s` was skipped. */
function reader(config: JsonObject, condition?: string): Reader {
  const world = new TestWorld([
    node("a"),
    node("a.b-c"),
    node("f"),
    node("s"),
    node("n", { config, dependencies: ["a", "f"], ...(condition !== undefined && { condition }) }),
  ]);
  const story = new Story("execution/e1");
  const events = [
    world.accepted({ input: { json: INPUT } }),
    world.started(),
    world.completed("a", A),
    world.completed("a.b-c", [10, 20]),
    world.failed("f", FATAL),
    world.skipped("s", "condition"),
  ];
  for (const event of events) story.fold(event, {} as never, { definitions: { d1: world.workflow } } as never);
  const evidence = { blob: () => undefined } as Pick<Evidence, "blob"> as Evidence;
  return { story, node: story.node("n")!, seen: null, commit: {} as never, evidence };
}

const SCOPE: Scope = {
  executionId: "e1",
  input: { kind: "output", value: INPUT },
  node: (id) => {
    const views: Record<string, NodeView> = {
      a: { kind: "output", value: A },
      "a.b-c": { kind: "output", value: [10, 20] },
      f: { kind: "error", error: FATAL as unknown as Json },
      s: { kind: "none" },
      n: { kind: "none" },
    };
    return views[id];
  },
};
const OPTIONS = { nodeIds: new Set(["a", "a.b-c", "f", "s", "n"]) };

describe("the reference resolver agrees with the engine's", () => {
  const templates = [
    "plain",
    "{{ a.value }}",
    "{{a.value}}",
    "{{ a }}",
    "{{ a.output }}",
    "{{ a.output.output.y }}",
    "{{ a.list[0].x }}",
    "{{ a.list.1[0] }}",
    "{{ a.list[5] }}",
    "{{ a.none }}",
    "{{ a.none.x }}",
    "{{ a.none | default(5) }}",
    "{{ a.nothing }}",
    '{{ a.nothing | default("x y") }}',
    "{{ a.nothing | default('q') }}",
    "{{ a.nothing|default([1, 2]) }}",
    "{{ a.nothing | default({}) }}",
    "{{ a.error }}",
    "{{ f.error.code }}",
    "{{ f.error }}",
    "{{ f.value }}",
    "{{ f.output | default(0) }}",
    "{{ s }}",
    "{{ s.value | default(-1) }}",
    '{{ nodes["a.b-c"][1] }}',
    '{{ nodes["a.b-c"] }} and {{ a.text }}',
    "{{ input.n }}",
    "{{ input }}",
    "{{ input.deep.s }}!",
    "{{ execution.id }}",
    "n={{ input.n }} o={{ input.deep }} f={{ a.flag }} z={{ a.none }}",
    "{{ secrets.X }}",
    "Bearer {{ secrets.X }}",
    "{{ input.n }}{{ secrets.X }}:{{ secrets.Y }}{{ a.text }}.",
  ];
  const configs: JsonObject[] = [
    ...templates.map((template) => ({ "k/~": template })),
    { one: ["{{ input.n }}", { two: "{{ secrets.X }}" }], three: "{{ secrets.Y }}", four: 4 },
    {},
  ];
  it.each(configs)("%j", (config) => {
    const real = compileValue(config, OPTIONS).resolve(SCOPE);
    const ours = givenTo(reader(config));
    if (real.kind === "failed") return expect(ours).toBe(MISSING);
    expect(ours).not.toBe(UNKNOWN);
    const { config: value, holes } = ours as Given;
    expect(JSON.stringify({ value, holes })).toBe(
      JSON.stringify({ value: real.kind === "resolved" && real.value, holes: real.kind === "resolved" && real.holes }),
    );
  });

  it.each(["{{ a.value | upper }}", "{{ a.value + 1 }}", "{{ a.value", "{{ item }}", "{{ a.x | default(y) }}"])(
    "and does not judge %s",
    (template) => {
      expect(givenTo(reader({ x: template }))).toBe(UNKNOWN);
    },
  );
});

describe("the reference evaluator agrees with the engine's", () => {
  it.each([
    "a.value > 3",
    "a.value >= 7",
    "a.value < 7",
    "a.value <= 6.5",
    "a.value == 7",
    'a.value == "7"',
    'a.value != "x"',
    "a.value > 'x'",
    "a.text > 'a'",
    "a.flag",
    "{{ a.flag }}",
    "!a.flag",
    "a.value",
    "a.none",
    "a.none == null",
    "a.nothing",
    "a.nothing > 1",
    "has(a.nothing)",
    "has(a.nothing.x)",
    "has(a.value)",
    "has(s.value)",
    "has(s.value) && s.value < 3",
    "s.value < 3",
    "s.value < 3 || a.flag",
    "s.value < 3 && !a.flag",
    "!a.flag && s.value < 3",
    "a.value > 3 && input.n >= 2",
    "(a.value > 30 || input.n >= 2) && true",
    "input.n > -1",
    'nodes["a.b-c"][0] == 10',
    "f.error.code == 'FATAL'",
    "f.value == 1",
  ])("%s", (condition) => {
    const real = compileCondition(condition, OPTIONS).evaluate(SCOPE);
    const verdict = real.kind === "failed" ? "error" : String(real.kind === "resolved" && real.value);
    expect(conditionOf(reader({}, condition))).toBe(verdict);
  });

  it.each(["size(a.list) > 1", "a.value + 1 > 3", "a == a", "a.value in [7]"])("and does not judge %s", (condition) => {
    expect(conditionOf(reader({}, condition))).toBe("unknown");
  });
});

describe("the reference joins", () => {
  const counts = (undecided: number, ok: number, harmless: number, bad: number) => ({
    undecided,
    ok,
    void: harmless,
    bad,
  });
  it.each([
    ["none_failed", counts(0, 0, 0, 0), "run"],
    ["none_failed", counts(1, 1, 0, 1), "wait"],
    ["none_failed", counts(0, 1, 1, 0), "run"],
    ["none_failed", counts(0, 1, 1, 1), "skipUpstream"],
    ["none_failed", counts(0, 0, 2, 0), "skipCondition"],
    ["all_success", counts(0, 2, 0, 0), "run"],
    ["all_success", counts(0, 1, 1, 0), "skipCondition"],
    ["all_success", counts(0, 1, 1, 1), "skipUpstream"],
    ["all_done", counts(1, 1, 0, 0), "wait"],
    ["all_done", counts(0, 0, 1, 1), "run"],
    ["one_success", counts(2, 1, 0, 0), "run"],
    ["one_success", counts(1, 0, 0, 1), "wait"],
    ["one_success", counts(0, 0, 1, 1), "skipUpstream"],
    ["one_success", counts(0, 0, 2, 0), "skipCondition"],
    ["quorum:2", counts(0, 2, 0, 1), "run"],
    ["quorum:2", counts(1, 1, 0, 1), "wait"],
    ["quorum:2", counts(0, 1, 0, 2), "skipUpstream"],
  ] as const)("%s %j: %s", (rule, edges, verdict) => {
    expect(join(rule, edges)).toBe(verdict);
  });
});
