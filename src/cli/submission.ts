import type { Json } from "../json/json.ts";
import { readYaml } from "../json/read-yaml.ts";
import type { DefinitionText } from "./definition-file.ts";
import type { Sent } from "./server.ts";

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
