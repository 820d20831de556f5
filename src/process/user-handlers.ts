import type { HandlerEntry } from "../definition/handlers.ts";
import type { Handler } from "../worker/handler.ts";

/** Handlers that the user brings, for a worker and for whoever checks definitions. */
export interface UserHandlers {
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly entries: ReadonlyMap<string, HandlerEntry>;
  /** Queues besides those named like the handlers. */
  readonly queues?: ReadonlySet<string>;
}
