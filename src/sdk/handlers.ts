import { BUILTIN_HANDLERS, HANDLER_ALIASES } from "../definition/builtin-handlers.ts";
import { type HandlerEntry, isMocked } from "../definition/handlers.ts";
import { type DefinedHandler, isDefinedHandler } from "../handlers/define-handler.ts";
import { isJsonObject, type Json } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import { type TaskContext, taskContext } from "./task-context.ts";

/** A handler for nodes that name it: given its config, with all templates resolved and secrets filled in. */
export type HandlerFunction = (config: never, ctx: TaskContext) => unknown;

/** Handlers by name: functions, or what `defineHandler` made, which brings its schemas. */
export interface Handlers {
  readonly [name: string]: HandlerFunction | DefinedHandler;
}

/** Handlers by name, for workflows that are written as JSON or YAML. */
export function handlers<const H extends Handlers>(table: H): H {
  return table;
}

/** The same as workers take them, and what definitions are checked by. */
export interface ReadyHandlers {
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly entries: ReadonlyMap<string, HandlerEntry>;
  close(): void;
}

export function readyHandlers(table: Handlers = {}): ReadyHandlers {
  const handlers = new Map<string, Handler>();
  const entries = new Map<string, HandlerEntry>();
  const defined: DefinedHandler[] = [];
  for (const [name, given] of Object.entries(table)) {
    refuseUnreachable(name);
    if (isDefinedHandler(given)) {
      if (given.name !== name) throw new TypeError(`The handler ${given.name} is registered as ${name}`);
      handlers.set(name, given.handler);
      entries.set(name, given.entry);
      defined.push(given);
    } else if (typeof given === "function") {
      handlers.set(name, functionHandler(given));
      entries.set(name, { engine: false });
    } else throw new TypeError(`The handler ${name} is not a function`);
  }
  return { handlers, entries, close: () => defined.forEach((one) => one.close()) };
}

/** A node with such a name never gets to a function: whoever brings one would look for a fault in it that is not there. */
function refuseUnreachable(name: string): void {
  const because = BUILTIN_HANDLERS.get(name)?.engine
    ? "is a node that the engine runs"
    : HANDLER_ALIASES.has(name) && `is another name of the built-in ${HANDLER_ALIASES.get(name)}`;
  if (because)
    throw new TypeError(`The handler ${name} would never be called: this ${because}. Give it a name of its own`);
}

/** A mock that brings its result stands for the call; what `mock: true` means is the function's own business. */
function functionHandler(run: HandlerFunction): Handler {
  return async (call) => {
    const { config } = call;
    if (isJsonObject(config) && isMocked(config) && config["mock"] !== true) return config["mock"]!;
    return (await run(config as never, taskContext(call))) as Json;
  };
}
