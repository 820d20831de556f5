import { addBlobsNeeded, compileTerm, describeFailure, evaluateTerm, referencesOf } from "./term.ts";
import { cutTemplates } from "./scan.ts";
import { ExpressionFailure, tooLarge } from "./failure.ts";
import { jsonBytes, MAX_RESOLVED_BYTES } from "./json-size.ts";
import { typeName } from "./value.ts";
import type {
  BlobRef,
  CompiledCondition,
  CompiledValue,
  ExpressionProblem,
  Reference,
  ResolveFailure,
  Resolution,
  Scope,
} from "./scope.ts";
import type { CompileOptions, Problem } from "./binding.ts";
import type { Json } from "../json/json.ts";
import type { Term } from "./term.ts";

/** Compiles a condition, written with or without `{{ }}`. It must give true or false; anything else is CONDITION_ERROR. */
export function compileCondition(text: string, options: CompileOptions): CompiledCondition {
  const bare = compileBare(text, options);
  return {
    references: bare.references,
    problems: bare.problems,
    evaluate: (scope) => bare.evaluate(scope, "CONDITION_ERROR", onlyBoolean),
  };
}

/** Compiles an expression that gives any JSON value, written with or without `{{ }}`. */
export function compileExpression(text: string, options: CompileOptions): CompiledValue {
  const bare = compileBare(text, options);
  return {
    references: bare.references,
    problems: bare.problems,
    constant: false,
    resolve: (scope) => bare.evaluate(scope, "TEMPLATE_UNRESOLVED", notTooLarge),
  };
}

function onlyBoolean(value: Json): boolean {
  if (typeof value === "boolean") return value;
  throw new ExpressionFailure(
    "TEMPLATE_UNRESOLVED",
    `A condition must give true or false, and this gave ${typeName(value)}.`,
  );
}

function notTooLarge(value: Json): Json {
  if (jsonBytes(value, MAX_RESOLVED_BYTES) > MAX_RESOLVED_BYTES) throw tooLarge();
  return value;
}

interface Bare {
  readonly references: readonly Reference[];
  readonly problems: readonly ExpressionProblem[];
  evaluate<Result>(scope: Scope, code: ResolveFailure["code"], accept: (value: Json) => Result): Resolution<Result>;
}

function compileBare(text: string, options: CompileOptions): Bare {
  const term = bareTerm(text, options);
  if ("code" in term) {
    const failureOf = (code: ResolveFailure["code"]): ResolveFailure => ({ code, message: term.message, pointer: "" });
    return {
      references: [],
      problems: [{ ...term, pointer: "" }],
      evaluate: (_, code) => ({ kind: "failed", failure: failureOf(code) }),
    };
  }
  return {
    references: referencesOf(term, false),
    problems: [],
    evaluate: (scope, code, accept) => evaluate(term, scope, code, accept),
  };
}

function evaluate<Result>(
  term: Term,
  scope: Scope,
  code: ResolveFailure["code"],
  accept: (value: Json) => Result,
): Resolution<Result> {
  const blobs = new Map<string, BlobRef>();
  addBlobsNeeded(term, scope, blobs);
  if (blobs.size > 0) return { kind: "needs", blobs: [...blobs.values()] };
  try {
    return { kind: "resolved", value: accept(evaluateTerm(term, scope)), holes: [] };
  } catch (error) {
    if (!(error instanceof ExpressionFailure)) throw error;
    const message = describeFailure(term, error);
    return {
      kind: "failed",
      failure: { code: error.code === "TEMPLATE_UNRESOLVED" ? code : error.code, message, pointer: "" },
    };
  }
}

function bareTerm(text: string, options: CompileOptions): Term | Problem {
  const body = withoutBraces(text);
  if (typeof body !== "string") return body;
  const term = compileTerm(body, options);
  if ("code" in term || term.kind !== "path" || term.binding.kind !== "secret") return term;
  return {
    code: "EXPRESSION_FORBIDDEN",
    message: "A condition or expression cannot read a secret: the engine never has its value.",
  };
}

function withoutBraces(text: string): string | Problem {
  const trimmed = text.trim();
  if (!trimmed.startsWith("{{")) return trimmed;
  const cut = cutTemplates(trimmed);
  if (cut?.bodies.length === 1 && cut.texts[1] === "") return cut.bodies[0]!;
  return {
    code: "TEMPLATE_SYNTAX",
    message: "A condition or expression is written without {{ }}, or with one pair around all of it.",
  };
}
