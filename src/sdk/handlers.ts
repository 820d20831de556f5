import type { Json } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import { type TaskContext, taskContext } from "./task-context.ts";

/** A handler for nodes that name it: given its config, with all templates resolved and secrets filled in. */
export type HandlerFunction = (config: never, ctx: TaskContext) => unknown;

export interface Handlers {
  readonly [name: string]: HandlerFunction;
}

/** Handlers by name, for workflows that are written as JSON or YAML. */
export function handlers<const H extends Handlers>(table: H): H {
  return table;
}

/** The same as workers take them. */
export function handlersOf(table: Handlers): ReadonlyMap<string, Handler> {
  return new Map(
    Object.entries(table).map(([name, run]): [string, Handler] => [
      name,
      async (call) => (await run(call.config as never, taskContext(call))) as Json,
    ]),
  );
}
