import type { Json } from "../json/json.ts";
import { errorValue, retryAfter } from "../worker/error-value.ts";
import { type Handler, HandlerError } from "../worker/handler.ts";
import { type NamedDependency, readArguments } from "./arguments.ts";
import type { StandardSchema } from "./standard-schema.ts";
import { taskContext } from "./task-context.ts";

/** A function of the author's: what it is given has the names of what its node comes after, `input` and `ctx`. */
export type Closure = (given: Readonly<Record<string, unknown>>) => unknown;

/** A function of an author's whose arguments nobody here knows. */
export type Body = (...given: readonly never[]) => unknown;

/** How a body is called with what a task gives. */
export type Calling = (body: Body) => (given: Readonly<Record<string, unknown>>, config: Json) => unknown;

/** A function of a workflow as workers call it; a test may put another body in its place. */
export interface WorkflowFunction {
  readonly handler: Handler;
  readonly withBody: (body: Body) => Handler;
}

/** What it takes to call a function of a node in a worker. */
export interface ClosureScope {
  readonly dependencies: readonly NamedDependency[];
  readonly input: StandardSchema | undefined;
}

/** The handler that calls a function with the arguments in its config. */
function closureHandler({ dependencies, input: schema }: ClosureScope, run: ReturnType<Calling>): Handler {
  return async (call) => {
    const { input, values } = await readArguments(call.config, dependencies, schema);
    // Whatever comes of it is checked before it is stored.
    return (await run({ ...values, input, ctx: taskContext(call) }, call.config)) as Json;
  };
}

export function workflowFunction(
  scope: ClosureScope,
  body: Body,
  calling: Calling,
  wrap: (handler: Handler) => Handler = (handler) => handler,
): WorkflowFunction {
  const withBody = (stand: Body): Handler => wrap(closureHandler(scope, calling(stand)));
  return { handler: withBody(body), withBody };
}

/** The usual way. */
export const withGiven: Calling = (body) => (given) => (body as Closure)(given);

/** A handler whose author decides which of its errors are worth another attempt. */
export function retryingIf(handler: Handler, retryIf: (error: unknown) => boolean): Handler {
  return async (call) => {
    try {
      return await handler(call);
    } catch (error) {
      const { code, message, details } = errorValue(error);
      const more = { ...retryAfter(error), ...(details !== undefined && { details }), cause: error };
      throw new HandlerError(code, message, { retryable: retryIf(error), ...more });
    }
  };
}

/** The answer of a hidden task, which has to be of one kind: the same attempt again would give the same. */
export function expecting<T>(what: string, part: string, is: (value: unknown) => value is T): (value: unknown) => T {
  return (value) => {
    if (is(value)) return value;
    const got = value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
    throw new HandlerError("CONFIG_INVALID", `\`${part}\` must give ${what}, not ${got}`, { retryable: false });
  };
}
