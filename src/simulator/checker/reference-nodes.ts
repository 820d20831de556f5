import { isJsonObject, type Json } from "../../json/json.ts";
import type { Evidence } from "./evidence.ts";
import { type Filled, filled, givenTo, parentOutputs, resolved } from "./reference-config.ts";
import { verdictOf } from "./reference-condition.ts";
import { MISSING, type Reader, UNKNOWN, valueOf } from "./reference-path.ts";
import type { Story } from "./story.ts";

// What the engine's own nodes give, as docs/handlers.md and docs/workflows.md promise it.

/** `input`: the execution's input over the config. `output`: the config, or without one what the parents gave. */
export function passedOn(reader: Reader): Json | typeof UNKNOWN {
  const { handler, config, inputs } = reader.node.spec;
  if (handler === "output" && (inputs || Object.keys(config).length === 0)) return parentOutputs(reader);
  const given = givenTo(reader);
  if (given === UNKNOWN || given === MISSING) return UNKNOWN;
  const own = filled(given, {}, (hash) => reader.evidence.blob(hash));
  if (handler === "output" || own === UNKNOWN) return own;
  const input = valueOf(reader.story.input, reader.evidence);
  if (input === UNKNOWN || input === null) return input === null ? own : UNKNOWN;
  return isJsonObject(input) && isJsonObject(own) ? { ...own, ...input } : input;
}

/** The ids a router chooses; `error` if it fails. */
export function chosenBy(reader: Reader): readonly string[] | "error" | typeof UNKNOWN {
  const { routes } = reader.node.shape;
  const { mode, on_error: onError } = reader.node.spec.config;
  const chosen = new Set<string>();
  for (const { when, to } of routes) {
    if (when === null) {
      if (chosen.size === 0) for (const id of to) chosen.add(id);
      continue;
    }
    if (mode === "exclusive" && chosen.size > 0) continue;
    const verdict = verdictOf(when, reader);
    if (verdict === "unknown") return UNKNOWN;
    if (verdict === "error" && onError !== "skip") return "error";
    if (verdict === "true") for (const id of to) chosen.add(id);
  }
  return [...chosen];
}

/** One field of a node's config, as it is when the node runs; undefined if the config does not have it. */
export function fieldOf(name: string, reader: Reader): Filled | undefined {
  const { config } = reader.node.spec;
  return Object.hasOwn(config, name) ? resolved(config[name]!, reader) : undefined;
}

/** The result that a node brings along instead of running, for trying a workflow out. */
export function mockOf(reader: Reader): Filled | undefined {
  const { handler } = reader.node.spec;
  if (handler !== "workflow" && handler !== "review") return undefined;
  const mock = fieldOf("mock", reader);
  return mock === false ? undefined : mock;
}

/** What an execution gives to whoever called it: see "Input and output" in docs/workflows.md. */
export function outputOf(story: Story, evidence: Evidence): Json | typeof UNKNOWN {
  const { ended, shape } = story;
  if (ended === null || ended.status === "failed" || ended.status === "cancelled" || shape === null) return null;
  if (ended.output !== undefined) return valueOf(ended.output, evidence);
  const outputs: Record<string, Json> = {};
  for (const index of shape.finals) {
    const node = story.nodes[index]!;
    if (node.status !== "completed" || node.output === null) continue;
    const value = valueOf(node.output, evidence);
    if (value === UNKNOWN) return UNKNOWN;
    outputs[node.shape.id] = value;
  }
  const [only] = shape.finals;
  const isSole = shape.finals.length === 1 && shape.nodes[only!]!.spec.handler === "output";
  return isSole ? (outputs[shape.nodes[only!]!.id] ?? null) : outputs;
}
