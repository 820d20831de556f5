import type { BlobRef } from "../expression/scope.ts";
import type { Json } from "../json/json.ts";

/** Above this many bytes of JSON a value is a blob of the store and travels by name. */
export const INLINE_BYTES = 64 * 1024;

/** An input or output as events and messages carry it. */
export type Value =
  | { readonly json: Json; /** Size of its JSON, said when it is worth knowing. */ readonly bytes?: number }
  | { readonly blob: BlobRef };

/** A value as the state keeps it: one that nobody unfinished can read any more is only the version that brought it. */
export type KeptValue = Value | { readonly past: PastRef };

/** An output that left memory; the journal still has it in the event of this version. */
export interface PastRef {
  readonly version: number;
  readonly bytes: number;
}

export const NULL_VALUE: Value = { json: null };
