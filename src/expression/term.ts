import { applyFilters } from "./filters.ts";
import { bind, blobNeeded, isProblem, outputOf, read, referenceTo, viewOf, whyMissing } from "./binding.ts";
import { compileCel } from "./cel.ts";
import { ExpressionFailure, tooLarge, unresolved } from "./failure.ts";
import { jsonBytes, MAX_RESOLVED_BYTES, textBytes } from "./json-size.ts";
import { Meter } from "./meter.ts";
import { MISSING } from "./step.ts";
import { parsePath } from "./path.ts";
import { toJson } from "./value.ts";
import type { Binding, CompileOptions, Problem } from "./binding.ts";
import type { BlobRef, Reference, Scope } from "./scope.ts";
import type { Expression } from "./cel.ts";
import type { Filter } from "./filters.ts";
import type { Json } from "../json/json.ts";
import type { Missing } from "./step.ts";
import type { Run } from "./cel-run.ts";
import type { Value } from "./value.ts";

/** What stands between `{{` and `}}`, or a condition: a path with filters, or a CEL expression. */
export type Term =
  | { readonly kind: "path"; readonly source: string; readonly binding: Binding; readonly filters: readonly Filter[] }
  | { readonly kind: "cel"; readonly source: string; readonly expression: Expression };

const MAX_TERM_BYTES = 4_096;

/** Compiles a term, or says what is wrong with it. Never throws. */
export function compileTerm(source: string, options: CompileOptions): Term | Problem {
  // A text this short cannot be too long in any script, and most are.
  if (source.length * 3 > MAX_TERM_BYTES && textBytes(source) > MAX_TERM_BYTES) {
    return { code: "EXPRESSION_TOO_COMPLEX", message: `An expression may have ${MAX_TERM_BYTES} bytes.` };
  }
  const path = parsePath(source);
  if (path === "other") {
    if (source.trim() === "") return { code: "TEMPLATE_SYNTAX", message: "There is nothing between {{ and }}." };
    return celTerm(source, options);
  }
  if ("code" in path) return path;

  const binding = bind(path.name, path.steps, options);
  if (isProblem(binding))
    return isPerhapsCel(binding, path.filters) ? orElse(celTerm(source, options), binding) : binding;
  if (binding.kind === "secret" && path.filters.length > 0) {
    return {
      code: "EXPRESSION_FORBIDDEN",
      message: "A secret takes no filters: the engine never has its value.",
    };
  }
  return { kind: "path", source, binding, filters: path.filters };
}

/** `true`, `42` and `a-b` look like paths whose first word is no node. */
function isPerhapsCel(problem: Problem, filters: readonly Filter[]): boolean {
  return problem.code === "TEMPLATE_UNKNOWN_NODE" && filters.length === 0;
}

/** "No such node" says more than "no expression either", but less than why an expression is refused. */
function orElse(term: Term | Problem, problem: Problem): Term | Problem {
  if (!("code" in term)) return term;
  return term.code === "EXPRESSION_FORBIDDEN" || term.code === "EXPRESSION_TOO_COMPLEX" ? term : problem;
}

function celTerm(source: string, options: CompileOptions): Term | Problem {
  const expression = compileCel(source, options);
  return "code" in expression ? expression : { kind: "cel", source, expression };
}

/** `whole`: the term is a template by itself, so that a whole output in it can pass by reference. */
export function referencesOf(term: Term, whole: boolean): Reference[] {
  if (term.kind === "path") {
    const optional = term.filters.some((filter) => filter.fallback !== undefined);
    return [referenceTo(term.binding, optional, whole)];
  }
  const { bindings, program } = term.expression;
  // has() on a node means that its author thought of its absence, so every read of it in the expression counts as guarded.
  const guarded = new Set(bindings.filter((_, index) => program.uses[index]!.guarded).map(subject));
  return bindings.map((binding) => referenceTo(binding, guarded.has(subject(binding)), false));
}

function subject(binding: Binding): string {
  return binding.kind === "node" ? `node ${binding.id}` : binding.kind;
}

function bindingsOf(term: Term): readonly Binding[] {
  return term.kind === "path" ? [term.binding] : term.expression.bindings;
}

/** Adds the blobs that must be fetched before the term can be evaluated. */
export function addBlobsNeeded(term: Term, scope: Scope, blobs: Map<string, BlobRef>): void {
  for (const binding of bindingsOf(term)) {
    const ref = blobNeeded(binding, scope);
    if (ref !== undefined) blobs.set(ref.hash, ref);
  }
}

/** The value of a term. Throws an `ExpressionFailure` and nothing else. */
export function evaluateTerm(term: Term, scope: Scope): Json {
  if (term.kind === "path") {
    const value = applyFilters(term.filters, read(term.binding, scope));
    if (value !== MISSING) return value;
    const why = read(term.binding, scope) === MISSING ? whyMissing(term.binding, scope) : "The list is empty.";
    throw unresolved(why);
  }
  const value = runExpression(term.expression, scope);
  // Measured before it is copied: `[n, n, n]` is small only as long as nobody walks through it.
  if (jsonBytes(value as Json, MAX_RESOLVED_BYTES) > MAX_RESOLVED_BYTES) throw tooLarge();
  return toJson(value);
}

/** A failure as a sentence that names the template. */
export function describeFailure(term: Term, failure: ExpressionFailure): string {
  return `{{ ${shorten(term.source.trim())} }}: ${failure.message}`;
}

function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

const NO_OUTPUT: Value = Object.freeze({});

function runExpression({ program, bindings }: Expression, scope: Scope): Value {
  const run: Run = {
    meter: new Meter(),
    locals: [],
    read: (use) => readInExpression(bindings[use]!, scope),
    whyMissing: (use) => whyMissing(bindings[use]!, scope),
  };
  return program.evaluate(run);
}

/** As on a path, but a node without output is `{}` by its bare name. */
function readInExpression(binding: Binding, scope: Scope): Value | Missing {
  const bare = (binding.kind === "node" && !binding.viaOutput) || binding.kind === "input";
  if (bare && binding.steps.length === 0 && outputOf(viewOf(binding, scope)) === MISSING) return NO_OUTPUT;
  return read(binding, scope);
}
