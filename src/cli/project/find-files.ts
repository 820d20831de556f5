import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const NAMES = [
  "workflow.ts",
  "workflow.mts",
  "workflow.js",
  "workflow.mjs",
  "workflow.yaml",
  "workflow.yml",
  "workflow.json",
];
const HANDLERS = ["handlers.ts", "handlers.mts", "handlers.js", "handlers.mjs"];

/** The workflow files of a folder: `workflow.*`, and all in `workflows/`. */
export function findWorkflowFiles(directory: string): readonly string[] {
  const own = NAMES.filter((name) => existsSync(join(directory, name)));
  const folder = join(directory, "workflows");
  const more = existsSync(folder)
    ? readdirSync(folder).filter((name) => /\.([mc]?[jt]s|ya?ml|json)$/.test(name) && !/\.(test|d)\./.test(name))
    : [];
  return [...own.slice(0, 1), ...more.sort().map((name) => join("workflows", name))];
}

/** The module with handlers that lies beside them, if there is one. */
export function findHandlerModules(directory: string): readonly string[] {
  return HANDLERS.filter((name) => existsSync(join(directory, name))).slice(0, 1);
}
