import { isJsonObject } from "../../../json/json.ts";
import { valueView } from "../scope.ts";
import { configOf, type EngineNode } from "./engine-node.ts";

/** The execution's input over the config as defaults. */
export const inputNode: EngineNode = (state, unit, context) => {
  const resolved = configOf(state, unit, context);
  if (resolved.kind !== "config") return resolved;
  const view = valueView(state.input, context);
  if (view.kind === "blob" && view.value === undefined) return { kind: "needs", needs: [{ blob: view.ref }] };
  const input = view.kind === "output" || view.kind === "blob" ? (view.value ?? null) : null;
  if (input === null) return { kind: "completed", output: resolved.config };
  return { kind: "completed", output: isJsonObject(input) ? { ...resolved.config, ...input } : input };
};
