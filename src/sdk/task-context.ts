import type { Json, JsonObject } from "../json/json.ts";
import type { HandlerCall } from "../worker/handler.ts";

/** What a function knows of the task it is running. */
export interface TaskContext {
  readonly executionId: string;
  readonly nodeId: string;
  /** From 1. A handler runs at least once: an attempt may be repeated after a crash. */
  readonly attempt: number;
  readonly generation: number;
  /** The same for every try of the same work: hand it to whoever must not do it twice. */
  readonly idempotencyKey: string;
  /** The outputs of the COMPLETED parents by id, if the node says `inputs: true`. */
  readonly inputs: Json | undefined;
  /** Aborted on cancel, timeout and shutdown. */
  readonly signal: AbortSignal;
  log(message: string, fields?: JsonObject): void;
  /** Says how far it has come; shown with the log. */
  progress(done: number, total?: number): void;
  /** Counts what this call has used up; sums add up, and are shown with the node. */
  addUsage(usage: Readonly<Record<string, number>>): void;
  /**
   * Whoever this call has asked has no more to give for so long: the limits of the node let no other through until then. An error
   * with `retryAfterMs` says the same.
   */
  closeLimit(forMs: number): void;
  /** Cuts a text out of everything that is reported of this task. */
  conceal(text: string): void;
}

export function taskContext(call: HandlerCall): TaskContext {
  const { executionId, nodeId, attempt, generation, idempotencyKey, inputs, signal } = call;
  return {
    executionId,
    nodeId,
    attempt,
    generation,
    idempotencyKey,
    inputs,
    signal,
    log: (message, fields) => call.log(message, fields),
    progress: (done, total) => call.log("progress", { done, ...(total !== undefined && { total }) }),
    addUsage: (usage) => call.addUsage(usage),
    closeLimit: (forMs) => call.closeLimit(forMs),
    conceal: (text) => call.conceal(text),
  };
}
