import type { Value } from "./value.ts";

export const MISSING: unique symbol = Symbol("missing");
export type Missing = typeof MISSING;

/** One step of a path: a key, or an index of a list. */
export type Step = string | number;

/** A list index as it appears after a dot (`items.0`): canonical, so that each element has one such name. */
const INDEX = /^(?:0|[1-9]\d{0,14})$/;

/**
 * The only way into a value. Lists have integer indexes and nothing else, objects their own keys, other values no
 * parts at all: so neither `length` nor anything of a prototype can be reached, whatever the path says.
 */
export function stepInto(value: Value, step: Step): Value | Missing {
  if (typeof value !== "object" || value === null) return MISSING;
  if (Array.isArray(value)) {
    const list = value as readonly Value[];
    const index = typeof step === "number" ? step : INDEX.test(step) ? Number(step) : -1;
    return Number.isInteger(index) && index >= 0 && index < list.length ? list[index]! : MISSING;
  }
  if (typeof step === "string" && Object.hasOwn(value, step)) return (value as { [key: string]: Value })[step]!;
  return MISSING;
}
