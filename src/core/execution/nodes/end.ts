import { configOf, type EngineNode } from "./engine-node.ts";

/** Finishes the execution now, well or badly; what is still open is cancelled by the closing event. */
export const endNode: EngineNode = (state, unit, context) => {
  const resolved = configOf(state, unit, context);
  if (resolved.kind !== "config") return resolved;
  const { status, output, message } = resolved.config;
  return {
    kind: "ends",
    status: status === "FAILED" ? "failed" : "completed",
    output,
    message: message === undefined ? undefined : typeof message === "string" ? message : JSON.stringify(message),
  };
};
