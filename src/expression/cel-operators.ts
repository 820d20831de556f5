import { unresolved } from "./failure.ts";
import { exceeded } from "./meter.ts";
import { typeName } from "./value.ts";
import type { ExpressionFailure } from "./failure.ts";
import type { Meter } from "./meter.ts";
import type { Value } from "./value.ts";

export type BinaryName = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "+" | "-" | "*" | "/" | "%";

const MAX_INT = 9_223_372_036_854_775_807n;
const MIN_INT = -9_223_372_036_854_775_808n;

/** As deep as two values are compared. Data from our JSON parser is at most half as deep. */
const MAX_COMPARE_DEPTH = 160;

/** The binary operators of CEL, with one rule added: an int meets a double as a double, for JSON numbers are doubles. */
export const BINARY: Readonly<Record<BinaryName, (left: Value, right: Value, meter: Meter) => Value>> = {
  "==": (left, right, meter) => equal(left, right, meter),
  "!=": (left, right, meter) => !equal(left, right, meter),
  "<": (left, right, meter) => compare("<", left, right, meter) < 0,
  "<=": (left, right, meter) => compare("<=", left, right, meter) <= 0,
  ">": (left, right, meter) => compare(">", left, right, meter) > 0,
  ">=": (left, right, meter) => compare(">=", left, right, meter) >= 0,
  in: contains,
  "+": add,
  "-": (left, right) => arithmetic("-", left, right),
  "*": (left, right) => arithmetic("*", left, right),
  "/": (left, right) => arithmetic("/", left, right),
  "%": (left, right) => arithmetic("%", left, right),
};

/** Values of different types are different, and never an error; 1 and 1.0 are equal. */
function equal(left: Value, right: Value, meter: Meter, depth = 0): boolean {
  if (left === right) return true;
  if (typeof left === "string" && typeof right === "string") {
    meter.scan(Math.min(left.length, right.length));
    return false;
  }
  if (isNumber(left) && isNumber(right)) return left == right; // oxlint-disable-line eqeqeq -- 1n == 1
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (depth > MAX_COMPARE_DEPTH) throw exceeded(`values more than ${MAX_COMPARE_DEPTH} deep to be compared`);
  return equalContainers(left, right, meter, depth);
}

function equalContainers(left: object, right: object, meter: Meter, depth: number): boolean {
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  if (Array.isArray(left)) {
    const [one, other] = [left as readonly Value[], right as readonly Value[]];
    if (one.length !== other.length) return false;
    return one.every((element, index) => {
      meter.step();
      return equal(element, other[index]!, meter, depth + 1);
    });
  }
  const [one, other] = [left as { [key: string]: Value }, right as { [key: string]: Value }];
  const keys = Object.keys(one);
  meter.step(keys.length);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && equal(one[key]!, other[key]!, meter, depth + 1));
}

function compare(operator: string, left: Value, right: Value, meter: Meter): number {
  if (typeof left === "string" && typeof right === "string") {
    meter.scan(Math.min(left.length, right.length));
    return left < right ? -1 : left > right ? 1 : 0;
  }
  const ordered = (isNumber(left) && isNumber(right)) || (typeof left === "boolean" && typeof right === "boolean");
  if (!ordered) throw mismatch(operator, left, right);
  // NaN is neither less, equal nor greater: NaN as the result makes each of < <= > >= false.
  return left < right ? -1 : left > right ? 1 : left == right ? 0 : Number.NaN; // oxlint-disable-line eqeqeq -- 1n == 1
}

/** `element in list`, `key in object`. */
function contains(left: Value, right: Value, meter: Meter): boolean {
  if (Array.isArray(right)) {
    return (right as readonly Value[]).some((element) => {
      meter.step();
      return equal(left, element, meter);
    });
  }
  if (typeof right !== "object" || right === null) throw mismatch("in", left, right);
  return typeof left === "string" && Object.hasOwn(right, left);
}

function add(left: Value, right: Value, meter: Meter): Value {
  if (typeof left === "string" && typeof right === "string") {
    meter.build(left.length + right.length);
    return left + right;
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    meter.step(left.length + right.length);
    return [...(left as readonly Value[]), ...(right as readonly Value[])];
  }
  return arithmetic("+", left, right);
}

function arithmetic(operator: "+" | "-" | "*" | "/" | "%", left: Value, right: Value): Value {
  if (typeof left === "bigint" && typeof right === "bigint") return integers(operator, left, right);
  if (!isNumber(left) || !isNumber(right)) throw mismatch(operator, left, right);
  const [one, other] = [Number(left), Number(right)];
  switch (operator) {
    case "+":
      return one + other;
    case "-":
      return one - other;
    case "*":
      return one * other;
    case "/":
      return one / other;
    case "%":
      break;
  }
  return one % other;
}

/** Int and int give an int, also for `/`: 7 / 2 is 3. */
function integers(operator: "+" | "-" | "*" | "/" | "%", left: bigint, right: bigint): bigint {
  switch (operator) {
    case "+":
      return withinInt(left + right);
    case "-":
      return withinInt(left - right);
    case "*":
      return withinInt(left * right);
    case "/":
    case "%":
      break;
  }
  if (right === 0n) throw unresolved(`${left} ${operator} 0: division by zero.`);
  return withinInt(operator === "/" ? left / right : left % right);
}

export function withinInt(value: bigint): bigint {
  if (value >= MIN_INT && value <= MAX_INT) return value;
  throw unresolved("An integer is out of range: it needs more than 64 bits.");
}

export function negate(value: Value): Value {
  if (typeof value === "bigint") return withinInt(-value);
  if (typeof value === "number") return -value;
  throw unresolved(`\`-\` needs a number, and got ${typeName(value)}.`);
}

function isNumber(value: Value): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

export function boolean(value: Value, what: string): boolean {
  if (typeof value === "boolean") return value;
  throw unresolved(`${what} needs true or false, and got ${typeName(value)}.`);
}

function mismatch(operator: string, left: Value, right: Value): ExpressionFailure {
  const hint =
    operator === "+" && (typeof left === "string" || typeof right === "string") ? " Use string(x) to make text." : "";
  return unresolved(`\`${operator}\` cannot take ${typeName(left)} and ${typeName(right)}.${hint}`);
}
