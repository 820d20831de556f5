import { MAX_YAML_BYTES, readYaml } from "../json/read-yaml.ts";
import { type DefinitionReport, type Language, readIn, readJsonDefinition, type ReadOptions } from "./report.ts";

export { checkDefinition, type DefinitionReport, type ReadOptions, type TextAround } from "./report.ts";

const YAML: Language = {
  name: "YAML",
  limitBytes: MAX_YAML_BYTES,
  tooLong: "Write it as JSON, which may be larger.",
  parse: readYaml,
};

/** Reads, loads and checks a definition in either language. */
export function readDefinition(
  source: string | Uint8Array,
  options: ReadOptions & { readonly format: "json" | "yaml" },
): DefinitionReport {
  return options.format === "yaml" ? readIn(YAML, source, options) : readJsonDefinition(source, options);
}
