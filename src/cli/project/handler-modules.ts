import { statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { HandlerEntry } from "../definition/handlers.ts";
import type { Json } from "../json/json.ts";
import type { Handler, HandlerCall } from "../worker/handler.ts";

/** A handler as people write it: a function of its config, and of what it may want to know. */
export type WrittenHandler = (config: never, context: HandlerCall) => unknown;

/** Handlers of user modules, for a worker and for whoever checks definitions. */
export interface UserHandlers {
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly entries: ReadonlyMap<string, HandlerEntry>;
  /** Queues besides those named like the handlers. */
  readonly queues?: ReadonlySet<string>;
}

/** A module that cannot be used, in a sentence. */
export class HandlerModuleInvalid extends Error {
  override readonly name = "HandlerModuleInvalid";
}

/** Loads modules that export `handlers`, an object of functions by name. Later modules may not repeat a name. */
export async function loadHandlerModules(paths: readonly string[], directory: string): Promise<UserHandlers> {
  const handlers = new Map<string, Handler>();
  const entries = new Map<string, HandlerEntry>();
  for (const path of paths) {
    const written = await handlersOf(path, directory);
    for (const [name, value] of Object.entries(written)) {
      if (handlers.has(name))
        throw new HandlerModuleInvalid(`${path} brings the handler "${name}", which is there already.`);
      const run = typeof value === "function" ? value : (value as { readonly run?: unknown } | null)?.run;
      if (typeof run !== "function")
        throw new HandlerModuleInvalid(`The handler "${name}" of ${path} is not a function.`);
      handlers.set(name, (call) =>
        (run as (config: Json, context: HandlerCall) => Json | Promise<Json>)(call.config, call),
      );
      entries.set(name, entryOf(value));
    }
  }
  return { handlers, entries };
}

async function handlersOf(path: string, directory: string): Promise<object> {
  let module: { readonly handlers?: unknown; readonly default?: unknown };
  try {
    const file = resolve(directory, path);
    // A module that has changed is another one: what was loaded before stays as it was.
    const changed = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    module = (await import(`${pathToFileURL(file).href}?changed=${changed}`)) as typeof module;
  } catch (error) {
    throw new HandlerModuleInvalid(`The handler module ${path} cannot be loaded: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const written = module.handlers ?? module.default;
  if (typeof written === "object" && written !== null) return written;
  throw new HandlerModuleInvalid(`${path} must export "handlers", an object of functions by name.`);
}

/** `{ run, config_schema, output_schema, timeout_seconds }` tells more than a bare function does. */
function entryOf(value: unknown): HandlerEntry {
  if (typeof value !== "object" || value === null) return { engine: false };
  const {
    config_schema: configSchema,
    output_schema: outputSchema,
    timeout_seconds: timeout,
  } = value as Record<string, Json>;
  return {
    engine: false,
    ...(configSchema !== undefined && { configSchema }),
    ...(outputSchema !== undefined && { outputSchema }),
    ...(typeof timeout === "number" && { defaultTimeoutSeconds: timeout }),
  };
}
