import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Json } from "../../src/json/json.ts";

const tool = new URL("../../../shared/tools/wfinstances-convert.mjs", import.meta.url);
const folder = new URL("../../../shared/data/wfinstances/", import.meta.url);

/** Whether the real traces are on this machine. */
export const present: boolean = existsSync(tool) && existsSync(folder);
if (!present) console.log("skipped: the real traces, because ../shared is not there");

export const traces: readonly string[] = present ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];

interface Dag {
  readonly nodes: readonly { readonly id: string; readonly config: Json; readonly dependencies: readonly string[] }[];
}

interface Converter {
  convert(trace: unknown, options: { keepIds: boolean; templates: boolean }): { readonly dag: Dag };
  expectedDigests(dag: Dag): Readonly<Record<string, string>>;
}

/** A trace as a definition, and what each of its nodes has to give. */
export async function convert(
  name: string,
  keepIds: boolean,
): Promise<{ readonly dag: Dag; readonly digests: Readonly<Record<string, string>> }> {
  const converter = (await import(tool.href)) as Converter;
  const trace: unknown = JSON.parse(readFileSync(new URL(name, folder), "utf8"));
  const { dag } = converter.convert(trace, { keepIds, templates: true });
  return { dag: keepIds ? quoted(dag) : dag, digests: converter.expectedDigests(dag) };
}

/** As the tool documents it: a hash of the node's id and its parents' digests, whatever order they came in. */
export function digestOf(nodeId: string, config: Json): { digest: string } {
  const { inputs } = config as { inputs: string[] };
  const text = [nodeId, ...inputs.toSorted()].join("\n");
  return { digest: createHash("sha256").update(text).digest("hex").slice(0, 16) };
}

/** The tool writes `{{ id.digest }}`; an id of a real trace may hold dots and hashes, and is then written in quotes. */
function quoted(dag: Dag): Dag {
  const nodes = dag.nodes.map((node) => ({
    ...node,
    config: { ...(node.config as object), inputs: node.dependencies.map((id) => `{{ nodes["${id}"].digest }}`) },
  }));
  return { ...dag, nodes };
}
