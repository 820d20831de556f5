import type { Json, JsonObject } from "../../json/json.ts";
import type { DefinitionChecker } from "./definition-checker.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { rejected } from "./submissions.ts";

/**
 * Another config for a node, as it would stand in the canonical form: it is checked with the definition around it, like
 * a config that is submitted. Undefined if there is nothing to check it by, and its owner will say what is wrong.
 */
export async function checkedConfig(
  checker: DefinitionChecker,
  reader: ExecutionReader,
  id: string,
  from: string,
  config: JsonObject,
): Promise<JsonObject | undefined> {
  const found = await reader.find(id, ({ state: { plan } }) => {
    const index = plan.graph.indexOf.get(from);
    // What runs inside a map refers to nodes that are not in its definition.
    return index === undefined || plan.around.size > 0 ? undefined : { workflow: plan.workflow, index };
  });
  if (found === undefined) return undefined;
  const { workflow, index } = found;
  const nodes = workflow.nodes.map((node, i) => (i === index ? { ...node, config } : node));
  const definition = { ...workflow, nodes } as unknown as Json;
  // Whether others serve the handlers was settled when the definition was accepted.
  const checked = await checker.check({ definition }, true);
  if (checked.good !== undefined) {
    const { nodes: good } = JSON.parse(checked.good.text) as { nodes: readonly { config: JsonObject }[] };
    return good[index]!.config;
  }
  const own = `/nodes/${index}/config`;
  const errors = checked.errors.map((fault) =>
    fault.path === own || fault.path.startsWith(`${own}/`)
      ? { ...fault, path: fault.path.replace(own, "/config") }
      : fault,
  );
  throw rejected({ ...checked, errors });
}
