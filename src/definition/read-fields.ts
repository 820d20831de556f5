import { nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import { characterCount, isLongerThan } from "../json/characters.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { typeName, withArticle } from "../json/type-name.ts";
import { type Field, FIELD_GUESSES, type FieldTable, type Rule } from "./fields.ts";
import type { ProblemList } from "./problems.ts";

/** A table of fields made ready for reading: every name and other name, and the field it stands for. */
export interface FieldReader {
  readonly table: FieldTable;
  /** Every name under which a field is read → its proper name. */
  readonly properName: ReadonlyMap<string, string>;
  /** What the object is called in messages: "A node". */
  readonly what: string;
}

export function fieldReader(what: string, table: FieldTable): FieldReader {
  const properName = new Map<string, string>();
  for (const [name, { aliases = [] }] of Object.entries(table)) {
    for (const each of [name, ...aliases]) properName.set(each, name);
  }
  return { table, properName, what };
}

/**
 * An object with its fields under their proper names. Reports fields that do not exist and fields given twice, and
 * checks every value by the table; a value that does not fit is left out, so that what follows sees only good ones.
 * null means "not given". `handled` fields are known, but somebody else's business.
 */
export function readFields(
  reader: FieldReader,
  raw: JsonObject,
  pointer: () => string,
  problems: ProblemList,
  handled?: (name: string, value: Json) => boolean,
): JsonObject {
  // Most objects use proper names and good values only: those are returned as they are, without a copy.
  let fields: Record<string, Json> | undefined;
  for (const name of Object.keys(raw)) {
    const value = raw[name]!;
    const proper = reader.properName.get(name);
    if (proper === undefined) {
      fields ??= before(raw, name);
      if (name.startsWith("x-")) fields[name] = value;
      else if (handled?.(name, value) !== true) reportUnknown(reader, name, pointer(), problems);
      continue;
    }
    const good = value !== null && checkField(name, reader.table[proper]!, value, pointer, problems);
    const clashes = proper !== name && raw[proper] !== undefined && raw[proper] !== null;
    if (good && clashes) reportRepeated(name, proper, pointer(), problems);
    if (fields === undefined && proper === name && good) continue;
    fields ??= before(raw, name);
    if (!good || clashes) continue;
    if (fields[proper] !== undefined && proper !== name) reportRepeated(name, proper, pointer(), problems);
    fields[proper] = value;
  }
  return fields ?? raw;
}

/** The fields that come before the first one that cannot be taken over as it is. */
function before(raw: JsonObject, end: string): Record<string, Json> {
  const fields: Record<string, Json> = {};
  for (const name of Object.keys(raw)) {
    if (name === end) break;
    fields[name] = raw[name]!;
  }
  return fields;
}

/** The name under which a field was written: `retry_config` for `retry`. */
export function writtenName(reader: FieldReader, raw: JsonObject, proper: string): string {
  if (Object.hasOwn(raw, proper)) return proper;
  return reader.table[proper]?.aliases?.find((alias) => Object.hasOwn(raw, alias)) ?? proper;
}

function reportUnknown(reader: FieldReader, name: string, pointer: string, problems: ProblemList): void {
  let hint: string | undefined;
  if (problems.wantsErrors) {
    const guess = FIELD_GUESSES.get(name);
    const known = guess !== undefined && reader.properName.has(guess) ? guess : undefined;
    const nearest = known ?? nearestName(name, reader.properName.keys());
    hint =
      nearest === undefined
        ? 'Fields of your own start with "x-".'
        : `Did you mean ${quote(nearest)}? Fields of your own start with "x-".`;
  }
  problems.add(
    "UNKNOWN_FIELD",
    pointer + pointerStep(name),
    { field: name, where: reader.what },
    { hint, atKey: true },
  );
}

export function reportRepeated(name: string, same: string, pointer: string, problems: ProblemList): void {
  const hint = `Keep ${quote(same)} and remove ${quote(name)}.`;
  problems.add("REPEATED_FIELD", pointer + pointerStep(name), { field: name, same }, { hint, atKey: true });
}

/** A field that says more about another one, which is not there. */
export function reportIdle(
  given: JsonObject,
  name: string,
  needs: string,
  pointer: string,
  problems: ProblemList,
): void {
  if (given[name] === undefined) return;
  const hint = `It goes with ${needs}.`;
  problems.add("IGNORED_FIELD", pointer + pointerStep(name), { field: name }, { hint, atKey: true });
}

/** True if a value fits its field; else the problem is reported. */
function checkField(name: string, { rule }: Field, value: Json, pointer: () => string, problems: ProblemList): boolean {
  if (fitsQuickly(rule, value)) return true;
  const at = pointer() + pointerStep(name);
  switch (rule.kind) {
    case "number":
      return checkNumber(name, rule, value, at, problems);
    case "text":
      if (typeof value !== "string") return wrongType(name, "text", value, at, problems);
      if (rule.isExpression === true && isLongerThan(value, rule.maxLength)) {
        const reason = `An expression may not have more than ${rule.maxLength} characters; this one has ${characterCount(value)}.`;
        problems.add("EXPRESSION_TOO_COMPLEX", at, { reason });
        return false;
      }
      problems.add("INVALID_NAME", at, {
        field: name,
        reason: isLongerThan(value, rule.maxLength) ? `is longer than ${rule.maxLength} characters` : badText(value),
      });
      return false;
    case "choice": {
      const nearest = typeof value === "string" ? nearestName(value, rule.choices) : undefined;
      const elsewhere = typeof value === "string" ? rule.elsewhere?.[value] : undefined;
      const hint = elsewhere ?? (nearest === undefined ? undefined : `Did you mean ${quote(nearest)}?`);
      const expected = `one of ${rule.choices.map(quote).join(", ")}`;
      const got = typeof value === "string" ? quote(value) : withArticle(typeName(value));
      problems.add("INVALID_TYPE", at, { field: name, expected, got }, { hint });
      return false;
    }
    case "boolean":
      return wrongType(name, "true or false", value, at, problems);
    case "object":
      return wrongType(name, "an object", value, at, problems);
    case "any":
    case "own":
      return true;
  }
}

function fitsQuickly(rule: Rule, value: Json): boolean {
  switch (rule.kind) {
    case "text":
      return typeof value === "string" && !isLongerThan(value, rule.maxLength) && !hasBadText(value);
    case "boolean":
      return typeof value === "boolean";
    case "choice":
      return typeof value === "string" && rule.choices.includes(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "number":
      return false;
    case "any":
    case "own":
      return true;
  }
}

export function wrongType(field: string, expected: string, value: Json, at: string, problems: ProblemList): false {
  problems.add("INVALID_TYPE", at, { field, expected, got: withArticle(typeName(value)) });
  return false;
}

type NumberRule = Extract<Rule, { kind: "number" }>;

export function checkNumber(
  field: string,
  rule: NumberRule,
  value: Json,
  at: string,
  problems: ProblemList,
): value is number {
  if (typeof value !== "number") {
    const hint =
      typeof value === "string" && Number.isFinite(Number.parseFloat(value))
        ? `Write the number without quotes and unit: ${Number.parseFloat(value)}.`
        : undefined;
    const got = withArticle(typeName(value));
    problems.add("INVALID_TYPE", at, { field, expected: rule.integer ? "a whole number" : "a number", got }, { hint });
    return false;
  }
  if (Number.isNaN(value)) {
    problems.add(rule.code, at, { field, reason: "is not a number" });
    return false;
  }
  const odd = oddNumber(value);
  if (odd !== undefined) {
    problems.add("NUMBER_OUT_OF_RANGE", at, { field, reason: odd });
    return false;
  }
  const tooSmall = rule.above ? value <= rule.min : value < rule.min;
  if (!tooSmall && value <= rule.max && !(rule.integer && !Number.isInteger(value))) return true;
  const unit = field.endsWith("_seconds") ? " seconds" : "";
  const least = rule.above ? `more than ${rule.min}` : `at least ${rule.min}`;
  const whole = rule.integer ? "a whole number, " : "";
  const reason = `must be ${whole}${least} and at most ${rule.max}${unit}, not ${value}`;
  problems.add(rule.code, at, { field, reason });
  return false;
}

/** Numbers that another language, or another store, would read back as something else. */
function oddNumber(value: number): string | undefined {
  if (!Number.isFinite(value)) return "does not fit a 64-bit floating point number";
  if (Object.is(value, -0)) return "must not be minus zero";
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return "is too large to be exact";
  return undefined;
}

// Line breaks and tabs are fine in a description; NUL and half characters are not fine anywhere.
function hasBadText(value: string): boolean {
  return value.includes("\0") || !value.isWellFormed();
}

function badText(value: string): string {
  return value.includes("\0") ? "contains a NUL character" : "contains half a surrogate pair";
}
