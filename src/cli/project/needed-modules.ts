import { type HandlerCatalogue, NO_HANDLERS } from "../../definition/handlers.ts";
import type { Settings } from "../../settings/declarations.ts";
import type { Terminal } from "../call.ts";
import { checkText, type DefinitionText } from "../definition-file.ts";
import { findHandlerModules } from "./find-files.ts";

/**
 * The handler modules of a command: those that are named; if none are, and definitions need handlers that nobody else
 * brings, the one in the folder that `dev` would find. Not loaded without need: a file of that name may be something else.
 */
export async function neededModules(
  terminal: Terminal,
  settings: Pick<Settings, "handlers">,
  texts: readonly DefinitionText[],
): Promise<readonly string[]> {
  if (settings.handlers.length > 0) return settings.handlers;
  const found = findHandlerModules(terminal.directory);
  if (found.length === 0) return found;
  for (const text of texts) if (await needsMore(text, NO_HANDLERS)) return found;
  return [];
}

async function needsMore(text: DefinitionText, known: HandlerCatalogue): Promise<boolean> {
  const { errors } = await checkText(text, known);
  return errors.some(({ code }) => code === "UNKNOWN_HANDLER");
}
