import { addBlobsNeeded, compileTerm, describeFailure, evaluateTerm, referencesOf } from "./term.ts";
import { asText } from "./filters.ts";
import { cutTemplates } from "./scan.ts";
import { ExpressionFailure, tooLarge } from "./failure.ts";
import { isWhole, viewOf } from "./binding.ts";
import { jsonBytes, MAX_RESOLVED_BYTES, textBytes } from "./json-size.ts";
import { put } from "./value.ts";
import type {
  BlobRef,
  CompiledValue,
  ExpressionProblem,
  Hole,
  Reference,
  Resolution,
  Scope,
  SecretPart,
} from "./scope.ts";
import type { CompileOptions, Problem } from "./binding.ts";
import type { Json } from "../json/json.ts";
import type { Term } from "./term.ts";

const MAX_DEPTH = 64;

/** More than anybody reads. A config of 1 MB could hold a hundred thousand. */
const MAX_PROBLEMS = 100;

const NO_HOLES: readonly Hole[] = Object.freeze([]);

/** An object or list that is being walked through. */
interface Frame {
  readonly source: Json;
  /** The keys of an object, or undefined for a list. */
  readonly keys: readonly string[] | undefined;
  readonly length: number;
  readonly parent: Frame | undefined;
  readonly key: string | number;
  readonly depth: number;
  next: number;
  /** Its position in `Plan.copies`, or -1 as long as no template was found inside it. */
  copy: number;
}

/** A container that must be copied because a template stands somewhere inside it. Parents come before children. */
interface Copy {
  readonly source: Json;
  readonly parent: number;
  readonly key: string | number;
}

/** A string with templates: where it stands, and what it is made of. */
interface Site {
  readonly copy: number;
  readonly key: string | number;
  readonly pointer: string;
  /** `texts[0] terms[0] texts[1] …`; a lone template has two empty texts. */
  readonly texts: readonly string[];
  readonly terms: readonly Term[];
}

/** A config that is being compiled. */
interface Draft {
  readonly copies: Copy[];
  readonly sites: Site[];
  readonly references: Reference[];
  readonly problems: ExpressionProblem[];
  /** The bytes that do not depend on a scope. */
  bytes: number;
}

/** What a resolution goes by. */
interface Plan {
  readonly copies: readonly Copy[];
  readonly sites: readonly Site[];
  readonly bytes: number;
}

const NOTHING: readonly never[] = Object.freeze([]);

/**
 * A list that is pushed to makes room for sixteen more. Of a definition of 100,000 nodes everything here is kept as often,
 * for as long as it runs.
 */
function exact<Item>(list: readonly Item[]): readonly Item[] {
  return list.length === 0 ? NOTHING : list.slice();
}

/**
 * Compiles a config: finds the templates in its strings and says what they refer to. Keys are never templates. The walk
 * keeps its own stack, so the depth of a config cannot use up ours.
 */
export function compileValue(value: Json, options: CompileOptions): CompiledValue {
  const plan: Draft = { copies: [], sites: [], references: [], problems: [], bytes: 0 };
  const root = open(value, undefined, "", 1);
  if (root === undefined) visitLeaf(value, undefined, "", plan, options);

  let frame = root;
  while (frame !== undefined) {
    if (frame.next === frame.length) {
      frame = frame.parent;
      continue;
    }
    const key: string | number = frame.keys === undefined ? frame.next : frame.keys[frame.next]!;
    const member: Json = (frame.source as { [key: string | number]: Json })[key]!;
    frame.next += 1;
    plan.bytes += typeof key === "string" ? textBytes(key) + 4 : 1;
    const inside: Frame | undefined = open(member, frame, key, frame.depth + 1);
    if (inside === undefined) visitLeaf(member, frame, key, plan, options);
    else if (inside.depth <= MAX_DEPTH) frame = inside;
    else addProblem(plan, TOO_DEEP, pointerTo(frame, key));
  }
  return new Compiled(value, plan);
}

const TOO_DEEP: Problem = { code: "EXPRESSION_TOO_COMPLEX", message: `A config may be ${MAX_DEPTH} levels deep.` };

const NEVER_CLOSED: Problem = { code: "TEMPLATE_SYNTAX", message: "A `{{` is never closed by `}}`." };

function addProblem(plan: Draft, problem: Problem, pointer: string): void {
  if (plan.problems.length < MAX_PROBLEMS) plan.problems.push({ ...problem, pointer });
}

function open(value: Json, parent: Frame | undefined, key: string | number, depth: number): Frame | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const keys = Array.isArray(value) ? undefined : Object.keys(value);
  const length = keys === undefined ? (value as readonly Json[]).length : keys.length;
  return { source: value, keys, length, parent, key, depth, next: 0, copy: -1 };
}

function visitLeaf(
  value: Json,
  frame: Frame | undefined,
  key: string | number,
  plan: Draft,
  options: CompileOptions,
): void {
  if (typeof value !== "string") {
    plan.bytes += 4;
    return;
  }
  if (!value.includes("{{")) {
    plan.bytes += textBytes(value) + 2;
    return;
  }
  const pointer = frame === undefined ? "" : pointerTo(frame, key);
  const cut = cutTemplates(value);
  if (cut === undefined) {
    addProblem(plan, NEVER_CLOSED, pointer);
    return;
  }
  const lone = cut.bodies.length === 1 && cut.texts[0] === "" && cut.texts[1] === "";
  const terms: Term[] = [];
  for (const body of cut.bodies) {
    const term = compileTerm(body, options);
    if ("code" in term) {
      addProblem(plan, term, pointer);
      continue;
    }
    terms.push(term);
    plan.references.push(...referencesOf(term, lone && passesWhole(term)));
  }
  for (const text of cut.texts) plan.bytes += textBytes(text);
  const texts = lone ? LONE : exact(cut.texts);
  plan.sites.push({ copy: frame === undefined ? -1 : copyOf(frame, plan), key, pointer, texts, terms: exact(terms) });
}

/** What stands around a lone template. */
const LONE: readonly string[] = Object.freeze(["", ""]);

/** The position of the frame's copy, after those of the containers around it. */
function copyOf(frame: Frame, plan: Draft): number {
  const uncopied: Frame[] = [];
  for (let at: Frame | undefined = frame; at !== undefined && at.copy === -1; at = at.parent) uncopied.push(at);
  for (const each of uncopied.toReversed()) {
    each.copy = plan.copies.push({ source: each.source, parent: each.parent?.copy ?? -1, key: each.key }) - 1;
  }
  return frame.copy;
}

function pointerTo(frame: Frame, key: string | number): string {
  let pointer = `/${escapeToken(key)}`;
  for (let at: Frame = frame; at.parent !== undefined; at = at.parent) pointer = `/${escapeToken(at.key)}${pointer}`;
  return pointer;
}

function escapeToken(key: string | number): string {
  return typeof key === "number" ? String(key) : key.replaceAll("~", "~0").replaceAll("/", "~1");
}

function passesWhole(term: Term): boolean {
  return term.kind === "path" && term.filters.length === 0 && isWhole(term.binding);
}

function isLone(site: Site): boolean {
  return site.terms.length === 1 && site.texts[0] === "" && site.texts[1] === "";
}

class Compiled implements CompiledValue {
  readonly references: readonly Reference[];
  readonly problems: readonly ExpressionProblem[];
  readonly constant: boolean;
  readonly #value: Json;
  readonly #plan: Plan;

  constructor(value: Json, { copies, sites, references, problems, bytes }: Draft) {
    this.#value = value;
    this.#plan = { copies: exact(copies), sites: exact(sites), bytes };
    this.references = exact(references);
    this.problems = exact(problems);
    this.constant = sites.length === 0 && problems.length === 0;
  }

  resolve(scope: Scope): Resolution<Json> {
    const problem = this.problems[0];
    if (problem !== undefined) {
      const { message, pointer } = problem;
      return { kind: "failed", failure: { code: "TEMPLATE_UNRESOLVED", message, pointer } };
    }
    if (this.constant && this.#plan.bytes <= MAX_RESOLVED_BYTES) {
      return { kind: "resolved", value: this.#value, holes: NO_HOLES };
    }
    const blobs = blobsNeeded(this.#plan.sites, scope);
    if (blobs.length > 0) return { kind: "needs", blobs };
    return new Filling(this.#plan, scope).fill(this.#value);
  }
}

/** Every blob that is needed, so that the engine fetches once. What passes by reference is not needed. */
function blobsNeeded(sites: readonly Site[], scope: Scope): readonly BlobRef[] {
  const blobs = new Map<string, BlobRef>();
  for (const site of sites) {
    if (isLone(site) && passesWhole(site.terms[0]!)) continue;
    for (const term of site.terms) addBlobsNeeded(term, scope, blobs);
  }
  return [...blobs.values()];
}

/** One resolution: the copies it makes, the holes it leaves, the bytes it has used. */
class Filling {
  readonly #plan: Plan;
  readonly #scope: Scope;
  readonly #holes: Hole[] = [];
  #bytes: number;

  constructor(plan: Plan, scope: Scope) {
    this.#plan = plan;
    this.#scope = scope;
    this.#bytes = plan.bytes;
  }

  fill(source: Json): Resolution<Json> {
    let at: { site: Site; term: Term | undefined } | undefined;
    try {
      this.#take(0);
      const copies = this.#plan.copies.map(({ source }) =>
        Array.isArray(source) ? [...(source as Json[])] : { ...(source as object) },
      );
      this.#plan.copies.forEach(({ parent, key }, index) => {
        if (parent !== -1) set(copies[parent]!, key, copies[index] as Json);
      });
      let root: Json = copies.length > 0 ? (copies[0] as Json) : source;
      for (const site of this.#plan.sites) {
        at = { site, term: undefined };
        const value = this.#siteValue(site, (term) => (at = { site, term }));
        if (site.copy === -1) root = value;
        else set(copies[site.copy]!, site.key, value);
      }
      return { kind: "resolved", value: root, holes: this.#holes };
    } catch (error) {
      if (!(error instanceof ExpressionFailure)) throw error;
      const message = at?.term === undefined ? error.message : describeFailure(at.term, error);
      return { kind: "failed", failure: { code: error.code, message, pointer: at?.site.pointer ?? "" } };
    }
  }

  #siteValue(site: Site, entering: (term: Term) => void): Json {
    if (site.terms.some((term) => term.kind === "path" && term.binding.kind === "secret")) {
      return this.#leaveSecret(site, entering);
    }
    const [term] = site.terms;
    if (!isLone(site)) return this.#mixedText(site, entering);
    entering(term!);
    if (passesWhole(term!) && this.#leftBlob(site, term!)) return null;
    const value = evaluateTerm(term!, this.#scope);
    this.#take(jsonBytes(value, MAX_RESOLVED_BYTES - this.#bytes));
    return value;
  }

  #mixedText({ texts, terms }: Site, entering: (term: Term) => void): string {
    let text = texts[0]!;
    terms.forEach((term, index) => {
      entering(term);
      text += this.#insert(term) + texts[index + 1]!;
    });
    return text;
  }

  #insert(term: Term): string {
    const text = asText(evaluateTerm(term, this.#scope));
    this.#take(textBytes(text));
    return text;
  }

  /** A blob stays where it is, also if it was fetched for another template: the answer must not depend on that. */
  #leftBlob(site: Site, term: Term): boolean {
    const view = term.kind === "path" ? viewOf(term.binding, this.#scope) : undefined;
    if (view?.kind !== "blob") return false;
    this.#take(view.ref.bytes);
    this.#holes.push({ pointer: site.pointer, kind: "blob", ref: view.ref });
    return true;
  }

  /** The parts come from the template; what was resolved is one of them and is never looked at for `{{`. */
  #leaveSecret({ pointer, texts, terms }: Site, entering: (term: Term) => void): null {
    const parts: SecretPart[] = [];
    const addText = (text: string): void => {
      if (text !== "") parts.push({ text });
    };
    addText(texts[0]!);
    terms.forEach((term, index) => {
      entering(term);
      if (term.kind === "path" && term.binding.kind === "secret") parts.push({ secret: term.binding.name });
      else addText(this.#insert(term));
      addText(texts[index + 1]!);
    });
    this.#holes.push({ pointer, kind: "secret", parts });
    return null;
  }

  /** Asked for each insertion before it is joined to others, so that 1 MB used 1,000 times stops at the fifth. */
  #take(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_RESOLVED_BYTES) throw tooLarge();
  }
}

function set(container: object, key: string | number, value: Json): void {
  put(container as { [key: string]: Json }, key as string, value);
}
