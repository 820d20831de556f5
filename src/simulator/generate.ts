import type { Dependency, Join, Workflow, WorkflowNode } from "../definition/workflow.ts";
import type { Json } from "../json/json.ts";
import type { Random } from "./random.ts";

/** A secret that must turn up nowhere but where a template names it, and a text that looks like the template. */
export const CANARY = "c4n4ry-5ecret";
export const CANARY_TEXT = "{{ secrets.CANARY }} {{ input.n }}";

const QUEUES = ["step", "fast", "slow"] as const;

/** A workflow of the kind people write, and of the kinds they should not. */
export function randomWorkflow(random: Random, name: string): Workflow {
  const size = random.weighted([
    [2, random.integer(1, 4)],
    [6, random.integer(5, 14)],
    [2, random.integer(15, 40)],
  ]);
  const onError = random.weighted([
    [3, "fail_fast" as const],
    [3, "fail_branch" as const],
    [2, "continue" as const],
  ]);
  const shape = random.pick(["random", "random", "chain", "fan", "layers"] as const);
  const nodes: WorkflowNode[] = [];
  for (let i = 0; i < size; i++) nodes.push(randomNode(random, i, size, shape, nodes, onError));
  return {
    name,
    on_error: onError,
    timeout_seconds: random.chance(0.15) ? random.integer(5, 40) : 600,
    max_parallel_nodes: random.chance(0.2) ? random.integer(1, 4) : null,
    dlq: "all",
    priority: 0,
    nodes,
  };
}

type Shape = "random" | "chain" | "fan" | "layers";

function randomNode(
  random: Random,
  index: number,
  size: number,
  shape: Shape,
  before: readonly WorkflowNode[],
  onError: WorkflowNode["on_error"],
): WorkflowNode {
  const parents = chooseParents(random, index, size, shape, before);
  const dependencies = parents.map((id): Dependency => {
    const on = random.weighted([
      [20, "completed" as const],
      [1, "failed" as const],
      [1, "done" as const],
    ]);
    return on === "completed" ? id : { id, on };
  });
  const handler =
    index === 0 && random.chance(0.2) ? "input" : isLast(index, size) && random.chance(0.3) ? "output" : "step";
  const engine = handler !== "step";
  const queue = engine ? handler : random.pick(QUEUES);
  const condition = parents.length > 0 && random.chance(0.15) ? randomCondition(random, parents) : undefined;
  return {
    id: nodeId(index, random),
    handler,
    config: handler === "output" && random.chance(0.5) ? {} : randomConfig(random, parents),
    dependencies,
    timeout_seconds: engine ? null : random.integer(2, 12),
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
    inputs: !engine && random.chance(0.1),
    queue,
    priority: 0,
    dlq: random.weighted([
      [8, "all" as const],
      [1, "none" as const],
      [1, "non_retryable" as const],
      [1, "exhausted" as const],
    ]),
  };
}

/** Ids of the kinds that real graphs have. */
function nodeId(index: number, random: Random): string {
  return random.weighted([
    [8, `n${index}`],
    [1, `${index}-step`],
    [1, `a.b-${index}#x`],
  ]);
}

function isLast(index: number, size: number): boolean {
  return index === size - 1 && size > 1;
}

function chooseParents(
  random: Random,
  index: number,
  size: number,
  shape: Shape,
  before: readonly WorkflowNode[],
): string[] {
  if (index === 0) return [];
  const ids = before.map((node) => node.id);
  if (shape === "chain") return [ids.at(-1)!];
  if (shape === "fan") return isLast(index, size) ? ids.slice(1).concat(size === 2 ? ids : []) : [ids[0]!];
  if (shape === "layers") return ids.slice(Math.max(0, index - 4), index - (index % 3)).slice(-3);
  const count = Math.min(
    index,
    random.weighted([
      [1, 0],
      [5, 1],
      [4, 2],
      [2, 3],
      [1, 6],
    ]),
  );
  const chosen = new Set<string>();
  while (chosen.size < count)
    chosen.add(random.chance(0.6) ? ids[random.integer(Math.max(0, index - 4), index - 1)]! : random.pick(ids));
  return [...chosen];
}

function randomJoin(random: Random, parents: number): Join {
  if (parents === 0 || random.chance(0.75)) return "none_failed";
  return random.pick<Join>(["all_success", "all_done", "one_success", `quorum:${random.integer(1, parents)}`]);
}

function reference(id: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(id) ? id : `nodes["${id}"]`;
}

function randomConfig(random: Random, parents: readonly string[]): { [key: string]: Json } {
  const config: { [key: string]: Json } = { literal: random.integer(0, 9) };
  for (const parent of parents.slice(0, 6)) {
    if (random.chance(0.3)) continue;
    const name = `from_${parent}`;
    config[name] = random.weighted<Json>([
      [4, `{{ ${reference(parent)}.value | default(-1) }}`],
      [2, `{{ ${reference(parent)}.text | default("none") }}`],
      [1, `{{ ${reference(parent)} | default({}) }}`],
      [2, { deep: [`value {{ ${reference(parent)}.nested.x[0] | default(0) }} of {{ execution.id }}`] }],
      [1, `{{ ${reference(parent)}.value }}`],
    ]);
  }
  if (random.chance(0.2)) config["input"] = "{{ input.n }}";
  if (random.chance(0.1)) config["secret"] = "Bearer {{ secrets.CANARY }}";
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
