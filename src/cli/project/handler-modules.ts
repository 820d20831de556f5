import { resolve } from "node:path";
import type { HandlerEntry } from "../../definition/handlers.ts";
import type { UserHandlers } from "../../process/user-handlers.ts";
import { type Handlers, readyHandlers } from "../../sdk/handlers.ts";
import type { Handler } from "../../worker/handler.ts";
import { loadFault } from "./load-fault.ts";
import { projectModules } from "./project-modules.ts";

/** A module that cannot be used, in a sentence. */
export class HandlerModuleInvalid extends Error {
  override readonly name = "HandlerModuleInvalid";
}

/** Loads modules that export `handlers`, an object by name. No name may come from two of them. */
export async function loadHandlerModules(paths: readonly string[], directory: string): Promise<UserHandlers> {
  const handlers = new Map<string, Handler>();
  const entries = new Map<string, HandlerEntry>();
  for (const path of paths) {
    const ready = await readyModule(path, directory);
    for (const [name, handler] of ready.handlers) {
      if (handlers.has(name)) {
        throw new HandlerModuleInvalid(`${path} brings the handler "${name}", which is there already.`);
      }
      handlers.set(name, handler);
      entries.set(name, ready.entries.get(name)!);
    }
  }
  return { handlers, entries };
}

async function readyModule(path: string, directory: string): Promise<ReturnType<typeof readyHandlers>> {
  let module: { readonly handlers?: unknown; readonly default?: unknown };
  try {
    module = (await projectModules.load(resolve(directory, path))) as typeof module;
  } catch (error) {
    const why = loadFault(error, directory);
    throw new HandlerModuleInvalid(`The handler module ${path} cannot be loaded: ${why}`, { cause: error });
  }
  const table = module.handlers ?? module.default;
  if (typeof table !== "object" || table === null) {
    throw new HandlerModuleInvalid(`${path} must export "handlers", an object of functions by name.`);
  }
  try {
    return readyHandlers(table as Handlers);
  } catch (error) {
    throw new HandlerModuleInvalid(`${path}: ${(error as Error).message}.`, { cause: error });
  }
}
