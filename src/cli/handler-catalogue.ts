import type { HandlerCatalogue } from "../definition/handlers.ts";
import type { Call } from "./call.ts";

/** The handlers that a command knows besides the built-in ones. */
export async function catalogueOf(call: Call): Promise<HandlerCatalogue> {
  const { settings } = await call.settings();
  return { get: () => undefined, names: () => [], allowMissing: settings.allowMissingHandlers };
}
