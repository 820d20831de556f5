import type { Json } from "../json/json.ts";

/** What a handler is given: everything resolved, secrets filled in. */
export interface HandlerCall {
  readonly executionId: string;
  readonly nodeId: string;
  readonly attempt: number;
  readonly generation: number;
  readonly config: Json;
  /** Outputs of the parents, for nodes that say `inputs: true`. */
  readonly inputs: Json | undefined;
  /** The same for every try of the same work: hand it to whoever must not do it twice. */
  readonly idempotencyKey: string;
  /** Names this very dispatch. */
  readonly token: string;
  readonly timeoutMs: number;
  /** Aborted on cancel, timeout and shutdown. */
  readonly signal: AbortSignal;
}

export type Handler = (call: HandlerCall) => Promise<Json> | Json;

/** Thrown by a handler to say whether another attempt makes sense, and when. */
export class HandlerError extends Error {
  override readonly name = "HandlerError";
  readonly code: string;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly details: Json | undefined;

  constructor(
    code: string,
    message: string,
    options: { retryable: boolean; retryAfterMs?: number; details?: Json; cause?: unknown } = { retryable: false },
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details;
  }
}
