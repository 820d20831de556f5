import type { ErrorValue, Message } from "../message.ts";
import type { Value } from "../value.ts";

/** What has happened to an entry of the cache. As with executions, a shipped event never changes its meaning. */
export const CACHE_EVENT_FORMAT = 1;

export type CacheEvent =
  | CacheAsked
  | CacheGranted
  | CacheHit
  | CacheReturned
  | CacheExpired
  | { readonly kind: "quarantined"; readonly atMs: number; readonly error: ErrorValue }
  | { readonly kind: "parked"; readonly atMs: number; readonly message: Message }
  | { readonly kind: "released"; readonly atMs: number; readonly request: string };

interface At {
  /** Partition time. */
  readonly atMs: number;
}

export interface CacheAsk {
  readonly execution: string;
  /** Counted by the execution, together with what it asks of gates. */
  readonly ask: number;
  /** The node instance it is for. */
  readonly node: string;
  /** Somebody wants the work done anew, whatever is kept. */
  readonly anew?: true;
}

/** It stands in line. */
export interface CacheAsked extends At, CacheAsk {
  readonly kind: "cacheAsked";
}

/** There is nothing to be had: it does the work itself. */
export interface CacheGranted extends At, Pick<CacheAsk, "execution" | "ask"> {
  readonly kind: "cacheGranted";
}

/** It was in line and has got what is kept. Who comes later is answered without an event: nothing changes by it. */
export interface CacheHit extends At, Pick<CacheAsk, "execution" | "ask"> {
  readonly kind: "cacheHit";
}

/** Done with it, or not wanted any more; with a result if there is one. */
export interface CacheReturned extends At, Pick<CacheAsk, "execution" | "ask"> {
  readonly kind: "cacheReturned";
  readonly stored?: { readonly output: Value; readonly expiresAtMs: number };
  readonly failed?: true;
}

/** What was kept is too old. */
export interface CacheExpired extends At {
  readonly kind: "cacheExpired";
}
