import type { BlobRef } from "../../expression/scope.ts";
import { contentHash } from "../../json/hash.ts";
import type { Context, Need } from "../machine.ts";
import type { Json } from "../../json/json.ts";
import { isJsonObject } from "../../json/json.ts";
import type { ErrorValue } from "../message.ts";
import type { Value } from "../value.ts";
import { collectsParents } from "./plan.ts";
import { isLarge, parentOutputs, prepareInline } from "./prepare.ts";
import { valueView } from "./scope.ts";
import type { ExecutionState } from "./state.ts";

/** What a node that the engine runs itself comes to. */
export type EngineResult =
  | { readonly kind: "completed"; readonly output: Json }
  | { readonly kind: "failed"; readonly error: ErrorValue }
  | { readonly kind: "needs"; readonly needs: readonly Need[] };

type EngineNode = (state: ExecutionState, index: number, context: Context) => EngineResult;

/** The nodes that need no worker, by handler. */
export const ENGINE_NODES: Readonly<Record<string, EngineNode>> = {
  input: inputNode,
  output: outputNode,
};

export function runEngineNode(state: ExecutionState, index: number, context: Context): EngineResult {
  const { spec } = state.plan.nodes[index]!;
  const run = ENGINE_NODES[spec.handler];
  if (run !== undefined) return run(state, index, context);
  const message = `This engine does not run ${spec.handler} nodes`;
  return { kind: "failed", error: { code: "UNKNOWN_HANDLER", message, retryable: false } };
}

/** The execution's input over the config as defaults. */
function inputNode(state: ExecutionState, index: number, context: Context): EngineResult {
  const resolved = engineConfig(state, index, context);
  if (resolved.kind !== "completed") return resolved;
  const view = valueView(state.input, context);
  if (view.kind === "blob" && view.value === undefined) return { kind: "needs", needs: [{ blob: view.ref }] };
  const input = view.kind === "output" || view.kind === "blob" ? (view.value ?? null) : null;
  if (!isJsonObject(resolved.output)) return { kind: "completed", output: input };
  if (input === null) return resolved;
  return { kind: "completed", output: isJsonObject(input) ? { ...resolved.output, ...input } : input };
}

/** The resolved config; without one, what the parents gave. */
function outputNode(state: ExecutionState, index: number, context: Context): EngineResult {
  if (!collectsParents(state.plan.nodes[index]!.spec)) return engineConfig(state, index, context);
  const collected = parentOutputs(state, index, context);
  return collected.kind === "collected" ? { kind: "completed", output: collected.value } : collected;
}

function engineConfig(state: ExecutionState, index: number, context: Context): EngineResult {
  const preparation = prepareInline(state, index, context);
  if (preparation.kind !== "prepared") return preparation;
  return { kind: "completed", output: preparation.prepared.config };
}

/** A value as an event carries it; a large one becomes a blob that has to be written first. */
export function toValue(json: Json): {
  value: Value;
  bytes: number;
  blob?: { hash: string; text: string; ref: BlobRef };
} {
  const text = JSON.stringify(json);
  const bytes = text.length;
  if (!isLarge(text)) return { value: bytes >= 1024 ? { json, bytes } : { json }, bytes };
  const ref = { hash: contentHash(text), bytes: Buffer.byteLength(text) };
  return { value: { blob: ref }, bytes, blob: { hash: ref.hash, text, ref } };
}
