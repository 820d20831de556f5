import { counted } from "../errors/counted.ts";
import type { RE2JS } from "re2js";
import { canonicalJson } from "./canonical.ts";
import { characterCount } from "./characters.ts";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { isMultiple } from "./multiple.ts";
import { pointerStep } from "./pointer.ts";
import { MAX_FAULTS, resolveRef, type SchemaFault, schemaFaults, TYPES } from "./schema-faults.ts";
import { typeName, withArticle } from "./type-name.ts";

export type { SchemaFault } from "./schema-faults.ts";

/**
 * JSON Schema 2020-12, the part that describes data: type, enum, const, numbers, text, arrays, objects, allOf, anyOf,
 * oneOf, not, if/then/else and `$ref` within the schema; `dependencies` of draft 7. `format` and unknown keywords say
 * nothing; known ones that are not checked by are faults. docs/schemas.md tells it to users.
 *
 * Why not Zod's fromJSONSchema: it ignores `required`, `properties` and `minimum` where there is no `type`, does not
 * know `not` and `if`, compares a constant object by identity, and gives `pattern` to the backtracking RegExp, which a
 * stranger's schema can make run for hours.
 */
export class Schema {
  readonly #root: Json;
  readonly #patterns: ReadonlyMap<string, RE2JS>;
  readonly #choices = new WeakMap<readonly Json[], Choice>();

  private constructor(root: Json, patterns: ReadonlyMap<string, RE2JS>) {
    this.#root = root;
    this.#patterns = patterns;
  }

  /**
   * Gives a list of faults instead if this is not a schema we can check by. One that is being submitted, and so is new,
   * must not have empty choices either; those that are in use already are checked by as they are.
   */
  static compile(root: Json, { isNew = false }: { readonly isNew?: boolean } = {}): Schema | readonly SchemaFault[] {
    const patterns = new Map<string, RE2JS>();
    const faults = schemaFaults(root, patterns, { isNew });
    return faults.length > 0 ? faults : new Schema(root, patterns);
  }

  /**
   * For one that was found good before, by a release that refused less: what is not understood says nothing, and all the
   * rest is checked by.
   */
  static ofStored(root: Json): Schema {
    const patterns = new Map<string, RE2JS>();
    schemaFaults(root, patterns, { most: Infinity });
    return new Schema(root, patterns);
  }

  /**
   * What is wrong with a value, at most 20 faults. `isAny` marks values that stand for any other (a template, before it
   * is resolved): they fit everything.
   */
  check(value: Json, isAny?: (value: Json) => boolean): readonly SchemaFault[] {
    return new Check(this.#root, this.#patterns, this.#choices, isAny).run(value);
  }
}

/** An `enum`, made ready when it is first met. */
interface Choice {
  /** Its options as texts. */
  readonly texts: ReadonlySet<string>;
  /** For people. */
  readonly shown: string;
}

/**
 * The check calls itself along the schema and the value. Values are at most 64 deep; this bounds a `$ref` that leads
 * back to itself without taking a step into the value.
 */
const MAX_DEPTH = 400;
/** Alternatives within alternatives multiply. A large value has more steps: each of its parts is looked at. */
const MAX_STEPS = 200_000;
const MAX_STEPS_PER_PART = 8;
/** Names that are looked up for the price of one step. */
const NAMES_PER_STEP = 32;
/**
 * What texts may cost: looking for a pattern takes as long as the text times the pattern, and some seconds for so much at worst.
 * Whoever checks stands in nobody's way for longer: it may be an owner, with a whole partition behind it.
 */
const MAX_TEXT_WORK = 50_000_000;
const WORK_PER_SEARCH = 64;

const DEPENDENCIES = ["dependentRequired", "dependentSchemas", "dependencies"] as const;

class Check {
  readonly #root: Json;
  readonly #patterns: ReadonlyMap<string, RE2JS>;
  readonly #choices: WeakMap<readonly Json[], Choice>;
  readonly #isAny: ((value: Json) => boolean) | undefined;
  /** Of lists and objects that were compared. */
  readonly #texts = new Map<Json, string>();
  #faults: SchemaFault[] = [];
  #depth = 0;
  #isGivenUp = false;
  #workLeft = MAX_TEXT_WORK;
  #stepsLeft = MAX_STEPS;
  /** Counted once the first steps are used up: most values never come so far. */
  #partsCounted = false;
  #whole: Json = null;

  constructor(
    root: Json,
    patterns: ReadonlyMap<string, RE2JS>,
    choices: WeakMap<readonly Json[], Choice>,
    isAny: ((value: Json) => boolean) | undefined,
  ) {
    this.#root = root;
    this.#patterns = patterns;
    this.#choices = choices;
    this.#isAny = isAny;
  }

  run(value: Json): readonly SchemaFault[] {
    this.#whole = value;
    this.#visit(this.#root, value, "");
    // What was given up within a `not`, or as an alternative, is no answer either.
    if (this.#isGivenUp) this.#addTooLong("");
    return this.#faults.slice(0, MAX_FAULTS);
  }

  #visit(schema: Json, value: Json, pointer: string): void {
    if (this.#isGivenUp || !this.#takeSteps(1)) return this.#giveUp(pointer);
    if (this.#depth > MAX_DEPTH) return this.#addTooLong(pointer);
    if (schema === false) this.#add(pointer, "false", "not be there");
    if (!isJsonObject(schema) || this.#isAny?.(value) === true || this.#faults.length >= MAX_FAULTS) return;
    this.#depth++;
    const { $ref } = schema;
    if (typeof $ref === "string") this.#visit(resolveRef(this.#root, $ref) ?? true, value, pointer);
    this.#visitValue(schema, value, pointer);
    this.#visitCombinations(schema, value, pointer);
    this.#depth--;
  }

  #takeSteps(count: number): boolean {
    if (this.#stepsLeft < count && !this.#partsCounted) {
      this.#partsCounted = true;
      this.#stepsLeft += MAX_STEPS_PER_PART * countParts(this.#whole);
    }
    this.#stepsLeft -= count;
    return this.#stepsLeft >= 0;
  }

  /** Whether there is time to look so many names up. */
  #takeNames(count: number, pointer: string): boolean {
    if (count < NAMES_PER_STEP || this.#takeSteps(Math.floor(count / NAMES_PER_STEP))) return true;
    this.#giveUp(pointer);
    return false;
  }

  /** Of the whole: there is no time for the rest either. */
  #giveUp(pointer: string): void {
    this.#isGivenUp = true;
    this.#addTooLong(pointer);
  }

  #addTooLong(pointer: string): void {
    if (this.#faults.length === 0) this.#add(pointer, "", "be simpler: this schema takes too long to check");
  }

  /** undefined if the pattern was not understood, or there is no time for it. */
  #finds(pattern: string, text: string, pointer: string): boolean | undefined {
    const compiled = this.#patterns.get(pattern);
    if (compiled === undefined) return undefined;
    this.#workLeft -= text.length * compiled.programSize() + WORK_PER_SEARCH;
    if (this.#workLeft >= 0) return compiled.matcher(text).find();
    this.#giveUp(pointer);
    return undefined;
  }

  /** undefined if there is no time to count them. */
  #charactersOf(text: string, pointer: string): number | undefined {
    this.#workLeft -= text.length;
    if (this.#workLeft >= 0) return characterCount(text);
    this.#giveUp(pointer);
    return undefined;
  }

  #choiceOf(options: readonly Json[]): Choice {
    let choice = this.#choices.get(options);
    if (choice === undefined) {
      choice = { texts: new Set(options.map((option) => canonicalJson(option))), shown: listed(options) };
      this.#choices.set(options, choice);
    }
    return choice;
  }

  /** The same for equal values. */
  #textOf(value: Json): string {
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    let text = this.#texts.get(value);
    if (text === undefined) this.#texts.set(value, (text = canonicalJson(value)));
    return text;
  }

  #visitValue(schema: JsonObject, value: Json, pointer: string): void {
    const { type } = schema;
    const types = typeof type === "string" ? [type] : Array.isArray(type) ? (type as string[]) : undefined;
    if (types !== undefined && !types.some((name) => hasType(value, name))) {
      this.#add(pointer, "type", `be ${types.map(withArticle).join(" or ")}, not ${withArticle(typeName(value))}`);
      return;
    }
    const { enum: options, const: constant } = schema;
    if (Array.isArray(options)) {
      const { texts, shown } = this.#choiceOf(options);
      if (!texts.has(this.#textOf(value))) this.#add(pointer, "enum", `be one of ${shown}`);
    }
    if (constant !== undefined && constant !== value && this.#textOf(constant) !== this.#textOf(value)) {
      this.#add(pointer, "const", `be ${brief(this.#textOf(constant))}`);
    }
    if (typeof value === "number") this.#visitNumber(schema, value, pointer);
    else if (typeof value === "string") this.#visitText(schema, value, pointer);
    else if (Array.isArray(value)) this.#visitArray(schema, value, pointer);
    else if (isJsonObject(value)) this.#visitObject(schema, value, pointer);
  }

  #visitNumber(schema: JsonObject, value: number, pointer: string): void {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
    if (typeof minimum === "number" && value < minimum) this.#add(pointer, "minimum", `be at least ${minimum}`);
    if (typeof maximum === "number" && value > maximum) this.#add(pointer, "maximum", `be at most ${maximum}`);
    if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) {
      this.#add(pointer, "exclusiveMinimum", `be more than ${exclusiveMinimum}`);
    }
    if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) {
      this.#add(pointer, "exclusiveMaximum", `be less than ${exclusiveMaximum}`);
    }
    if (typeof multipleOf === "number" && multipleOf > 0 && !isMultiple(value, multipleOf)) {
      this.#add(pointer, "multipleOf", `be a multiple of ${multipleOf}`);
    }
  }

  #visitText(schema: JsonObject, value: string, pointer: string): void {
    const { minLength, maxLength, pattern } = schema;
    const isMeasured = typeof minLength === "number" || typeof maxLength === "number";
    const length = isMeasured ? this.#charactersOf(value, pointer) : undefined;
    if (length !== undefined && typeof minLength === "number" && length < minLength) {
      this.#add(pointer, "minLength", minLength === 1 ? "not be empty" : `have at least ${minLength} characters`);
    }
    if (length !== undefined && typeof maxLength === "number" && length > maxLength) {
      this.#add(pointer, "maxLength", `have at most ${counted(maxLength, "character")}`);
    }
    if (typeof pattern === "string" && this.#finds(pattern, value, pointer) === false) {
      this.#add(pointer, "pattern", `match ${pattern}`);
    }
  }

  #visitArray(schema: JsonObject, value: readonly Json[], pointer: string): void {
    const { minItems, maxItems, prefixItems, items } = schema;
    if (typeof minItems === "number" && value.length < minItems) {
      this.#add(pointer, "minItems", `have at least ${counted(minItems, "item")}`);
    }
    if (typeof maxItems === "number" && value.length > maxItems) {
      this.#add(pointer, "maxItems", `have at most ${counted(maxItems, "item")}`);
    }
    if (schema["uniqueItems"] === true && this.#takeNames(value.length, pointer)) {
      const isRepeated = new Set(value.map((item) => this.#textOf(item))).size < value.length;
      if (isRepeated) this.#add(pointer, "uniqueItems", "not repeat an item");
    }
    if (schema["contains"] !== undefined) this.#visitContains(schema["contains"], schema, value, pointer);
    const prefix = Array.isArray(prefixItems) ? (prefixItems as readonly Json[]) : [];
    for (let i = 0; i < value.length; i++) {
      const itemSchema = i < prefix.length ? prefix[i] : items;
      if (itemSchema !== undefined) this.#visit(itemSchema, value[i]!, pointer + pointerStep(i));
    }
  }

  #visitContains(contains: Json, schema: JsonObject, value: readonly Json[], pointer: string): void {
    const { minContains, maxContains } = schema;
    const min = typeof minContains === "number" ? minContains : 1;
    const max = typeof maxContains === "number" ? maxContains : Infinity;
    let fitting = 0;
    for (let i = 0; i < value.length && (fitting < min || max < Infinity); i++) {
      if (this.#trial(contains, value[i]!, pointer + pointerStep(i)).length === 0) fitting++;
    }
    if (this.#isGivenUp) return this.#addTooLong(pointer);
    const asked = "of the form that is asked for";
    if (fitting < min) this.#add(pointer, "contains", `have at least ${counted(min, "item")} ${asked}`);
    if (fitting > max && !this.#holdsAny(value)) {
      this.#add(pointer, "maxContains", `have at most ${counted(max, "item")} ${asked}`);
    }
  }

  #visitObject(schema: JsonObject, value: JsonObject, pointer: string): void {
    const keys = Object.keys(value);
    const { required, minProperties, maxProperties, propertyNames } = schema;
    if (Array.isArray(required) && this.#takeNames(required.length, pointer)) {
      this.#demand(required as readonly string[], value, pointer, "required", "");
    }
    if (typeof minProperties === "number" && keys.length < minProperties) {
      this.#add(pointer, "minProperties", `have at least ${counted(minProperties, "field")}`);
    }
    if (typeof maxProperties === "number" && keys.length > maxProperties) {
      this.#add(pointer, "maxProperties", `have at most ${counted(maxProperties, "field")}`);
    }
    for (const key of keys) {
      if (this.#isGivenUp || this.#faults.length >= MAX_FAULTS) return;
      if (propertyNames !== undefined) this.#visit(propertyNames, key, pointer);
      this.#visitMember(schema, key, value[key]!, pointer);
    }
    for (const keyword of DEPENDENCIES) this.#visitDependencies(keyword, schema[keyword], value, pointer);
  }

  /** Of what must be there, as many as people read of what is not. */
  #demand(names: readonly string[], value: JsonObject, pointer: string, keyword: string, why: string): void {
    for (const name of names) {
      if (this.#faults.length >= MAX_FAULTS) return;
      if (!Object.hasOwn(value, name)) this.#add(pointer, keyword, `have "${name}"${why}`, { property: name });
    }
  }

  /** What a field brings with it: others that must be there, or a schema for the whole. */
  #visitDependencies(keyword: string, byField: Json | undefined, value: JsonObject, pointer: string): void {
    if (!isJsonObject(byField)) return;
    const fields = Object.entries(byField);
    if (!this.#takeNames(fields.length, pointer)) return;
    for (const [field, needed] of fields) {
      if (!Object.hasOwn(value, field)) continue;
      if (!Array.isArray(needed)) this.#visit(needed, value, pointer);
      else if (this.#takeNames(needed.length, pointer)) {
        this.#demand(needed as readonly string[], value, pointer, keyword, `, since it has "${field}"`);
      }
    }
  }

  #visitMember(schema: JsonObject, key: string, member: Json, pointer: string): void {
    const { properties, patternProperties, additionalProperties } = schema;
    const at = pointer + pointerStep(key);
    let known = false;
    if (isJsonObject(properties) && Object.hasOwn(properties, key)) {
      known = true;
      this.#visit(properties[key]!, member, at);
    }
    if (isJsonObject(patternProperties)) {
      for (const [pattern, memberSchema] of Object.entries(patternProperties)) {
        const matches = this.#finds(pattern, key, pointer);
        if (matches === false) continue;
        // By one that is not understood it may be known, and nothing else is known of it.
        if (matches === undefined) {
          known = true;
          continue;
        }
        known = true;
        this.#visit(memberSchema, member, at);
      }
    }
    if (known || additionalProperties === undefined) return;
    if (additionalProperties !== false) this.#visit(additionalProperties, member, at);
    else {
      const names = isJsonObject(properties) ? Object.keys(properties) : [];
      this.#add(pointer, "additionalProperties", `not have "${key}"`, { property: key, known: names });
    }
  }

  #visitCombinations(schema: JsonObject, value: Json, pointer: string): void {
    const { allOf, anyOf, oneOf, not } = schema;
    if (Array.isArray(allOf)) for (const each of allOf as readonly Json[]) this.#visit(each, value, pointer);
    if (Array.isArray(anyOf)) this.#visitAlternatives("anyOf", anyOf, value, pointer);
    if (Array.isArray(oneOf)) this.#visitAlternatives("oneOf", oneOf, value, pointer);
    if (not !== undefined && this.#trial(not, value, pointer).length === 0 && !this.#holdsAny(value)) {
      this.#add(pointer, "not", "not have this form");
    }
    if (schema["if"] !== undefined && !this.#holdsAny(value)) {
      const branch = this.#trial(schema["if"], value, pointer).length === 0 ? schema["then"] : schema["else"];
      if (branch !== undefined) this.#visit(branch, value, pointer);
    }
  }

  #visitAlternatives(keyword: string, schemas: readonly Json[], value: Json, pointer: string): void {
    const results = schemas.map((schema) => this.#trial(schema, value, pointer));
    if (this.#isGivenUp) return this.#addTooLong(pointer);
    const fitting = results.filter((faults) => faults.length === 0).length;
    if (fitting === 0) {
      // An alternative of the right type that fails further in is the one that was meant, if it is the only one.
      const meant = results.filter((faults) => !faults.some((fault) => fault.pointer === pointer && isShape(fault)));
      if (meant.length === 1) this.#faults.push(...meant[0]!);
      else this.#add(pointer, keyword, `have one of ${schemas.length} forms, and fits none`);
    } else if (fitting > 1 && keyword === "oneOf" && !this.#holdsAny(value)) {
      this.#add(pointer, keyword, `fit exactly one of ${schemas.length} forms, not ${fitting}`);
    }
  }

  /** The faults by one schema, without reporting them. */
  #trial(schema: Json, value: Json, pointer: string): readonly SchemaFault[] {
    const before = this.#faults;
    this.#faults = [];
    this.#visit(schema, value, pointer);
    const found = this.#faults;
    this.#faults = before;
    return found;
  }

  /** With a template somewhere inside, "fits too much" cannot be known yet. */
  #holdsAny(value: Json): boolean {
    const isAny = this.#isAny;
    if (isAny === undefined) return false;
    const left: Json[] = [value];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      if (isAny(next)) return true;
      if (typeof next === "object" && next !== null) for (const child of Object.values(next)) left.push(child);
    }
    return false;
  }

  #add(pointer: string, keyword: string, reason: string, more?: Pick<SchemaFault, "property" | "known">): void {
    this.#faults.push({ pointer, keyword, reason: `must ${reason}`, ...more });
  }
}

/** Says that the value is another kind of thing altogether. */
function isShape({ keyword }: SchemaFault): boolean {
  return keyword === "type" || keyword === "const" || keyword === "enum" || keyword === "false";
}

function hasType(value: Json, type: string): boolean {
  if (type === "integer") return typeof value === "number" && Number.isInteger(value);
  return type === typeName(value) || !TYPES.has(type);
}

/** The values in a value, itself included. */
function countParts(root: Json): number {
  let count = 0;
  const left: Json[] = [root];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    count++;
    if (typeof next === "object" && next !== null) for (const child of Object.values(next)) left.push(child);
  }
  return count;
}

/** Options that are named: more are a list that nobody reads. */
const MAX_LISTED = 100;

function listed(options: readonly Json[]): string {
  const shown = options.slice(0, MAX_LISTED).map((option) => brief(JSON.stringify(option)));
  return shown.join(", ") + (options.length > MAX_LISTED ? " …" : "");
}

function brief(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
