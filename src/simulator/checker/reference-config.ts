import { contentHash } from "../../json/hash.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { Given, Hole, Part } from "./given.ts";
import {
  MISSING,
  parsePath,
  type Path,
  type Reader,
  readPath,
  sightOf,
  UNKNOWN,
  valueOf,
  wholeBlob,
} from "./reference-path.ts";
import type { WorkflowNode } from "../../definition/workflow.ts";
import type { Shape } from "./shape.ts";

/** One `{{ }}`: a path with an optional default, a secret, or something this reference does not know. */
type Term =
  | { readonly kind: "path"; readonly path: Path; readonly fallback: Json | undefined }
  | { readonly kind: "secret"; readonly name: string }
  | { readonly kind: "unknown" };

/** A config, read once: where its templates are. */
type Mold =
  | { readonly kind: "constant"; readonly value: Json }
  | { readonly kind: "text"; readonly texts: readonly string[]; readonly terms: readonly Term[] }
  | { readonly kind: "list"; readonly items: readonly Mold[] }
  | { readonly kind: "object"; readonly entries: readonly (readonly [string, Mold])[] };

interface Plan {
  readonly mold: Mold;
  /** The answer itself, if nothing in it depends on the execution. */
  readonly constant: Given | null;
  readonly secrets: ReadonlySet<string>;
}

const PLANS = new WeakMap<WorkflowNode, Plan>();

/** What the node's handler must get, from the definition and the outputs in the journal so far. */
export function givenTo(reader: Reader, model?: string): Given | typeof MISSING | typeof UNKNOWN {
  const given = givenOf(reader);
  if (model === undefined || given === MISSING || given === UNKNOWN || !isJsonObject(given.config)) return given;
  // A budget is not enough for its own.
  return hashed({ ...given.config, model }, given.holes, given.inputs);
}

function givenOf(reader: Reader): Given | typeof MISSING | typeof UNKNOWN {
  const { spec } = reader.node;
  const plan = planOf(spec, reader.story.shape!);
  if (plan.constant !== null) return plan.constant;
  const holes: Hole[] = [];
  const config = fill(plan.mold, "", reader, holes);
  if (config === MISSING || config === UNKNOWN) return config;
  const inputs = spec.inputs ? parentOutputs(reader) : undefined;
  if (inputs === UNKNOWN) return UNKNOWN;
  return hashed(config, holes, inputs);
}

/** The secrets that the node's own templates name. */
export function secretsNamed(spec: WorkflowNode, shape: Shape): ReadonlySet<string> {
  return planOf(spec, shape).secrets;
}

/** One value inside a config, with its templates filled in; nothing in it may be a hole. */
export function resolved(value: Json, reader: Reader): Filled {
  const holes: Hole[] = [];
  const filled = fill(moldOf(value, reader.story.shape!, new Set()), "", reader, holes);
  if (holes.length === 0 || filled === MISSING || filled === UNKNOWN) return filled;
  return holes.some((hole) => hole.kind === "secret")
    ? UNKNOWN
    : fillHoles(filled, holes, {}, (hash) => reader.evidence.blob(hash));
}

/** `{parent: output}` of the parents that completed. */
export function parentOutputs(reader: Reader): Json | typeof UNKNOWN {
  const { story, node, evidence } = reader;
  const outputs: Record<string, Json> = {};
  for (const { node: index } of node.shape.parents) {
    const parent = story.nodes[index]!;
    const sight = sightOf(parent, reader);
    if (sight === "blurred") return UNKNOWN;
    if (sight === "hidden" || parent.status !== "completed" || parent.output === null) continue;
    const value = valueOf(parent.output, evidence);
    if (value === UNKNOWN) return UNKNOWN;
    outputs[parent.shape.id] = value;
  }
  return outputs;
}

/** The given config with its holes filled, or UNKNOWN if what belongs there is not on record. */
export function filled(
  { config, holes }: Given,
  secrets: Readonly<Record<string, string>> | undefined,
  blob: (hash: string) => Json | undefined,
): Json | typeof UNKNOWN {
  return fillHoles(config, holes, secrets, blob);
}

function fillHoles(
  config: Json,
  holes: readonly Hole[],
  secrets: Readonly<Record<string, string>> | undefined,
  blob: (hash: string) => Json | undefined,
): Json | typeof UNKNOWN {
  if (holes.length === 0) return config;
  const values = new Map<string, Json>();
  for (const hole of holes) {
    const value = hole.kind === "blob" ? blob(hole.ref.hash) : secretText(hole.parts, secrets);
    if (value === undefined) return UNKNOWN;
    values.set(hole.pointer, value);
  }
  const copy = (at: Json, pointer: string): Json => {
    if (values.has(pointer)) return values.get(pointer)!;
    if (Array.isArray(at)) return (at as readonly Json[]).map((item, i) => copy(item, `${pointer}/${i}`));
    if (typeof at !== "object" || at === null) return at;
    return Object.fromEntries(Object.entries(at).map(([key, value]) => [key, copy(value, inside(pointer, key))]));
  };
  return copy(config, "");
}

function secretText(parts: readonly Part[], secrets: Readonly<Record<string, string>> | undefined): string | undefined {
  let text = "";
  for (const part of parts) {
    const value = "text" in part ? part.text : secrets?.[part.secret];
    if (value === undefined) return undefined;
    text += value;
  }
  return text;
}

function planOf(spec: WorkflowNode, shape: Shape): Plan {
  let plan = PLANS.get(spec);
  if (plan === undefined) {
    const secrets = new Set<string>();
    const mold = moldOf(spec.config, shape, secrets);
    const constant = mold.kind === "constant" && !spec.inputs ? hashed(mold.value, [], undefined) : null;
    PLANS.set(spec, (plan = { mold, constant, secrets }));
  }
  return plan;
}

/** The text that the hash of an input is of; its layout is part of the event format. */
function hashed(config: Json, holes: readonly Hole[], inputs: Json | undefined): Given {
  const text = JSON.stringify(inputs === undefined ? { config, holes } : { config, holes, inputs });
  return { config, holes, inputs, inputHash: contentHash(text).slice(0, 32) };
}

function moldOf(value: Json, shape: Shape, secrets: Set<string>): Mold {
  if (typeof value === "string") return textMold(value, shape, secrets);
  if (typeof value !== "object" || value === null) return { kind: "constant", value };
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map((item) => moldOf(item, shape, secrets));
    return items.every((item) => item.kind === "constant") ? { kind: "constant", value } : { kind: "list", items };
  }
  const entries = Object.entries(value).map(([key, inner]) => [key, moldOf(inner, shape, secrets)] as const);
  const isConstant = entries.every(([, inner]) => inner.kind === "constant");
  return isConstant ? { kind: "constant", value } : { kind: "object", entries };
}

const TEMPLATE = /\{\{(.*?)\}\}/gs;
const FALLBACK = /^(.*?)\|\s*default\((.*)\)$/s;

function textMold(value: string, shape: Shape, secrets: Set<string>): Mold {
  if (!value.includes("{{")) return { kind: "constant", value };
  const texts: string[] = [];
  const terms: Term[] = [];
  let from = 0;
  for (const match of value.matchAll(TEMPLATE)) {
    texts.push(value.slice(from, match.index));
    from = match.index + match[0].length;
    const term = termOf(match[1]!.trim(), shape);
    if (term.kind === "secret") secrets.add(term.name);
    terms.push(term);
  }
  texts.push(value.slice(from));
  if (texts.some((text) => text.includes("{{"))) terms.push({ kind: "unknown" });
  return { kind: "text", texts, terms };
}

function termOf(body: string, shape: Shape): Term {
  const match = FALLBACK.exec(body);
  const path = parsePath((match?.[1] ?? body).trim(), shape);
  if (path === UNKNOWN) return { kind: "unknown" };
  if ("secret" in path) return match === null ? { kind: "secret", name: path.secret } : { kind: "unknown" };
  if (match === null) return { kind: "path", path, fallback: undefined };
  const fallback = literal(match[2]!.trim());
  return fallback === undefined ? { kind: "unknown" } : { kind: "path", path, fallback };
}

function literal(text: string): Json | undefined {
  if (/^'[^'\\]*'$/.test(text)) return text.slice(1, -1);
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined; // Not a literal that we know.
  }
}

export type Filled = Json | typeof MISSING | typeof UNKNOWN;

function fill(mold: Mold, pointer: string, reader: Reader, holes: Hole[]): Filled {
  switch (mold.kind) {
    case "constant":
      return mold.value;
    case "text":
      return fillText(mold.texts, mold.terms, pointer, reader, holes);
    case "list": {
      const items: Json[] = [];
      for (const [i, item] of mold.items.entries()) {
        const value = fill(item, `${pointer}/${i}`, reader, holes);
        if (value === MISSING || value === UNKNOWN) return value;
        items.push(value);
      }
      return items;
    }
    case "object": {
      const object: Record<string, Json> = {};
      for (const [key, inner] of mold.entries) {
        const value = fill(inner, inside(pointer, key), reader, holes);
        if (value === MISSING || value === UNKNOWN) return value;
        object[key] = value;
      }
      return object;
    }
  }
}

/** The escapes of JSON pointers, by which holes are named. */
function inside(pointer: string, key: string): string {
  return `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function fillText(
  texts: readonly string[],
  terms: readonly Term[],
  pointer: string,
  reader: Reader,
  holes: Hole[],
): Filled {
  const [only] = terms;
  const isLone = terms.length === 1 && texts.every((text) => text === "");
  if (isLone && only!.kind === "path") return lone(only!, pointer, reader, holes);
  const parts: Part[] = [];
  let hasSecret = false;
  for (const [i, term] of terms.entries()) {
    if (term.kind === "unknown") return UNKNOWN;
    if (texts[i] !== "") parts.push({ text: texts[i]! });
    if (term.kind === "secret") {
      hasSecret = true;
      parts.push({ secret: term.name });
      continue;
    }
    const value = termValue(term, reader);
    if (value === MISSING || value === UNKNOWN) return value;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (text !== "") parts.push({ text });
  }
  if (texts.at(-1) !== "") parts.push({ text: texts.at(-1)! });
  if (!hasSecret) return parts.map((part) => ("text" in part ? part.text : "")).join("");
  holes.push({ pointer, kind: "secret", parts });
  return null;
}

function lone(term: Term & { kind: "path" }, pointer: string, reader: Reader, holes: Hole[]): Filled {
  const ref = term.fallback === undefined ? wholeBlob(term.path, reader) : undefined;
  if (ref === undefined) return termValue(term, reader);
  holes.push({ pointer, kind: "blob", ref: { hash: ref.hash, bytes: ref.bytes } });
  return null;
}

function termValue(term: Term & { kind: "path" }, reader: Reader): Filled {
  const value = readPath(term.path, reader);
  return (value === MISSING || value === null) && term.fallback !== undefined ? term.fallback : value;
}
