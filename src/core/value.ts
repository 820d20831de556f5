import type { BlobRef } from "../expression/scope.ts";
import { contentHash } from "../json/hash.ts";
import type { Json } from "../json/json.ts";
import { smallCopy } from "../json/small-copy.ts";

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

/** What is surely smaller is copied as it is, and said to have no length. */
const SMALL_BYTES = 1024;

/** A copy that nobody else has, and about how long its text is; undefined of one that travels by name. */
export function copyInline(value: Value): { readonly value: Value; readonly chars: number } | undefined {
  if (!("json" in value)) return undefined;
  const small = value.bytes === undefined ? smallCopy(value.json, SMALL_BYTES) : undefined;
  if (small !== undefined) return { value: { json: small }, chars: 0 };
  const text = JSON.stringify(value);
  return { value: JSON.parse(text) as Value, chars: text.length };
}

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
