import type { Json } from "../../json/json.ts";
import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";

interface ShownNode {
  readonly status: string;
  readonly output: Json;
  readonly error: Json;
}

/** What went into a node, as it was written and as far as it is known, and what came out of it. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const [, node] = call.args as [string, string];
  const { input } = await server.execution(id);
  const { status, output, error } = await server.get<ShownNode>(`/v1/executions/${segment(id)}/nodes/${segment(node)}`);
  const { nodes } = await server.definition(id);
  const config = nodes.find((one) => one.id === node.replace(/\[\d+\]$/, ""))?.config ?? null;
  printJson(call, { node, status, input, config, output, error });
  return EXIT.done;
};
