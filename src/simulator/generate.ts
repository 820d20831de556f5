import type { Dependency, Join, Workflow, WorkflowNode } from "../definition/workflow.ts";
import type { Json, JsonObject } from "../json/json.ts";
import {
  randomCondition,
  randomConfig,
  randomRetry,
  readingAround,
  reference,
  type Surroundings,
} from "./generate-config.ts";
import { randomControl } from "./generate-control.ts";
import type { Random } from "./random.ts";

const QUEUES = ["step", "fast", "slow"] as const;

/** A workflow of the kind people write, and of the kinds they should not. */
export function randomWorkflow(random: Random, name: string, surroundings: Surroundings): Workflow {
  const { depth } = surroundings;
  const size =
    depth > 0
      ? random.integer(1, 5)
      : random.weighted([
          [2, random.integer(1, 4)],
          [6, random.integer(5, 14)],
          [1, random.integer(15, 30)],
        ]);
  const onError = random.weighted([
    [3, "fail_fast" as const],
    [3, "fail_branch" as const],
    [2, "continue" as const],
  ]);
  const nodes = randomNodes(random, size, onError, surroundings);
  return {
    name,
    on_error: onError,
    timeout_seconds: random.chance(0.1) ? random.integer(5, 40) : 600,
    max_parallel_nodes: random.chance(0.2) ? random.integer(1, 4) : null,
    dlq: "all",
    priority: 0,
    nodes,
  };
}

type Shape = "random" | "chain" | "fan" | "layers";

function randomNodes(
  random: Random,
  size: number,
  onError: WorkflowNode["on_error"],
  surroundings: Surroundings,
): WorkflowNode[] {
  const shape = random.pick(["random", "random", "chain", "fan", "layers"] as const);
  const nodes: WorkflowNode[] = [];
  for (let i = 0; i < size; i++) nodes.push(randomNode(random, i, size, shape, nodes, onError, surroundings));
  return withRoutes(random, withoutShadowed(nodes));
}

/** A name of the graph around that is also in this one means this one's, which must be upstream: no submit takes it otherwise. */
function withoutShadowed(nodes: readonly WorkflowNode[]): WorkflowNode[] {
  const upstream = new Map<string, ReadonlySet<string>>();
  return nodes.map((node) => {
    const parents = node.dependencies.map((one) => (typeof one === "string" ? one : one.id));
    const above = new Set(parents.flatMap((id) => [id, ...upstream.get(id)!]));
    upstream.set(node.id, above);
    const { around, ...config } = node.config;
    if (around === undefined || !nodes.some(({ id }) => !above.has(id) && around === readingAround(id))) return node;
    return { ...node, config };
  });
}

function randomNode(
  random: Random,
  index: number,
  size: number,
  shape: Shape,
  before: readonly WorkflowNode[],
  onError: WorkflowNode["on_error"],
  surroundings: Surroundings,
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
  const id = nodeId(index, random, surroundings);
  const control = random.chance(0.4) ? randomControl(random, parents, surroundings, randomNodes) : undefined;
  const handler =
    index === 0 && random.chance(0.2)
      ? "input"
      : isLast(index, size) && random.chance(0.3)
        ? "output"
        : (control?.handler ?? "step");
  const engine = handler !== "step" && handler !== "map";
  const condition = parents.length > 0 && random.chance(0.15) ? randomCondition(random, parents) : undefined;
  const isPatient = parents.length > 1 && random.chance(0.1);
  return {
    id,
    handler,
    config: configFor(random, handler, parents, control, surroundings),
    dependencies,
    timeout_seconds: engine ? null : random.integer(2, 12),
    queue_timeout_seconds: random.chance(0.05) ? random.integer(3, 20) : 400,
    retry: randomRetry(random),
    ...(condition !== undefined && { condition }),
    condition_on_error: random.pick(["fail", "skip"] as const),
    join: randomJoin(random, parents.length),
    ...(isPatient && { join_timeout_seconds: random.pick([1, 5, 20, 60]) }),
    on_error: random.chance(0.15) ? random.pick(["fail_fast", "fail_branch", "continue"] as const) : onError,
    inputs: !engine && handler !== "map" && random.chance(0.1),
    ...(handler === "step" && random.chance(0.12) && { repeat: randomRepeat(random, id, parents) }),
    queue: engine ? handler : random.pick(QUEUES),
    priority: random.chance(0.3) ? random.integer(-2, 2) : 0,
    dlq: random.weighted([
      [8, "all" as const],
      [1, "none" as const],
      [1, "non_retryable" as const],
      [1, "exhausted" as const],
    ]),
  };
}

function configFor(
  random: Random,
  handler: string,
  parents: readonly string[],
  control: { readonly handler: string; readonly config: JsonObject } | undefined,
  surroundings: Surroundings,
): JsonObject {
  if (control !== undefined && handler === control.handler) return control.config;
  if (handler === "output" && random.chance(0.5)) return {};
  return randomConfig(random, parents, surroundings);
}

function randomRepeat(random: Random, id: string, parents: readonly string[]): WorkflowNode["repeat"] & object {
  const own = reference(id);
  const until = random.weighted([
    [6, `${own}.value > ${random.integer(3, 8)}`],
    [2, `${own}.flag`],
    [1, `${own}.nested.x[0] == ${random.integer(0, 9)} || ${own}.flag`],
    [1, "false"],
    [1, parents.length > 0 ? `has(${reference(parents[0]!)}.value) && ${own}.value > 4` : `${own}.nothing == 1`],
  ]);
  return { until, every_seconds: random.pick([0, 0.5, 2, 5]), max: random.integer(1, 4) };
}

/** What a router chooses from are nodes that come after it, which are only known in the end. */
function withRoutes(random: Random, nodes: readonly WorkflowNode[]): WorkflowNode[] {
  return nodes.map((node) => {
    if (node.handler !== "router") return node;
    const targets = nodes
      .filter(({ dependencies }) => dependencies.some((one) => (typeof one === "string" ? one : one.id) === node.id))
      .map(({ id }) => id);
    const parents = node.dependencies.map((one) => (typeof one === "string" ? one : one.id));
    const named = targets.filter(() => random.chance(0.8));
    if (named.length === 0) return { ...node, handler: "output", queue: "output", config: { routed: "nowhere" } };
    const routes = named.map((id): JsonObject => ({
      when:
        parents.length > 0 && random.chance(0.7)
          ? randomCondition(random, parents)
          : `input.n > ${random.integer(0, 5)}`,
      to: random.chance(0.2) ? [id, random.pick(named)].filter((one, i, all) => all.indexOf(one) === i) : id,
    }));
    const { mode, on_error: onError } = node.config;
    const otherwise: Json | undefined = random.chance(0.6) ? random.pick(targets) : undefined;
    return {
      ...node,
      config: {
        mode: mode ?? "exclusive",
        on_error: onError ?? "fail",
        routes,
        ...(otherwise !== undefined && { else: otherwise }),
      },
    };
  });
}

/** Ids of the kinds that real graphs have. */
function nodeId(index: number, random: Random, { inMap }: Surroundings): string {
  const name = inMap ? `m${index}` : `n${index}`;
  return random.weighted([
    [8, name],
    [1, inMap ? `m-${index}` : `${index}-step`],
    [1, inMap ? `m.${index}#y` : `a.b-${index}#x`],
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
  if (parents === 0 || random.chance(0.6)) return "none_failed";
  return random.pick<Join>(["all_success", "all_done", "one_success", `quorum:${random.integer(1, parents)}`]);
}
