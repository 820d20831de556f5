import type { ErrorValue } from "../core/message.ts";
import { checkJson, type JsonSafetyFault } from "../json/check-json.ts";
import type { Json } from "../json/json.ts";
import { smallCopy } from "../json/small-copy.ts";
import type { Concealment } from "./concealment.ts";

export const MAX_OUTPUT_BYTES = 1024 * 1024;

/** From so many on it is said of an output how many bytes it has. */
export const COUNTED_BYTES = 1024;

/** An output that every store can carry, and its JSON. */
export interface StorableOutput {
  readonly json: Json;
  readonly text: string;
  readonly bytes: number;
}

/**
 * An output so small that nobody need know its size, if it is plainly one that every store can carry: as most are, and nothing
 * of it is written. undefined of all others: `storableOutput` tells what they are. Never throws.
 */
export function smallOutput(output: unknown, concealment: Concealment): Json | undefined {
  try {
    const copy = smallCopy(output ?? null, COUNTED_BYTES);
    // Concealing only makes it shorter.
    return copy === undefined ? undefined : concealment.json(copy);
  } catch {
    return undefined;
  }
}

/**
 * Whatever a handler returned, checked before it is posted: what cannot be stored fails its node and harms nothing else.
 * Never throws, though a getter, a proxy or a `toJSON` in it may.
 */
export function storableOutput(
  output: unknown,
  concealment: Concealment,
): StorableOutput | { readonly error: ErrorValue } {
  try {
    const fault = checkJson(output ?? null);
    if (fault !== undefined) return invalid(concealment.text(told(fault)));
    const read = JSON.stringify(output ?? null);
    // Concealing only makes it shorter.
    const readBytes = Buffer.byteLength(read);
    if (readBytes > MAX_OUTPUT_BYTES) return tooLarge(readBytes);
    // What is posted is what was checked: a getter may say something else when it is asked again.
    const copy = JSON.parse(read) as Json;
    const change = checkJson(copy);
    if (change !== undefined) return invalid(concealment.text(told(change)));
    const json = concealment.json(copy);
    if (json === copy) return { json, text: read, bytes: readBytes };
    const text = JSON.stringify(json);
    return { json, text, bytes: Buffer.byteLength(text) };
  } catch {
    return invalid("reading it throws");
  }
}

function told({ pointer, reason }: JsonSafetyFault): string {
  return `${pointer === "" ? "the result" : `the value at "${pointer}"`} ${reason}`;
}

function invalid(reason: string): { readonly error: ErrorValue } {
  return { error: { code: "OUTPUT_INVALID", message: `The output cannot be stored: ${reason}`, retryable: false } };
}

function tooLarge(bytes: number): { readonly error: ErrorValue } {
  const message = `The output is ${bytes} bytes; ${MAX_OUTPUT_BYTES} are allowed`;
  return { error: { code: "OUTPUT_TOO_LARGE", message, retryable: false } };
}
