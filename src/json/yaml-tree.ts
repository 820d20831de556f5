import {
  type Document as YamlDocument,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Pair,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import type { ReadFault } from "./document.ts";
import type { Json } from "./json.ts";
import type { Place } from "./locate.ts";
import { pointerSteps, pointerTo } from "./pointer.ts";
import { FORBIDDEN_KEYS, MAX_JSON_DEPTH } from "./scan.ts";

/** What all aliases of a document together may add to it, counted in values. A few lines of them can mean billions. */
const MAX_ALIASED_VALUES = 100_000;
const MAX_FAULTS = 100;

/** Tags that only say what the value is anyway. */
const PLAIN_TAGS: ReadonlySet<string> = new Set(
  ["str", "int", "float", "bool", "null", "map", "seq"].map((name) => `tag:yaml.org,2002:${name}`),
);

type Collection = YAMLMap | YAMLSeq;

interface Open {
  readonly node: Collection;
  readonly value: Json[] | Record<string, Json>;
  readonly keys: Set<string>;
  readonly anchor: string | undefined;
  next: number;
  step: string | number;
  /** Values in it, aliases counted in full. */
  size: number;
}

interface Anchored {
  readonly node: unknown;
  readonly value: Json;
  readonly size: number;
}

/** A YAML syntax tree as plain JSON, and the way back from a pointer to an offset. The walk keeps its own stack. */
export class YamlTree {
  readonly value: Json | undefined;
  readonly faults: ReadFault[] = [];
  readonly #root: unknown;
  readonly #open: Open[] = [];
  readonly #anchors = new Map<string, Anchored>();
  readonly #openAnchors = new Set<string>();
  /** What each alias stands for, to find positions below it. */
  readonly #targets = new Map<unknown, unknown>();
  readonly #members = new Map<YAMLMap, Map<string, Pair>>();
  #aliasedValues = 0;
  #malformed = false;

  constructor(document: YamlDocument.Parsed) {
    this.#root = document.contents;
    const { yaml } = document.directives;
    if (yaml.explicit === true && yaml.version !== "1.2") this.#unsafe(0, `it asks for YAML ${yaml.version}, not 1.2`);
    const value = this.#convert(document.contents);
    if (!this.#malformed) this.value = value;
  }

  #convert(root: unknown): Json {
    let done = this.#begin(root);
    for (;;) {
      const open = this.#open.at(-1);
      if (open === undefined) return done?.value ?? null;
      if (done !== undefined) this.#put(open, done);
      const following = this.#malformed && this.faults.length >= MAX_FAULTS ? undefined : this.#nextMember(open);
      if (following === undefined) done = this.#close(open);
      else done = this.#begin(following.node);
    }
  }

  /** Converts a leaf, or opens a collection and gives undefined. */
  #begin(node: unknown): { value: Json; size: number } | undefined {
    if (isAlias(node)) return this.#alias(node);
    if (isScalar(node)) {
      this.#checkTag(node.tag, offsetOf(node));
      const value = this.#scalar(node.value, offsetOf(node));
      if (node.anchor !== undefined) this.#anchors.set(node.anchor, { node, value, size: 1 });
      return { value, size: 1 };
    }
    if (!isMap(node) && !isSeq(node)) return { value: null, size: 1 };
    this.#checkTag(node.tag, offsetOf(node));
    if (this.#open.length >= MAX_JSON_DEPTH) {
      this.#fault({ code: "JSON_TOO_DEEP", details: { limit: MAX_JSON_DEPTH }, ...this.#at(offsetOf(node)) });
      return { value: null, size: 1 };
    }
    if (node.anchor !== undefined) this.#openAnchors.add(node.anchor);
    const value = isSeq(node) ? [] : {};
    this.#open.push({ node, value, keys: new Set(), anchor: node.anchor, next: 0, step: "", size: 1 });
    return undefined;
  }

  /** The next member of a collection, with `step` set to its key or index. Members with bad keys are passed over. */
  #nextMember(open: Open): { readonly node: unknown } | undefined {
    for (;;) {
      const index = open.next++;
      const item: unknown = open.node.items[index];
      if (index >= open.node.items.length) return undefined;
      if (isSeq(open.node)) {
        open.step = index;
        return { node: item };
      }
      const pair = item as Pair;
      const key = this.#key(open, pair.key);
      if (key !== undefined) return { node: pair.value };
    }
  }

  #key(open: Open, node: unknown): string | undefined {
    const offset = offsetOf(node);
    if (!isScalar(node) || node.value === null) {
      const pointer = pointerTo(this.#open.slice(0, -1).map(({ step }) => step));
      this.#fault({ code: "YAML_UNSAFE", details: { reason: "a key must be text" }, pointer, offset });
      return undefined;
    }
    this.#checkTag(node.tag, offset);
    const key = typeof node.value === "string" ? node.value : (node.source ?? "");
    open.step = key;
    if (key === "<<") this.#unsafe(offset, 'merge keys ("<<") are not supported; write the fields out');
    else if (FORBIDDEN_KEYS.has(key)) {
      this.#fault({ code: "FORBIDDEN_KEY", details: { key }, hint: "Choose another name.", ...this.#at(offset) });
    } else if (open.keys.has(key)) {
      this.#fault({ code: "DUPLICATE_KEY", details: { key }, hint: "Keep one of the two.", ...this.#at(offset) });
    } else {
      open.keys.add(key);
      return key;
    }
    return undefined;
  }

  #put(open: Open, { value, size }: { value: Json; size: number }): void {
    open.size += size;
    if (Array.isArray(open.value)) open.value.push(value);
    else open.value[open.step] = value;
  }

  #close(open: Open): { value: Json; size: number } {
    this.#open.pop();
    if (open.anchor !== undefined) {
      this.#openAnchors.delete(open.anchor);
      this.#anchors.set(open.anchor, { node: open.node, value: open.value, size: open.size });
    }
    return { value: open.value, size: open.size };
  }

  #alias(alias: { readonly source: string }): { value: Json; size: number } {
    const target = this.#anchors.get(alias.source);
    const none = { value: null, size: 1 };
    if (this.#openAnchors.has(alias.source)) {
      this.#unsafe(offsetOf(alias), `"*${alias.source}" contains itself`);
      return none;
    }
    if (target === undefined) {
      const reason = `"*${alias.source}" has no anchor before it`;
      this.#fault({ code: "INVALID_JSON", details: { format: "YAML", reason }, ...this.#at(offsetOf(alias)) });
      return none;
    }
    const before = this.#aliasedValues;
    this.#aliasedValues += target.size;
    if (this.#aliasedValues > MAX_ALIASED_VALUES) {
      if (before <= MAX_ALIASED_VALUES) this.#unsafe(offsetOf(alias), "its aliases stand for too many values");
      return none;
    }
    if (typeof target.value === "object" && target.value !== null) {
      // The text below an alias was walked at its anchor, perhaps higher up: it counts from here again.
      if (this.#open.length + depthOf(target.value) > MAX_JSON_DEPTH) {
        this.#fault({ code: "JSON_TOO_DEEP", details: { limit: MAX_JSON_DEPTH }, ...this.#at(offsetOf(alias)) });
      }
    }
    this.#targets.set(alias, target.node);
    return { value: target.value, size: target.size };
  }

  #scalar(value: unknown, offset: number): Json {
    if (typeof value === "number" && !Number.isFinite(value) && !Number.isNaN(value)) {
      const details = { field: String(value), reason: "does not fit a 64-bit floating point number" };
      this.#fault({ code: "NUMBER_OUT_OF_RANGE", details, ...this.#at(offset) });
    }
    if (Number.isNaN(value)) {
      const details = { field: ".nan", reason: "is not a number" };
      this.#fault({ code: "NUMBER_OUT_OF_RANGE", details, ...this.#at(offset) });
    }
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
    return null;
  }

  #checkTag(tag: string | undefined, offset: number): void {
    if (tag !== undefined && !PLAIN_TAGS.has(tag)) this.#unsafe(offset, `the tag "${tag}" is not supported`);
  }

  #unsafe(offset: number, reason: string): void {
    this.#fault({ code: "YAML_UNSAFE", details: { reason }, ...this.#at(offset) });
  }

  #at(offset: number): { pointer: string; offset: number } {
    return { pointer: pointerTo(this.#open.map(({ step }) => step)), offset };
  }

  #fault(fault: ReadFault): void {
    if (fault.code !== "NUMBER_OUT_OF_RANGE") this.#malformed = true;
    if (this.faults.length < MAX_FAULTS) this.faults.push(fault);
  }

  locate(pointers: Iterable<string>): Map<string, Place> {
    const places = new Map<string, Place>();
    for (const pointer of pointers) {
      const place = this.#locateOne(pointer);
      if (place !== undefined) places.set(pointer, place);
    }
    return places;
  }

  #locateOne(pointer: string): Place | undefined {
    let node = this.#root;
    let key = offsetOf(node);
    let value = key;
    for (const step of pointerSteps(pointer)) {
      const target = this.#targets.get(node) ?? node;
      if (isSeq(target)) {
        node = target.items[Number(step)];
        if (node === undefined) return undefined;
        key = value = offsetOf(node);
      } else if (isMap(target)) {
        const pair = this.#membersOf(target).get(step);
        if (pair === undefined) return undefined;
        node = pair.value;
        key = offsetOf(pair.key);
        value = node === null ? key : offsetOf(node);
      } else return undefined;
    }
    return { key, value };
  }

  #membersOf(map: YAMLMap): Map<string, Pair> {
    let members = this.#members.get(map);
    if (members === undefined) {
      members = new Map();
      for (const pair of map.items) {
        if (isScalar(pair.key)) {
          const { value, source } = pair.key;
          members.set(typeof value === "string" ? value : (source ?? ""), pair);
        }
      }
      this.#members.set(map, members);
    }
    return members;
  }
}

function offsetOf(node: unknown): number {
  const { range } = (node ?? {}) as { range?: readonly number[] | null };
  return range?.[0] ?? 0;
}

/** How many containers are nested in a value. Only asked of what an alias stands for, which is small by its limit. */
function depthOf(value: Json): number {
  let depth = 0;
  let level: Json[] = [value];
  while (level.length > 0) {
    const inner: Json[] = [];
    let containers = 0;
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue;
      containers++;
      for (const child of Object.values(item)) inner.push(child);
    }
    if (containers > 0) depth++;
    level = inner;
  }
  return depth;
}
