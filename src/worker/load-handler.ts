import { type Handler, HandlerError } from "./handler.ts";

/** The handler that a module has as its default export. Whatever is wrong with it, another attempt finds it the same. */
export async function loadHandler(module: string): Promise<Handler> {
  let found: { readonly default?: unknown };
  try {
    found = (await import(module)) as typeof found;
  } catch (error) {
    const message = `The handler's module cannot be loaded: ${error instanceof Error ? error.message : String(error)}`;
    throw new HandlerError("HANDLER_ERROR", message, { retryable: false, cause: error });
  }
  if (typeof found.default === "function") return found.default as Handler;
  throw new HandlerError("HANDLER_ERROR", `${module} has no function as its default export`);
}
