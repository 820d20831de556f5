import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** What is looked for in the working directory, in this order. */
export const CONFIG_FILES = ["millrace.config.ts", "millrace.config.mjs", "millrace.config.js", "millrace.config.json"];

export type ConfigFile =
  | { readonly path: string; readonly values: Readonly<Record<string, unknown>> }
  | { readonly fault: string };

/** The config file that was named, or the one that lies in the working directory; undefined if there is none. */
export async function loadConfigFile(directory: string, named: string | undefined): Promise<ConfigFile | undefined> {
  const path = named ?? CONFIG_FILES.find((name) => existsSync(resolve(directory, name)));
  if (path === undefined) return undefined;
  const file = resolve(directory, path);
  if (!existsSync(file)) return { fault: `The config file ${path} does not exist.` };
  try {
    const values = file.endsWith(".json") ? (JSON.parse(readFileSync(file, "utf8")) as unknown) : await imported(file);
    if (typeof values === "object" && values !== null && !Array.isArray(values)) {
      return { path, values: values as Record<string, unknown> };
    }
    return { fault: `${path} must ${path.endsWith(".json") ? "hold" : "export by default"} an object of settings.` };
  } catch (error) {
    return { fault: `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}

async function imported(file: string): Promise<unknown> {
  const module = (await import(pathToFileURL(file).href)) as { readonly default?: unknown };
  return module.default;
}
