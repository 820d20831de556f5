import type { ExecutionSource } from "./follow-execution.ts";
import { segment, type Server } from "./server.ts";

/** An execution on a server. */
export function serverSource(server: Server): ExecutionSource {
  return {
    execution: (id) => server.execution(id),
    output: (id) => server.get(`/v1/executions/${segment(id)}/output`),
    events: (id, after, signal) => server.events(id, after, signal),
    explain: (id, node) => server.explain(id, node),
  };
}
