import { textFault } from "./check-json.ts";
import type { Json } from "./json.ts";
import { MAX_JSON_DEPTH } from "./scan.ts";

/** More than any number takes, a comma with it. */
const NUMBER_BYTES = 26;
/** What one UTF-16 unit takes at most, as an escape. */
const UNIT_BYTES = 6;
/** What stands around a text at most: two quotes, and a colon or a comma. */
const AROUND_BYTES = 3;

/**
 * Copies plain data that every store can carry and whose text surely has fewer than so many bytes. Each member is read once: what
 * was checked is what is in the copy, whatever a getter or a proxy says when it is asked again. undefined for all that is not
 * plainly so, which is for `checkJson` to judge.
 */
export function smallCopy(value: unknown, maxBytes: number): Json | undefined {
  return new SmallCopy(maxBytes).of(value, 0);
}

class SmallCopy {
  private bytesLeft: number;

  constructor(maxBytes: number) {
    this.bytesLeft = maxBytes;
  }

  of(value: unknown, depth: number): Json | undefined {
    if (typeof value === "string") return this.text(value) ? value : undefined;
    if (!this.takes(NUMBER_BYTES)) return undefined;
    // Without the sign of a zero, which no text has.
    if (typeof value === "number") return Number.isFinite(value) ? value + 0 : undefined;
    if (typeof value === "boolean" || value === null) return value;
    // A circle comes to this end as well.
    if (typeof value !== "object" || depth >= MAX_JSON_DEPTH) return undefined;
    // Also one that nobody sees who goes through the members.
    if ("toJSON" in value) return undefined;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype) return this.object(value as Readonly<Record<string, unknown>>, depth);
    const isList = prototype === Array.prototype && Array.isArray(value);
    return isList ? this.list(value as readonly unknown[], depth) : undefined;
  }

  private object(value: Readonly<Record<string, unknown>>, depth: number): Json | undefined {
    const copy: Record<string, Json> = {};
    for (const key in value) {
      if (key === "__proto__" || !this.text(key) || !Object.hasOwn(value, key)) return undefined;
      const member = value[key];
      if (member === undefined) continue;
      const copied = this.of(member, depth + 1);
      if (copied === undefined) return undefined;
      copy[key] = copied;
    }
    return copy;
  }

  private list(value: readonly unknown[], depth: number): Json | undefined {
    const copy: Json[] = [];
    for (let i = 0; i < value.length; i++) {
      const copied = this.of(value[i], depth + 1);
      if (copied === undefined) return undefined;
      copy.push(copied);
    }
    return copy;
  }

  private text(text: string): boolean {
    return this.takes(text.length * UNIT_BYTES + AROUND_BYTES) && textFault(text) === undefined;
  }

  private takes(bytes: number): boolean {
    this.bytesLeft -= bytes;
    return this.bytesLeft > 0;
  }
}
