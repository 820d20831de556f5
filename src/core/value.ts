import type { BlobRef } from "../expression/scope.ts";
import { contentHash } from "../json/hash.ts";
import type { Json } from "../json/json.ts";

/** Above this many bytes of JSON a value is a blob of the store and travels by name. */
export const INLINE_BYTES = 64 * 1024;

/** So large may be what the engine puts together of several outputs: the results of a map's items, the output of a child. */
export const MAX_COLLECTED_BYTES: number = 16 * 1024 * 1024;

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

export function isLarge(text: string): boolean {
  return text.length > INLINE_BYTES || Buffer.byteLength(text) > INLINE_BYTES;
}

/** A value as events and messages carry it; a large one becomes a blob that has to be written first. */
export function toValue(json: Json): {
  readonly value: Value;
  readonly bytes: number;
  readonly blob?: { readonly hash: string; readonly text: string };
} {
  const text = JSON.stringify(json);
  const bytes = text.length;
  if (!isLarge(text)) return { value: bytes >= 1024 ? { json, bytes } : { json }, bytes };
  const ref = { hash: contentHash(text), bytes: Buffer.byteLength(text) };
  return { value: { blob: ref }, bytes, blob: { hash: ref.hash, text } };
}
