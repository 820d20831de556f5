import type { WorkflowNode } from "../definition/workflow.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { randomConfig, randomRetry, reference, type Surroundings } from "./generate-config.ts";
import type { Random } from "./random.ts";

/** The signals that waits are for; more waits than names, so that some share one. */
export const SIGNALS = ["go", "stop", "maybe"] as const;

/** Makes the nodes of a graph: what is inside a map is made like what is around it. */
type MakeNodes = (
  random: Random,
  size: number,
  onError: WorkflowNode["on_error"],
  surroundings: Surroundings,
) => WorkflowNode[];

interface Control {
  readonly handler: string;
  readonly config: JsonObject;
}

/** A node that the engine runs itself, with a config as the loader would leave it. */
export function randomControl(
  random: Random,
  parents: readonly string[],
  surroundings: Surroundings,
  makeNodes: MakeNodes,
): Control {
  const { library, depth } = surroundings;
  const make = random.weighted<() => Control>([
    [3, () => ({ handler: "router", config: randomRouter(random) })],
    [depth < 3 ? 4 : 0, () => ({ handler: "map", config: randomMap(random, parents, surroundings, makeNodes) })],
    [4, () => ({ handler: "wait", config: randomWait(random, surroundings) })],
    [1, () => ({ handler: "delay", config: { seconds: random.pick([0, 0.5, 3]) } })],
    [3, () => ({ handler: "review", config: randomReview(random, parents) })],
    // Deep inside there is little else to meet.
    [
      library.length > 0 ? (depth > 0 ? 8 : 4) : 0,
      () => ({ handler: "workflow", config: randomCall(random, surroundings) }),
    ],
    [1, () => ({ handler: "end", config: randomEnd(random, parents) })],
  ]);
  return make();
}

/** Its routes are drawn when its dependants are known. */
function randomRouter(random: Random): JsonObject {
  return { mode: random.pick(["exclusive", "inclusive"]), on_error: random.pick(["fail", "skip"]) };
}

function randomWait(random: Random, { epochMs }: Surroundings): JsonObject {
  return random.weighted<JsonObject>([
    [3, { seconds: random.pick([0, 0.5, 2, 8]) }],
    // Longer than any trouble lasts, so that it ends in peace if there is peace.
    [1, { seconds: random.integer(60, 150) }],
    [2, { until: new Date(epochMs + random.integer(0, 60_000)).toISOString() }],
    [1, { until: new Date(epochMs + random.integer(80_000, 160_000)).toISOString() }],
    [6, { signal: random.pick(SIGNALS), timeout_seconds: random.pick([5, 30, 150]) }],
  ]);
}

function randomReview(random: Random, parents: readonly string[]): JsonObject {
  const title = parents.length > 0 ? `Look at {{ ${reference(parents[0]!)}.text | default("it") }}` : "Look";
  const dueSeconds = random.pick([5, 30, 150]);
  return {
    title,
    due_seconds: dueSeconds,
    // Nothing is drawn for these, so that worlds of before come out as they did.
    ...(dueSeconds > 5 && {
      values: { ok: true, note: "proposed" },
      confidence: { note: 0.5 },
      source: { note: "p. 1" },
    }),
    ...(dueSeconds > 30 && {
      four_eyes: true,
      assignees: ["somebody"],
      escalate: { after_seconds: 10, assignees: ["somebody else"] },
    }),
    on_due: random.weighted<Json>([
      [2, "fail"],
      [1, { decision: random.pick(["approve", "reject"]), data: { by: "nobody" } }],
    ]),
    ...(random.chance(0.3) && { form: { type: "object", required: ["ok"] } }),
    ...(random.chance(0.05) && { mock: { value: 1, text: "mocked" } }),
  };
}

function randomCall(random: Random, { library, inMap }: Surroundings): JsonObject {
  const n = inMap ? random.pick(["{{ index }}", "{{ input.n }}"]) : "{{ input.n }}";
  return {
    name: random.chance(0.03) ? "nobody-knows" : random.pick(library),
    input: random.weighted<Json>([
      [4, { n }],
      [1, { n: random.integer(0, 6), filler: "x".repeat(random.pick([10, 70_000])) }],
    ]),
    ...(random.chance(0.05) && { mock: { value: 2 } }),
  };
}

function randomEnd(random: Random, parents: readonly string[]): JsonObject {
  const status = random.pick(["COMPLETED", "COMPLETED", "FAILED"]);
  const output = parents.length > 0 ? `{{ ${reference(random.pick(parents))}.value | default(0) }}` : 1;
  return {
    status,
    ...(random.chance(0.5) && { output: { value: output } }),
    ...(random.chance(0.3) && { message: "so" }),
  };
}

/** A list of its own, one that a parent gives, or something that is no list. */
function randomItems(random: Random, parents: readonly string[]): Json {
  const parent = parents.length > 0 ? reference(random.pick(parents)) : undefined;
  const own = Array.from({ length: random.integer(1, 6) }, (_, i): Json =>
    random.chance(0.3) ? { i, s: "it" } : i * 3,
  );
  return random.weighted<Json>([
    [6, own],
    [1, []],
    [parent === undefined ? 0 : 3, `{{ ${parent}.nested.x | default([5]) }}`],
    [1, '{{ input.items | default(["a", "b", "c"]) }}'],
    [parent === undefined ? 0 : 0.3, `{{ ${parent}.value | default(3) }}`],
  ]);
}

/** How many items make a map a large one, which is run in parts. */
const LARGE = 1000;

function randomMap(
  random: Random,
  parents: readonly string[],
  surroundings: Surroundings,
  makeNodes: MakeNodes,
): JsonObject {
  const { depth } = surroundings;
  const isLarge = depth === 0 && random.chance(0.01);
  const items = isLarge
    ? Array.from({ length: LARGE + random.integer(1, 60) }, (_, i): Json => i)
    : randomItems(random, parents);
  const concurrency = isLarge ? 1000 : random.pick([1, 2, 3, 10]);
  // Nothing is drawn for it, so that worlds of before come out as they did.
  const isCounted = concurrency === 3 || (isLarge && Array.isArray(items) && items.length % 2 === 0);
  const how = {
    items,
    max_concurrency: concurrency,
    ...(isCounted && { collect: false }),
    tolerated_failures: random.weighted<Json>([
      [4, 0],
      [2, 1],
      [1, 2],
      [2, random.pick(["10%", "34%", "50%", "100%"])],
    ]),
    ...(random.chance(0.3) && { retry: { ...randomRetry(random) } }),
  };
  if (isLarge) return { ...how, handler: "output", config: { item: "{{ item }}", place: "{{ index }}" } };
  const inner = { ...surroundings, inMap: true, depth: depth + 1, around: parents };
  const run = random.weighted<() => JsonObject>([
    [6, () => ({ handler: "step", config: randomConfig(random, [], inner) })],
    [3, () => ({ ...engineItem(random, inner) })],
    [depth < 2 ? 4 : 0, () => graphItem(random, inner, makeNodes)],
  ]);
  return { ...how, ...run() };
}

function engineItem(random: Random, surroundings: Surroundings): Control {
  const { library } = surroundings;
  return random.weighted<() => Control>([
    [2, () => ({ handler: "wait", config: randomWait(random, surroundings) })],
    [1, () => ({ handler: "delay", config: { seconds: random.pick([0, 1]) } })],
    [1, () => ({ handler: "output", config: randomConfig(random, [], { ...surroundings, around: [] }) })],
    [2, () => ({ handler: "review", config: randomReview(random, []) })],
    [library.length > 0 ? 3 : 0, () => ({ handler: "workflow", config: randomCall(random, surroundings) })],
  ])();
}

function graphItem(random: Random, surroundings: Surroundings, makeNodes: MakeNodes): JsonObject {
  const onError = random.pick(["fail_fast", "fail_branch", "continue"] as const);
  return { nodes: makeNodes(random, random.integer(1, 4), onError, surroundings) as unknown as Json };
}
