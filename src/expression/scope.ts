import type { Json } from "../json/json.ts";

/** A value too large to live in the state (over 64 KiB): its bytes are a record of the store, named by their hash. */
export interface BlobRef {
  readonly hash: string;
  readonly bytes: number;
}

/** What a template may see of another node. A node that was skipped, cancelled or has not run has no output. */
export type NodeView =
  | { readonly kind: "output"; readonly value: Json }
  /** The output is a blob. `value` is there only if the engine has fetched it. */
  | { readonly kind: "blob"; readonly ref: BlobRef; readonly value?: Json }
  | { readonly kind: "error"; readonly error: Json }
  | { readonly kind: "none" };

/** Everything a template or condition can read. Pure data: looking at it has no effect and gives the same answer twice. */
export interface Scope {
  /** A node by id; undefined if the workflow has no such node. */
  node(id: string): NodeView | undefined;
  readonly input: NodeView;
  readonly executionId: string;
  /** Inside a map only. */
  readonly item?: Json;
  readonly index?: number;
}

/** A place in a resolved config that the worker fills: the engine never sees a secret, and passes a blob by reference. */
export type Hole =
  /** `parts` joined give the string at `pointer`; a part is literal text or a secret's name. */
  | { readonly pointer: string; readonly kind: "secret"; readonly parts: readonly SecretPart[] }
  | { readonly pointer: string; readonly kind: "blob"; readonly ref: BlobRef };

export type SecretPart = { readonly text: string } | { readonly secret: string };

/** A run-time failure of a template or condition, which fails the node that holds it. */
export interface ResolveFailure {
  readonly code: "TEMPLATE_UNRESOLVED" | "RESOLVED_INPUT_TOO_LARGE" | "CONDITION_ERROR" | "EXPRESSION_BUDGET_EXCEEDED";
  readonly message: string;
  /** JSON pointer of the template inside the config; empty for a condition. */
  readonly pointer: string;
}

export type Resolution<Value> =
  | { readonly kind: "resolved"; readonly value: Value; readonly holes: readonly Hole[] }
  /** These blobs must be fetched first; ask again with them in the scope. */
  | { readonly kind: "needs"; readonly blobs: readonly BlobRef[] }
  | { readonly kind: "failed"; readonly failure: ResolveFailure };

/** What an expression refers to, known when it is compiled. */
export type Reference =
  /**
   * `path` is the path below the output as far as it is static; `optional` if a default or has() guards it. The first
   * step `output` is not part of it; the first step `error` is, because it may also be a key of the output.
   */
  | {
      readonly kind: "node";
      readonly id: string;
      readonly path: readonly (string | number)[];
      readonly optional: boolean;
      /** The whole output by itself: can be passed on by reference when it is a blob. */
      readonly whole: boolean;
      /** Reads `node.error`: the error if the node failed, else the key `error` of its output. */
      readonly error: boolean;
    }
  | { readonly kind: "input"; readonly path: readonly (string | number)[]; readonly optional: boolean }
  | { readonly kind: "secret"; readonly name: string }
  | { readonly kind: "item" }
  | { readonly kind: "index" }
  | { readonly kind: "execution" };

/** A problem found when an expression is compiled, with the place of the text it was found in. */
export interface ExpressionProblem {
  readonly code:
    | "TEMPLATE_SYNTAX"
    | "TEMPLATE_FORBIDDEN_PATH"
    | "EXPRESSION_TOO_COMPLEX"
    | "EXPRESSION_FORBIDDEN"
    | "TEMPLATE_UNKNOWN_NODE";
  readonly message: string;
  readonly hint?: string;
  /** JSON pointer below the compiled value; empty for a condition. */
  readonly pointer: string;
}

/** A config (any JSON with templates in its strings), compiled once per definition version. */
export interface CompiledValue {
  readonly references: readonly Reference[];
  readonly problems: readonly ExpressionProblem[];
  /** True if nothing in it is a template: `resolve` then gives back the same value (unless it is over 4 MiB). */
  readonly constant: boolean;
  resolve(scope: Scope): Resolution<Json>;
}

/** A condition: must give a boolean. */
export interface CompiledCondition {
  readonly references: readonly Reference[];
  readonly problems: readonly ExpressionProblem[];
  evaluate(scope: Scope): Resolution<boolean>;
}
