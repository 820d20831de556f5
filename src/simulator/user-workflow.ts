import { buildPlan } from "../core/execution/plan.ts";
import { readDefinition } from "../definition/read.ts";
import { ENGINE_HANDLERS, type Workflow } from "../definition/workflow.ts";
import type { Json } from "../json/json.ts";

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
  const nodes = workflow.nodes.map((node) =>
    ENGINE_HANDLERS.has(node.handler) ? node : { ...node, handler: "step", queue: "step" },
  );
  const simulated = { ...workflow, nodes };
  return { workflow: simulated, ...samplesOf(simulated) };
}

function samplesOf(workflow: Workflow): Pick<SimulatedWorkflow, "samples" | "input"> {
  const plan = buildPlan("simulated", workflow);
  const samples: Record<string, Json> = {};
  let input: Json = {};
  for (const { config, condition } of plan.nodes) {
    for (const reference of [...config.references, ...(condition?.references ?? [])]) {
      if (reference.kind === "input") input = withPath(input, reference.path);
      if (reference.kind === "node") samples[reference.id] = withPath(samples[reference.id] ?? {}, reference.path);
    }
  }
  return { samples, input };
}

/** The value, with something at the end of this path. */
function withPath(value: Json, path: readonly (string | number)[]): Json {
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
  place[key] ??= 7;
  return root.holder;
}
