/** On whose behalf something is done. */
export interface Caller {
  /** The id of a key, or `local`. */
  readonly by: string;
  readonly tenant: string;
  /** W3C traceparent, or empty. */
  readonly trace: string;
  /** The Idempotency-Key, if there is one. */
  readonly key?: string | undefined;
  /** Whether tasks may be handed to this caller with their secrets filled in. */
  readonly secrets?: boolean;
}

export const LOCAL: Caller = { by: "local", tenant: "default", trace: "", secrets: true };
