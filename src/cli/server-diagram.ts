import { type Diagram, diagramOf } from "../drawing/diagram.ts";
import { partsOf, withParts } from "../drawing/fold-parts.ts";
import type { StatusOf } from "../drawing/draw-text.ts";
import type { Workflow } from "../definition/workflow.ts";
import type { Call } from "./call.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import { connect, workflowPath } from "./server.ts";

/** The graph of an execution with its states, or of a stored workflow. */
export async function drawnFromServer(
  call: Call,
  name: string,
): Promise<{ readonly diagram: Diagram; readonly statusOf?: StatusOf }> {
  const server = await connect(call);
  const id = await server.idOf(name);
  try {
    const { nodes } = await server.execution(id);
    const definition = await server.definition(id);
    if (nodes === undefined) return { diagram: diagramOf(definition) };
    const statusOf = withParts(partsOf(definition), (node) => nodes[node]?.status);
    return { diagram: diagramOf(definition), statusOf };
  } catch (error) {
    if (!(error instanceof Failure) || error.exit !== EXIT.notFound) throw error;
  }
  try {
    const { definition } = await server.get<{ readonly definition: Workflow }>(workflowPath(name));
    return { diagram: diagramOf(definition) };
  } catch (error) {
    if (!(error instanceof Failure) || error.exit !== EXIT.notFound) throw error;
    throw new Failure(
      EXIT.notFound,
      `${JSON.stringify(name)} is no file, no execution and no workflow of ${server.url}.`,
    );
  }
}
