import { pointerStep } from "./pointer.ts";
import { MAX_JSON_DEPTH } from "./scan.ts";

/** Why a value cannot be stored and read back unchanged on every store. */
export interface JsonSafetyFault {
  readonly pointer: string;
  /** Completes the sentence "the value at this place …". */
  readonly reason: string;
}

interface Frame {
  readonly container: object;
  readonly keys: readonly string[] | null;
  next: number;
}

/**
 * Looks through any value, for instance what a handler returned, for the first thing that JSON and all our stores do
 * not carry unchanged: BigInt, NaN, undefined in an array, functions, instances of classes, circles, more than 64
 * levels, NUL, half surrogate pairs, a `__proto__` key. A member that is `undefined` is fine: JSON leaves it out.
 *
 * Keeps its own stack; stops at the first fault.
 */
export function checkJson(value: unknown, maxDepth: number = MAX_JSON_DEPTH): JsonSafetyFault | undefined {
  if (isFlat(value)) return undefined;
  const stack: Frame[] = [];
  let current = value;
  for (;;) {
    const reason =
      typeof current === "object" && current !== null ? enter(current, stack, maxDepth) : leafFault(current);
    if (reason !== undefined) return circleIn(stack, current) ?? { pointer: pointerOf(stack), reason };

    // On to the next member of the innermost container that has one left.
    for (;;) {
      const frame = stack.at(-1);
      if (frame === undefined) return undefined;
      const step = frame.next++;
      if (frame.keys === null) {
        const array = frame.container as readonly unknown[];
        if (step < array.length) {
          current = array[step];
          break;
        }
      } else if (step < frame.keys.length) {
        const key = frame.keys[step]!;
        const keyReason = keyFault(key);
        if (keyReason !== undefined) return { pointer: pointerOf(stack), reason: keyReason };
        current = (frame.container as Record<string, unknown>)[key];
        if (current === undefined) continue;
        break;
      }
      stack.pop();
    }
  }
}

/** A leaf, or a plain object of a few leaves: most of what handlers return, and nothing is kept track of for it. */
function isFlat(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return leafFault(value) === undefined;
  if (Object.getPrototypeOf(value) !== Object.prototype || Array.isArray(value)) return false;
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    const isLeaf = typeof member !== "object" || member === null;
    if (!isLeaf || key === "__proto__" || textFault(key) !== undefined) return false;
    if (member !== undefined && leafFault(member) !== undefined) return false;
  }
  return true;
}

function enter(container: object, stack: Frame[], maxDepth: number): string | undefined {
  const isArray = Array.isArray(container);
  const reason = notPlainData(container);
  if (reason !== undefined) return reason;
  if (stack.length >= maxDepth) return `is nested deeper than ${maxDepth} levels`;
  stack.push({ container, keys: isArray ? null : Object.keys(container), next: 0 });
  return undefined;
}

/** A circle is noticed when it is too deep, and told where it closes for the first time. */
function circleIn(stack: readonly Frame[], last: unknown): JsonSafetyFault | undefined {
  const containers = [...stack.map(({ container }) => container), last];
  const closes = containers.findIndex((container, i) => containers.slice(0, i).includes(container));
  if (closes === -1) return undefined;
  return { pointer: pointerOf(stack.slice(0, closes)), reason: "is circular: it contains itself" };
}

/** Why something that is no string, number, boolean or null is no object or array of plain data either. */
export function notPlainData(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return leafFault(value);
  if (Array.isArray(value) || isPlain(value)) return undefined;
  return `is an instance of ${className(value)}, not plain data`;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // Objects from another realm (vm, a worker's structured clone) have their own Object.prototype.
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

function className(value: object): string {
  const { constructor } = value as { constructor?: { name?: unknown } };
  return typeof constructor?.name === "string" && constructor.name !== "" ? constructor.name : "a class";
}

function leafFault(value: unknown): string | undefined {
  if (typeof value === "string") return textFault(value);
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `is ${value}, which JSON cannot write`;
  if (typeof value === "boolean" || value === null) return undefined;
  return `is ${value === undefined ? "undefined" : `a ${typeof value}`}, which JSON cannot write`;
}

function keyFault(key: string): string | undefined {
  if (key === "__proto__") return 'has the key "__proto__"';
  const reason = textFault(key);
  return reason === undefined ? undefined : `has a key that ${reason}`;
}

/** Text that some store or client cannot carry. */
export function textFault(text: string): string | undefined {
  if (text.includes("\0")) return "contains a NUL character, which databases refuse";
  if (!text.isWellFormed()) return "contains half a surrogate pair, which is not valid Unicode";
  return undefined;
}

function pointerOf(stack: readonly Frame[]): string {
  let pointer = "";
  for (const { keys, next } of stack) {
    if (next > 0) pointer += pointerStep(keys === null ? next - 1 : keys[next - 1]!);
  }
  return pointer;
}
