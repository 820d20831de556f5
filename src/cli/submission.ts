import type { Json } from "../json/json.ts";
import { readYaml } from "../json/read-yaml.ts";
import type { DefinitionText } from "./definition-file.ts";
import type { Sent } from "./server.ts";

/**
 * A definition as it is sent: as it is written, so that the server can say where something is wrong; only together with
 * an input it has to become one document.
 */
export function submission({ source, format }: DefinitionText, input: Json | undefined): Sent {
  const text = typeof source === "string" ? source : new TextDecoder().decode(source);
  const definition = input === undefined ? undefined : format === "yaml" ? readYaml(text).value : jsonValue(text);
  // What cannot be read is sent as it is: the server says where the fault is.
  return definition === undefined ? { source: { source, format } } : { body: { definition, input_params: input } };
}

function jsonValue(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
