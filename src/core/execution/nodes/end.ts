import { configOf, type EngineNode, invalid } from "./engine-node.ts";

/** Finishes the execution now, well or badly; what is still open is cancelled by the closing event. */
export const endNode: EngineNode = (state, unit, context) => {
  const resolved = configOf(state, unit, context);
  if (resolved.kind !== "config") return resolved;
  const { status = "COMPLETED", output, message } = resolved.config;
  if (status !== "COMPLETED" && status !== "FAILED") return invalid("/status", 'must be "COMPLETED" or "FAILED"');
  return {
    kind: "ends",
    status: status === "FAILED" ? "failed" : "completed",
    output,
    message: message === undefined ? undefined : typeof message === "string" ? message : JSON.stringify(message),
  };
};
