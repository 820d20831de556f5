import type { HandlerCatalogue } from "../definition/handlers.ts";
import { nodeDefaults } from "../process/node-defaults.ts";
import type { Call } from "./call.ts";
import type { DefinitionText } from "./definition-file.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";

/** The handlers that a command knows for some definitions besides the built-in ones, and what nodes get that state none. */
export async function catalogueOf(call: Call, texts: readonly DefinitionText[]): Promise<HandlerCatalogue> {
  const { settings } = await call.settings();
  const { allowMissingHandlers: allowMissing } = settings;
  const defaults = nodeDefaults(settings);
  const { neededModules } = await import("./project/needed-modules.ts");
  const paths = await neededModules(call.terminal, settings, texts);
  if (paths.length === 0) return { get: () => undefined, names: () => [], allowMissing, defaults };
  const { loadHandlerModules } = await import("./project/handler-modules.ts");
  try {
    const { entries } = await loadHandlerModules(paths, call.terminal.directory);
    return { get: (name) => entries.get(name), names: () => entries.keys(), allowMissing, defaults };
  } catch (error) {
    throw new Failure(EXIT.usage, (error as Error).message);
  }
}
