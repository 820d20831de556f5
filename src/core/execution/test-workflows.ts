import type { Dependency, Join, OnError, Workflow, WorkflowNode } from "../../definition/workflow.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import type { Random } from "../../simulator/random.ts";
import { node as nodeOf, START_MS, workflow as workflowOf } from "./test-execution.ts";

/** The names that waits listen to. */
export const SIGNALS = ["s1", "s2"] as const;

const QUEUES = ["step", "fast", "slow"] as const;

/** A workflow with everything in it that the core knows: every join, edge, engine's own node and rule. */
export function randomWorkflow(random: Random): Workflow {
  const size = random.weighted([
    [2, random.integer(1, 4)],
    [6, random.integer(5, 14)],
    [1, random.integer(15, 30)],
  ]);
  const onError = random.pick<OnError>(["fail_fast", "fail_branch", "continue"]);
  const shape = random.pick(["random", "random", "chain", "fan", "layers"] as const);
  const nodes: WorkflowNode[] = [];
  for (let i = 0; i < size; i++) nodes.push(taskNode(random, i, chooseParents(random, i, size, shape, nodes), onError));
  return workflowOf(withControlNodes(random, nodes), {
    on_error: onError,
    timeout_seconds: random.weighted([
      [1, random.integer(5, 40)],
      [6, 600],
      [0.5, 0],
    ]),
    max_parallel_nodes: random.chance(0.2) ? random.integer(1, 4) : null,
  });
}

function chooseParents(
  random: Random,
  index: number,
  size: number,
  shape: "random" | "chain" | "fan" | "layers",
  before: readonly WorkflowNode[],
): string[] {
  if (index === 0) return [];
  const ids = before.map((node) => node.id);
  if (shape === "chain") return [ids.at(-1)!];
  if (shape === "fan") return index === size - 1 && size > 2 ? ids.slice(1) : [ids[0]!];
  if (shape === "layers") return ids.slice(Math.max(0, index - 4), index - (index % 3)).slice(-3);
  const count = random.weighted([
    [1, 0],
    [5, 1],
    [4, 2],
    [2, 3],
    [1, 6],
  ]);
  const chosen = new Set<string>();
  while (chosen.size < Math.min(index, count)) chosen.add(random.pick(random.chance(0.6) ? ids.slice(-4) : ids));
  return [...chosen];
}

function taskNode(random: Random, index: number, parents: readonly string[], onError: OnError): WorkflowNode {
  const condition = parents.length > 0 && random.chance(0.15) ? randomCondition(random, parents) : undefined;
  const dependencies = parents.map((id): Dependency => {
    const on = random.weighted([
      [20, "completed" as const],
      [1, "failed" as const],
      [1, "done" as const],
    ]);
    return on === "completed" ? id : { id, on };
  });
  return nodeOf(random.chance(0.9) ? `n${index}` : `a.b-${index}#x`, dependencies, {
    config: randomConfig(random, parents),
    timeout_seconds: random.integer(2, 12),
    queue_timeout_seconds: random.chance(0.05) ? random.integer(3, 20) : 400,
    retry: {
      max_attempts: random.integer(1, 4),
      base_delay_seconds: random.pick([0, 0.1, 1, 2]),
      max_delay_seconds: 4,
      exponential_base: 2,
      jitter: random.pick([0, 0.1, 1]),
    },
    ...(condition !== undefined && { condition }),
    condition_on_error: random.pick(["fail", "skip"] as const),
    join: randomJoin(random, parents.length),
    on_error: random.chance(0.15) ? random.pick(["fail_fast", "fail_branch", "continue"] as const) : onError,
    inputs: random.chance(0.1),
    queue: random.pick(QUEUES),
    dlq: random.weighted([
      [8, "all" as const],
      [1, "none" as const],
      [1, "non_retryable" as const],
      [1, "exhausted" as const],
    ]),
  });
}

function randomJoin(random: Random, parents: number): Join {
  if (parents === 0 || random.chance(0.75)) return "none_failed";
  return random.pick<Join>(["all_success", "all_done", "one_success", `quorum:${random.integer(1, parents)}`]);
}

function randomConfig(random: Random, parents: readonly string[]): JsonObject {
  const config: { [key: string]: Json } = { literal: random.integer(0, 9) };
  for (const parent of parents.slice(0, 6)) {
    if (random.chance(0.3)) continue;
    config[`from_${parent}`] = random.weighted<Json>([
      [4, `{{ ${reference(parent)}.value | default(-1) }}`],
      [1, `{{ ${reference(parent)} | default({}) }}`],
      [2, { deep: [`value {{ ${reference(parent)}.nested.x[0] | default(0) }} of {{ execution.id }}`] }],
      [1, `{{ ${reference(parent)}.value }}`],
    ]);
  }
  if (random.chance(0.2)) config["input"] = "{{ input.n }}";
  if (random.chance(0.1)) config["secret"] = "Bearer {{ secrets.TOKEN }}";
  return config;
}

function randomCondition(random: Random, parents: readonly string[]): string {
  const parent = reference(random.pick(parents));
  return random.pick([
    `${parent}.value > ${random.integer(0, 9)}`,
    `has(${parent}.value)`,
    `${parent}.flag`,
    `has(${parent}.value) && ${parent}.value < ${random.integer(2, 9)}`,
    `input.n > ${random.integer(0, 5)}`,
  ]);
}

/** Turns some nodes into those that the engine runs itself, and adds the rules that only some nodes have. */
function withControlNodes(random: Random, nodes: readonly WorkflowNode[]): WorkflowNode[] {
  const dependants = new Map<string, string[]>();
  for (const { id, dependencies } of nodes) {
    for (const dependency of dependencies) {
      const parent = idOf(dependency);
      dependants.set(parent, [...(dependants.get(parent) ?? []), id]);
    }
  }
  return nodes.map((node) => controlNode(random, node, dependants.get(node.id) ?? []));
}

function controlNode(random: Random, node: WorkflowNode, children: readonly string[]): WorkflowNode {
  const more: Partial<WorkflowNode> = {
    ...(random.chance(0.2) && { priority: random.integer(-1, 1) }),
    ...(node.dependencies.length > 1 && random.chance(0.3) && { join_timeout_seconds: random.pick([1, 10, 30]) }),
  };
  if (random.chance(0.6)) return Object.assign(node, more);
  const engine = (handler: string, config: JsonObject): WorkflowNode => {
    return Object.assign(node, more, { handler, queue: handler, config, timeout_seconds: null, inputs: false });
  };
  const parents = node.dependencies.map(idOf);
  return random.weighted<() => WorkflowNode>([
    [2, () => engine("wait", { seconds: random.pick([0, 1, 5, 30]) })],
    [1, () => engine("wait", { until: new Date(START_MS + random.integer(-5, 60) * 1000).toISOString() })],
    [3, () => engine("wait", { signal: random.pick(SIGNALS), timeout_seconds: random.pick([5, 1000]) })],
    [3, () => engine("review", reviewConfig(random))],
    [3, () => engine("workflow", workflowConfig(random))],
    [children.length > 0 ? 4 : 0, () => engine("router", routerConfig(random, parents, children))],
    [6, () => Object.assign(engine("map", mapConfig(random, parents)), { queue: "step", timeout_seconds: 5 })],
    [2, () => engine("input", { n: 1 })],
    [2, () => engine("output", random.chance(0.5) ? {} : { of: "{{ input.n }}" })],
    [0.5, () => engine("end", { status: random.pick(["COMPLETED", "FAILED"]), output: { got: "{{ input.n }}" } })],
    [4, () => Object.assign(node, more, { repeat: repeatOf(random, node.id) })],
  ])();
}

function reviewConfig(random: Random): JsonObject {
  const onDue = random.pick<Json>(["fail", { decision: "reject", data: { why: "late" } }]);
  const form = { type: "object", properties: { amount: { type: "number" } } };
  const title = { title: "Is {{ input.n }} right?", assignees: ["ann"] };
  return { due_seconds: random.pick([8, 1000]), on_due: onDue, ...(random.chance(0.5) && { form }), ...title };
}

function workflowConfig(random: Random): JsonObject {
  return random.pick<JsonObject>([
    { name: "child", input: { n: "{{ input.n }}" } },
    { name: "child" },
    { name: "endless", version: 2 },
    { name: "nobody" },
  ]);
}

function routerConfig(random: Random, parents: readonly string[], children: readonly string[]): JsonObject {
  const subject = parents.length === 0 || random.chance(0.5) ? "input.n" : `${reference(random.pick(parents))}.value`;
  const targets = children.filter(() => random.chance(0.8));
  const to = targets.length === 0 ? [children[0]!] : targets;
  const cut = random.integer(0, to.length);
  return {
    mode: random.pick(["exclusive", "inclusive"]),
    routes: [
      { when: `${subject} > ${random.integer(0, 9)}`, to: to.slice(0, Math.max(1, cut)) },
      { when: `${subject} < ${random.integer(0, 9)}`, to: to.slice(-1) },
    ],
    ...(random.chance(0.5) && { else: random.pick(to) }),
    on_error: random.pick(["fail", "skip"]),
  };
}

function mapConfig(random: Random, parents: readonly string[]): JsonObject {
  const list =
    parents.length === 0 ? "{{ input.list }}" : `{{ ${reference(random.pick(parents))}.list | default([7]) }}`;
  const items = random.weighted<Json>([
    [4, Array.from({ length: random.integer(0, 6) }, (_, i) => i)],
    [3, list],
    [1, "{{ input.n }}"],
    [0.2, Array.from({ length: random.integer(1001, 2500) }, (_, i) => i)],
  ]);
  const what = random.weighted<JsonObject>([
    [5, { handler: "step", config: { item: "{{ item }}", place: "{{ index }}", of: "{{ input.n }}" } }],
    [1, { nodes: [nodeOf("inner", [], { config: { item: "{{ item }}" } })] as unknown as Json }],
    [1, { handler: "workflow", config: { name: "child", input: "{{ item }}" } }],
    [1, { handler: "wait", config: { signal: "s1", timeout_seconds: 20 } }],
    [1, { handler: "review", config: reviewConfig(random) }],
  ]);
  const tolerated = random.pick<Json>([0, 0, 1, "50%"]);
  const retry = { max_attempts: 2, base_delay_seconds: 1, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };
  const limits = { max_concurrency: random.integer(1, 3), tolerated_failures: tolerated };
  return { items, ...what, ...limits, ...(random.chance(0.5) && { retry }) };
}

function repeatOf(random: Random, id: string): NonNullable<WorkflowNode["repeat"]> {
  const until = random.pick([`${reference(id)}.value > ${random.integer(2, 8)}`, `${reference(id)}.flag`]);
  return { until, every_seconds: random.pick([0, 1, 5]), max: random.integer(1, 4) };
}

function reference(id: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(id) ? id : `nodes["${id}"]`;
}

function idOf(dependency: Dependency): string {
  return typeof dependency === "string" ? dependency : dependency.id;
}
