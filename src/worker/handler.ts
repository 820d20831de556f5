import type { Json, JsonObject } from "../json/json.ts";
import type { Usage } from "./usage.ts";

/** What a handler is given: everything resolved, secrets filled in. */
export interface HandlerCall<Config = Json> {
  readonly executionId: string;
  readonly nodeId: string;
  readonly attempt: number;
  readonly generation: number;
  readonly config: Config;
  /** Outputs of the parents, for nodes that say `inputs: true`. */
  readonly inputs: Json | undefined;
  /** The same for every try of the same work: hand it to whoever must not do it twice. */
  readonly idempotencyKey: string;
  /** Names this very dispatch. */
  readonly token: string;
  readonly timeoutMs: number;
  /** Aborted on cancel, timeout and shutdown. A handler that does not mind it blocks a slot of its worker. */
  readonly signal: AbortSignal;
  /** Says what this call has used up so far; sums add up, and are told with the result, whatever it is. */
  readonly addUsage: (usage: Usage) => void;
  /** Whoever was called has no more to give for so long: the limits of the node let no other call through until then. */
  readonly closeLimit: (forMs: number) => void;
  /** Cuts a text out of everything that is reported of this call, as is done with the secrets of its config. */
  readonly conceal: (text: string) => void;
  readonly log: (message: string, fields?: JsonObject) => void;
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

/** Of this copy of the package or of another: a handler's module may have brought its own. */
export function isHandlerError(thrown: unknown): thrown is HandlerError {
  if (thrown instanceof HandlerError) return true;
  if (!(thrown instanceof Error) || thrown.name !== "HandlerError") return false;
  const { code, retryable } = thrown as Partial<HandlerError>;
  return typeof code === "string" && typeof retryable === "boolean";
}
