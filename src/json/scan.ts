import { pointerTo } from "./pointer.ts";
import { literalEnd, numberEnd, skipSpace, startsNumber, stringEnd } from "./tokens.ts";

/** JSON nested deeper than this is refused everywhere. */
export const MAX_JSON_DEPTH = 64;

/** Keys that reach an object's prototype in careless code, ours or a handler's. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** What JSON.parse would not tell, or would tell without a place. */
export interface JsonFault {
  readonly kind: "syntax" | "tooDeep" | "duplicateKey" | "forbiddenKey" | "numberRange";
  readonly offset: number;
  readonly pointer: string;
  /** The key, the number as written, or what is wrong with the syntax. */
  readonly text: string;
}

/** After this many faults nobody reads on. */
const MAX_FAULTS = 100;
/** Objects up to this size look for a repeated key in a list, which is faster than a set. */
const SMALL_OBJECT = 12;

/**
 * Reads JSON text once from left to right, in constant stack: is it JSON at all, is it too deep, does an object repeat
 * a key (JSON.parse keeps the last one silently), does it use a forbidden key, does a number fit a double.
 *
 * The first `syntax` or `tooDeep` fault ends the scan. Without one, JSON.parse accepts the text.
 */
export function scanJson(text: string, maxDepth: number = MAX_JSON_DEPTH): readonly JsonFault[] {
  return new Scanner(text, maxDepth).scan();
}

class Scanner {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #faults: JsonFault[] = [];
  /** Per open container: the key being read in an object, else the index in an array. */
  readonly #steps: (string | number)[] = [];
  /** Per depth, reused: the keys seen in the object that is open there. */
  readonly #seen: KeysSeen[] = [];
  #depth = 0;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  scan(): readonly JsonFault[] {
    const text = this.#text;
    let i = skipSpace(text, 0);
    if (text.charCodeAt(0) === 0xfeff) return this.#syntax(0, "it starts with a byte order mark");
    for (;;) {
      // Here a value must start.
      const c = text.charCodeAt(i);
      let end: number;
      if (c === 34) end = stringEnd(text, i);
      else if (c === 123 || c === 91) {
        if (this.#depth === this.#maxDepth) return this.#stop("tooDeep", i, "");
        end = this.#open(c === 123, i);
        // A container with something in it: its first value comes next.
        if (end >= 0 && text.charCodeAt(end - 1) !== c + 2) {
          i = end;
          continue;
        }
      } else if (startsNumber(c)) {
        end = numberEnd(text, i);
        if (end >= 0) this.#checkNumber(i, end);
      } else end = literalEnd(text, i);
      if (end < 0) return this.#syntax(~end, describe(text, ~end));

      const next = this.#afterValue(end);
      if (next < 0) return this.#syntax(~next, this.#depth === 0 ? trailing(text, ~next) : describe(text, ~next));
      if (this.#depth === 0) return this.#faults;
      i = next;
    }
  }

  /** Opens a container and gives the start of its first value, or the offset behind it if it is empty. */
  #open(isObject: boolean, at: number): number {
    const text = this.#text;
    const inside = skipSpace(text, at + 1);
    if (text.charCodeAt(inside) === (isObject ? 125 : 93)) return inside + 1;
    this.#steps[this.#depth] = isObject ? "" : 0;
    this.#depth++;
    if (!isObject) return inside;
    (this.#seen[this.#depth] ??= new KeysSeen()).clear();
    return this.#key(inside);
  }

  /** Closes what ends here and gives the start of the next value. At the end of the document the depth is 0. */
  #afterValue(from: number): number {
    const text = this.#text;
    let i = skipSpace(text, from);
    while (this.#depth > 0) {
      const c = text.charCodeAt(i);
      const step = this.#steps[this.#depth - 1]!;
      const isObject = typeof step === "string";
      if (c === 44) {
        i = skipSpace(text, i + 1);
        if (isObject) return this.#key(i);
        this.#steps[this.#depth - 1] = step + 1;
        return i;
      }
      if (c !== (isObject ? 125 : 93)) return ~i;
      this.#depth--;
      i = skipSpace(text, i + 1);
    }
    return i === text.length ? i : ~i;
  }

  /** Reads a key and its colon. Gives the start of the value. */
  #key(from: number): number {
    const text = this.#text;
    if (text.charCodeAt(from) !== 34) return ~from;
    const end = stringEnd(text, from);
    if (end < 0) return end;
    let key = text.slice(from + 1, end - 1);
    if (key.includes("\\")) key = JSON.parse(`"${key}"`) as string;
    this.#steps[this.#depth - 1] = key;
    if (FORBIDDEN_KEYS.has(key)) this.#fault("forbiddenKey", from, key);
    if (!this.#seen[this.#depth]!.add(key)) this.#fault("duplicateKey", from, key);
    const colon = skipSpace(text, end);
    return text.charCodeAt(colon) === 58 ? skipSpace(text, colon + 1) : ~colon;
  }

  #checkNumber(from: number, end: number): void {
    // Up to 15 characters without an exponent always fit; looking at more costs, looking at all would cost much.
    if (end - from < 16 && !/[eE]/.test(this.#text.slice(from, end))) return;
    const written = this.#text.slice(from, end);
    const value = Number(written);
    const vanished = value === 0 && /[1-9]/.test(written.split(/[eE]/, 1)[0]!);
    if (!Number.isFinite(value) || vanished) this.#fault("numberRange", from, written);
  }

  #fault(kind: JsonFault["kind"], offset: number, text: string): void {
    if (this.#faults.length >= MAX_FAULTS) return;
    this.#faults.push({ kind, offset, pointer: pointerTo(this.#steps.slice(0, this.#depth)), text });
  }

  #stop(kind: JsonFault["kind"], offset: number, text: string): readonly JsonFault[] {
    // What was found before still counts, but the fault that ended the reading comes first.
    this.#faults.unshift({ kind, offset, pointer: pointerTo(this.#steps.slice(0, this.#depth)), text });
    return this.#faults;
  }

  #syntax(offset: number, reason: string): readonly JsonFault[] {
    // Where the syntax is broken there is no value to point to.
    this.#faults.unshift({ kind: "syntax", offset, pointer: "", text: reason });
    return this.#faults;
  }
}

/** The keys of one object. */
class KeysSeen {
  readonly #list: string[] = [];
  #set: Set<string> | undefined;

  clear(): void {
    this.#list.length = 0;
    this.#set = undefined;
  }

  /** False if the key was there. */
  add(key: string): boolean {
    if (this.#set !== undefined) {
      const before = this.#set.size;
      return this.#set.add(key).size > before;
    }
    if (this.#list.includes(key)) return false;
    this.#list.push(key);
    if (this.#list.length > SMALL_OBJECT) this.#set = new Set(this.#list);
    return true;
  }
}

function trailing(text: string, offset: number): string {
  return `${character(text, offset)} stands after the end of the document`;
}

function character(text: string, offset: number): string {
  return JSON.stringify(String.fromCodePoint(text.codePointAt(offset)!));
}

function describe(text: string, offset: number): string {
  if (offset >= text.length) return "the text ends too early";
  const found = character(text, offset);
  const before = text.slice(Math.max(0, offset - 200), offset).trimEnd();
  if (/[}\]]/.test(text[offset]!)) {
    if (before.endsWith(",")) return `there is a comma too many before ${found}`;
    if (/[[{]$/.test(before)) return `${found} does not close ${JSON.stringify(before.at(-1))}`;
  }
  return `${found} is not expected here`;
}
