import type { Json } from "../json/json.ts";
import { readYaml } from "../json/read-yaml.ts";
import type { WorkflowParts } from "../sdk/workflow.ts";
import type { Call } from "./call.ts";
import { definitionText, type DefinitionText, moduleText } from "./definition-file.ts";
import { type Sent, type Server, withQuery } from "./server.ts";

/** The definition in a file, for a server that has to know the workflows that it calls, too. */
export async function definitionFor(call: Call, server: Server, file: string): Promise<DefinitionText> {
  const text = await definitionText(call.terminal, file);
  if (text.parts === undefined || text.parts.children.length === 0) return text;
  const { settings } = await call.settings();
  const path = withQuery("/v1/workflows", {
    allow_missing_handlers: settings.allowMissingHandlers ? "true" : undefined,
  });
  return withStoredChildren(text.file, text.parts);

  /** Those that it calls are stored before it, and it names the versions that came of that. */
  async function withStoredChildren(name: string, parts: WorkflowParts): Promise<DefinitionText> {
    const versions = new Map<WorkflowParts, string>();
    for (const child of parts.children) {
      const source = await withStoredChildren(name, child);
      const stored = await server.post<{ readonly workflow_definition_id: string }>(path, { source });
      versions.set(child, stored.workflow_definition_id);
    }
    return moduleText(name, parts, (child) => versions.get(child)!);
  }
}

/**
 * A definition as it is sent: as it is written, so that the server can say where something is wrong; only together with
 * an input or labels it has to become one document.
 */
export function submission(
  { source, format }: DefinitionText,
  input: Json | undefined,
  labels?: Readonly<Record<string, string>>,
): Sent {
  const text = typeof source === "string" ? source : new TextDecoder().decode(source);
  const isBare = input === undefined && labels === undefined;
  const definition = isBare ? undefined : format === "yaml" ? readYaml(text).value : jsonValue(text);
  // What cannot be read is sent as it is: the server says where the fault is.
  if (definition === undefined) return { source: { source, format } };
  const beside = { ...(input !== undefined && { input_params: input }), ...(labels !== undefined && { labels }) };
  return { body: { definition, ...beside } };
}

function jsonValue(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
