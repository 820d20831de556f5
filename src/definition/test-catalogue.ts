import type { HandlerCatalogue, HandlerEntry } from "./handlers.ts";

/** Handlers for tests: any name given, each a worker's, with the schemas given. */
export function catalogue(
  handlers: Readonly<Record<string, Partial<HandlerEntry>>>,
  allowMissing = false,
): HandlerCatalogue {
  const entries = new Map(Object.entries(handlers));
  return {
    get: (name) => {
      const entry = entries.get(name);
      return entry === undefined ? undefined : { engine: false, ...entry };
    },
    names: () => entries.keys(),
    allowMissing,
  };
}
