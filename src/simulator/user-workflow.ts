import { buildPlan } from "../core/execution/plan.ts";
import type { PlanNode } from "../core/execution/plan-node.ts";
import { readDefinition } from "../definition/read.ts";
import { ENGINE_HANDLERS, type Workflow, type WorkflowNode } from "../definition/workflow.ts";
import type { Json, JsonObject } from "../json/json.ts";

/** A user's workflow as the simulator runs it: every handler is simulated, and gives what its readers look for. */
export interface SimulatedWorkflow {
  readonly workflow: Workflow;
  /** An output for each node, with every path in it that some template or condition reads. */
  readonly samples: Readonly<Record<string, Json>>;
  readonly input: Json;
}

/** Reads a definition for simulation. Throws with all its problems if it is not valid. */
export function readForSimulation(text: string, format: "json" | "yaml"): SimulatedWorkflow {
  const handlers = { get: () => undefined, names: () => [], allowMissing: true };
  const { workflow, errors } = readDefinition(text, { format, handlers });
  if (workflow === undefined) {
    const lines = errors.map(
      ({ code, path, line, message }) => `  ${code} ${path}${line === undefined ? "" : ` (line ${line})`}: ${message}`,
    );
    throw new Error(`The workflow is not valid:\n${lines.join("\n")}`);
  }
  const samples: Record<string, Json> = {};
  const simulated = { ...workflow, nodes: workflow.nodes.map(simulatedNode) };
  const input = sample(simulated, samples, {});
  return { workflow: withMocks(simulated, samples), samples, input };
}

/** Waits are cut short: what is simulated is that they end, not how long people take. */
const LONGEST_WAIT_SECONDS = 60;

function simulatedNode(node: WorkflowNode): WorkflowNode {
  const { handler, config } = node;
  if (!ENGINE_HANDLERS.has(handler)) return { ...node, handler: "step", queue: "step" };
  switch (handler) {
    case "map": {
      const { nodes, handler: each } = config;
      const inside = Array.isArray(nodes)
        ? (nodes as unknown as readonly WorkflowNode[]).map(simulatedNode)
        : undefined;
      if (inside !== undefined) return { ...node, config: { ...config, nodes: inside as unknown as Json } };
      const isEngine = typeof each === "string" && ENGINE_HANDLERS.has(each);
      return isEngine ? node : { ...node, queue: "step", config: { ...config, handler: "step" } };
    }
    case "wait":
      if (config["signal"] !== undefined) return { ...node, config: shortened(config, "timeout_seconds") };
      return { ...node, config: config["until"] === undefined ? shortened(config, "seconds") : { seconds: 5 } };
    case "delay":
      return { ...node, config: shortened(config, "seconds") };
    case "review":
      return { ...node, config: shortened(config, "due_seconds") };
    default:
      return node;
  }
}

function shortened(config: JsonObject, name: string): JsonObject {
  const seconds = config[name];
  return typeof seconds === "number" ? { ...config, [name]: Math.min(seconds, LONGEST_WAIT_SECONDS) } : config;
}

/** Nobody knows the workflows that it calls: they give what is looked for in their results. */
function withMocks(workflow: Workflow, samples: Readonly<Record<string, Json>>): Workflow {
  const nodes = workflow.nodes.map((node) =>
    node.handler === "workflow" ? { ...node, config: { ...node.config, mock: samples[node.id] ?? {} } } : node,
  );
  return { ...workflow, nodes };
}

/** Puts into the samples whatever something in the workflow reads; gives the input with what is read of it. */
function sample(workflow: Workflow, samples: Record<string, Json>, given: Json): Json {
  let input = given;
  const note = (references: PlanNode["config"]["references"], leaf: Json): void => {
    for (const reference of references) {
      if (reference.kind === "input") input = withPath(input, reference.path, leaf);
      if (reference.kind === "node") {
        samples[reference.id] = withPath(samples[reference.id] ?? {}, reference.path, leaf);
      }
    }
  };
  for (const { spec, config, condition, until, routes, item, graphs } of buildPlan("simulated", workflow).nodes) {
    // First, so that what is to be a list is one: a map itself reads little else.
    if (spec.handler === "map") note(config.references, [1, 2, 3]);
    for (const part of [config, condition, until, item?.config, ...routes.map(({ when }) => when)]) {
      note(part?.references ?? [], 7);
    }
    if (graphs?.item) input = sample(JSON.parse(graphs.item.text) as Workflow, samples, input);
  }
  return input;
}

/** The value, with something at the end of this path. */
function withPath(value: Json, path: readonly (string | number)[], leaf: Json): Json {
  const root: { holder: Json } = { holder: structuredClone(value) };
  let place = root as unknown as Record<string | number, Json>;
  let key: string | number = "holder";
  for (const step of path) {
    const existing = place[key];
    const fits = typeof step === "number" ? Array.isArray(existing) : typeof existing === "object" && existing !== null;
    if (!fits) place[key] = typeof step === "number" ? [] : {};
    place = place[key] as unknown as Record<string | number, Json>;
    key = step;
  }
  place[key] ??= leaf;
  return root.holder;
}
