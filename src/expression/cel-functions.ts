import { unresolved } from "./failure.ts";
import { codePoints } from "./filters.ts";
import { typeName } from "./value.ts";
import { withinInt } from "./cel-operators.ts";
import type { ExpressionFailure } from "./failure.ts";
import type { Meter } from "./meter.ts";
import type { Value } from "./value.ts";

/** A function that expressions may call. For a method the receiver is the first argument, and counted. */
export interface Callable {
  readonly least: number;
  readonly most: number;
  call(args: readonly Value[], meter: Meter): Value;
}

/**
 * Every function there is. A name that is not here is refused at submit. None reads a clock, a time zone, a locale or a
 * source of randomness: CEL's own time functions are left out because they read the time zone of the machine.
 */
export const FUNCTIONS: ReadonlyMap<string, Callable> = new Map([
  ["size", fn(1, ([value], meter) => size(value!, meter))],
  ["string", fn(1, ([value], meter) => asString(value!, meter))],
  ["int", fn(1, ([value]) => asInt(value!))],
  ["double", fn(1, ([value]) => asDouble(value!))],
  ["bool", fn(1, ([value]) => asBool(value!))],
  ["dyn", fn(1, ([value]) => value!)],
]);

export const METHODS: ReadonlyMap<string, Callable> = new Map([
  ["size", fn(1, ([value], meter) => size(value!, meter))],
  ["contains", fn(2, (args, meter) => search("contains", args, meter) !== -1)],
  ["startsWith", fn(2, (args, meter) => hasEdge("startsWith", args, meter))],
  ["endsWith", fn(2, (args, meter) => hasEdge("endsWith", args, meter))],
  ["indexOf", fn(2, (args, meter) => BigInt(search("indexOf", args, meter)))],
  ["lastIndexOf", fn(2, (args, meter) => BigInt(search("lastIndexOf", args, meter)))],
  ["lowerAscii", fn(1, ([value], meter) => built(text("lowerAscii", value!), meter).toLowerCase())],
  ["upperAscii", fn(1, ([value], meter) => built(text("upperAscii", value!), meter).toUpperCase())],
  ["trim", fn(1, ([value], meter) => built(text("trim", value!), meter).trim())],
  ["substring", { least: 2, most: 3, call: substring }],
  ["split", fn(2, split)],
  ["join", { least: 1, most: 2, call: join }],
]);

function fn(count: number, call: Callable["call"]): Callable {
  return { least: count, most: count, call };
}

/** A search may compare the whole needle at every place of the text; the price says so. */
function search(name: string, args: readonly Value[], meter: Meter): number {
  const [where, what] = [text(name, args[0]!), text(name, args[1]!)];
  chargeSearch(where, what, meter);
  return name === "lastIndexOf" ? where.lastIndexOf(what) : where.indexOf(what);
}

function chargeSearch(where: string, what: string, meter: Meter): void {
  meter.scan(Math.ceil((where.length * (what.length + 1)) / 8));
}

function hasEdge(name: "startsWith" | "endsWith", args: readonly Value[], meter: Meter): boolean {
  const [where, what] = [text(name, args[0]!), text(name, args[1]!)];
  meter.scan(what.length);
  return where[name](what);
}

function substring(args: readonly Value[], meter: Meter): Value {
  const from = text("substring", args[0]!);
  const start = position(args[1]!);
  const end = args[2] === undefined ? from.length : position(args[2]);
  if (start < 0 || end < start || end > from.length) {
    throw unresolved(`substring(${start}, ${end}) is outside a text of ${from.length} characters.`);
  }
  meter.build(end - start);
  return from.substring(start, end);
}

function position(value: Value): number {
  const number = typeof value === "bigint" ? Number(value) : value;
  if (typeof number === "number" && Number.isInteger(number)) return number;
  throw unresolved(`A position in a text is an integer, not ${typeName(value)}.`);
}

function split(args: readonly Value[], meter: Meter): Value {
  const [where, separator] = [text("split", args[0]!), text("split", args[1]!)];
  chargeSearch(where, separator, meter);
  meter.build(where.length);
  // One part more than can be paid for is enough to fail: a text of 1 MB must not become a million parts first.
  const parts = where.split(separator, meter.stepsLeft + 1);
  meter.step(parts.length);
  return parts;
}

function join(args: readonly Value[], meter: Meter): Value {
  const list = args[0]!;
  if (!Array.isArray(list)) throw unfit("join", "a list", list);
  const separator = args[1] === undefined ? "" : text("join", args[1]);
  meter.step(list.length);
  const texts = (list as readonly Value[]).map((element) => {
    const part = text("join", element);
    meter.build(part.length + separator.length);
    return part;
  });
  return texts.join(separator);
}

function size(value: Value, meter: Meter): bigint {
  if (typeof value === "string") {
    meter.scan(value.length);
    return BigInt(codePoints(value));
  }
  if (typeof value !== "object" || value === null) throw unfit("size", "a text, list or object", value);
  if (Array.isArray(value)) return BigInt(value.length);
  const keys = Object.keys(value).length;
  meter.scan(keys * 64);
  return BigInt(keys);
}

function asString(value: Value, meter: Meter): string {
  if (typeof value === "string") return value;
  if (typeof value === "object") throw unfit("string", "a text, number, true or false", value);
  // CEL would say "+Inf" or "NaN". Such a number cannot leave an expression as JSON, so it does not as text either.
  if (typeof value === "number" && !Number.isFinite(value)) throw unresolved(`string() got ${value}.`);
  return built(String(value), meter);
}

function asInt(value: Value): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isFinite(value)) return withinInt(BigInt(Math.trunc(value)));
  if (typeof value === "string" && /^[+-]?\d{1,19}$/.test(value)) return withinInt(BigInt(value));
  throw unfit("int", "a number or a text of digits", value);
}

function asDouble(value: Value): number {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "string" && /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(value)) return Number(value);
  throw unfit("double", "a number or a text that is one", value);
}

function asBool(value: Value): boolean {
  if (typeof value === "boolean") return value;
  if (value === "true") return true;
  if (value === "false") return false;
  throw unfit("bool", 'true, false, "true" or "false"', value);
}

/** Pays for a text that is about to be made of another of the same length. */
function built(value: string, meter: Meter): string {
  meter.build(value.length);
  return value;
}

function text(name: string, value: Value): string {
  if (typeof value === "string") return value;
  throw unfit(name, "a text", value);
}

function unfit(name: string, wanted: string, value: Value): ExpressionFailure {
  return unresolved(`${name}() needs ${wanted}, and got ${typeName(value)}.`);
}
