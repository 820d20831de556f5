import type { WorkflowNode } from "../definition/workflow.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { Random } from "./random.ts";

/** Where a workflow is to be used: what it may call, and how much it may be. */
export interface Surroundings {
  /** Names of workflows that it may run as children; none at the bottom. */
  readonly library: readonly string[];
  /** 0 for what people submit, then one more for each level inside. */
  readonly depth: number;
  /** When the world begins, by the store's clock: dates are around it. */
  readonly epochMs: number;
  /** Nodes of the workflow around that may be read, if it is the inside of a map. */
  readonly around: readonly string[];
  readonly inMap: boolean;
}

/** A secret that must turn up nowhere but where a template names it, and a text that looks like the template. */
export const CANARY = "c4n4ry-5ecret";
export const CANARY_TEXT = "{{ secrets.CANARY }} {{ input.n }}";

export function reference(id: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(id) ? id : `nodes["${id}"]`;
}

/** A config for a handler, with templates of the kinds that people write. */
export function randomConfig(
  random: Random,
  parents: readonly string[],
  { inMap, around }: Pick<Surroundings, "inMap" | "around">,
): JsonObject {
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
  if (inMap && random.chance(0.6)) config["item"] = "{{ item }}";
  if (inMap && random.chance(0.4)) config["place"] = "item {{ index }}";
  if (around.length > 0 && random.chance(0.4)) {
    config["around"] = readingAround(random.pick(around));
  }
  return config;
}

/** How a node inside a map reads one of the graph around it. */
export function readingAround(id: string): string {
  return `{{ ${reference(id)}.value | default(-2) }}`;
}

export function randomCondition(random: Random, parents: readonly string[]): string {
  const parent = reference(random.pick(parents));
  return random.pick([
    `${parent}.value > ${random.integer(0, 9)}`,
    `has(${parent}.value)`,
    `${parent}.flag`,
    `has(${parent}.value) && ${parent}.value < ${random.integer(2, 9)}`,
    `input.n > ${random.integer(0, 5)}`,
  ]);
}

export function randomRetry(random: Random): WorkflowNode["retry"] {
  return {
    max_attempts: random.integer(1, 4),
    base_delay_seconds: random.pick([0, 0.1, 1, 2]),
    max_delay_seconds: 4,
    exponential_base: 2,
    jitter: random.pick([0, 0.1, 1]),
  };
}
