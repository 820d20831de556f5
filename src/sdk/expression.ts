import type { Json } from "../json/json.ts";
import { DEPENDENCY, type Dependency, type Handle, isHandle } from "./dependency.ts";

export const WRITTEN: unique symbol = Symbol.for("millrace.written");
declare const TYPE: unique symbol;

/** Something the engine works out by itself, without a worker. `T` is what comes of it. */
export interface Expr<out T> {
  readonly [TYPE]: T;
  /** For the builder only. */
  readonly [WRITTEN]: Written;
}

/** Where a value stands: `load.output.pages` is the list of pages that `load` will have given. An expression by itself. */
export type Ref<T> = Expr<T> & Steps<T>;

type Steps<T> = T extends readonly (infer Item)[]
  ? { readonly [index: number]: Ref<Item> }
  : T extends object
    ? { readonly [Key in keyof T]-?: Ref<T[Key]> }
    : unknown;

/** What may stand in an expression: handles, places, other expressions, plain data. */
export type Term = Handle<unknown> | Expr<unknown> | Json;

/** An expression as it goes into a definition. */
export interface Written {
  /** `{{ … }}`, or a text with several of them. */
  readonly template: string;
  /** What stands between the braces; undefined for a text. */
  readonly source: string | undefined;
  readonly reads: readonly Dependency[];
}

/**
 * A CEL expression over handles: ``expr`${merge.output.confidence} < ${wf.input.minConfidence}` ``. It runs in the engine,
 * so it needs no worker, and is part of the definition. It is a condition unless its type is said: ``expr<number>`…` ``.
 * Plain data becomes a literal, never a part of the expression's own text.
 */
export function expr<T = boolean>(strings: TemplateStringsArray, ...terms: readonly Term[]): Expr<NoInfer<T>> {
  const reads: Dependency[] = [];
  const parts = terms.map((term) => termText(term, reads));
  return expressionOf(strings.map((text, i) => text + (parts[i] ?? "")).join(""), reads);
}

/** A text with values in it: ``text`Pay ${merge.output.total} €?` ``. */
export function text(strings: TemplateStringsArray, ...terms: readonly Term[]): Expr<string> {
  const reads: Dependency[] = [];
  const parts = terms.map((term) => (typeof term === "string" ? plain(term) : `{{ ${termText(term, reads)} }}`));
  const written = strings.map((own, i) => plain(own) + (parts[i] ?? "")).join("");
  // A template that stands alone keeps its type, and this is a text.
  const template = strings.every((own) => own === "") && parts.length === 1 ? `${written}{{ "" }}` : written;
  return { [WRITTEN]: { template, source: undefined, reads } } as unknown as Expr<string>;
}

/** A secret of the worker that runs the node: the engine never has its value. Only in the config of a task. */
export function secret(name: string): Expr<string> {
  return expressionOf(`secrets.${name}`, []);
}

/** A place that has steps below it. `reads` are the nodes it belongs to: none, for the input. */
export function refTo<T>(source: string, reads: readonly Dependency[]): Ref<T> {
  const written: Written = { template: braced(source), source, reads };
  return new Proxy(
    {},
    {
      get: (_, key) => {
        if (key === WRITTEN) return written;
        // Whoever waits for a value asks for `then` first; a place is no promise.
        return typeof key === "symbol" || key === "then" ? undefined : refTo(source + stepText(key), reads);
      },
      has: (_, key) => key === WRITTEN,
    },
  ) as Ref<T>;
}

export function isExpr(value: unknown): value is Expr<unknown> {
  return typeof value === "object" && value !== null && WRITTEN in value;
}

/**
 * Plain data with expressions in it, as a definition holds it. Braces in a text are the author's own, unless it is the
 * config of a handler, where they mean what they mean in JSON.
 */
export function embed(value: unknown, reads: Dependency[], isConfig = false): Json {
  if (isExpr(value)) {
    const written = value[WRITTEN];
    reads.push(...written.reads);
    return written.template;
  }
  if (typeof value === "string") return isConfig ? value : plain(value);
  if (typeof value !== "object" || value === null) return value as Json;
  if (Array.isArray(value)) return value.map((item: unknown) => embed(item, reads, isConfig));
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(entries.map(([key, member]) => [key, embed(member, reads, isConfig)]));
}

function expressionOf<T>(source: string, reads: readonly Dependency[]): Expr<T> {
  return { [WRITTEN]: { template: braced(source), source, reads } } as unknown as Expr<T>;
}

function termText(term: Term, reads: Dependency[]): string {
  if (isExpr(term)) {
    const { source, reads: inner } = term[WRITTEN];
    if (source === undefined)
      throw new TypeError("A text`…` cannot stand inside an expression; write it with + instead");
    reads.push(...inner);
    return isPlace(source) ? source : `(${source})`;
  }
  if (isHandle(term)) {
    const dependency = term[DEPENDENCY];
    reads.push(dependency);
    return dependency.place;
  }
  return JSON.stringify(term);
}

/** A path needs no parentheses. */
function isPlace(source: string): boolean {
  return /^[\w."[\]#-]+$/.test(source);
}

/** Words that CEL keeps for itself. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    "as break const continue else false for function if import in let loop namespace null package return true var void " +
    "while"
  ).split(" "),
);

function stepText(key: string): string {
  if (/^(0|[1-9]\d{0,14})$/.test(key)) return `[${key}]`;
  return /^[A-Za-z_]\w*$/.test(key) && !RESERVED.has(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function braced(source: string): string {
  return `{{ ${source} }}`;
}

/** A text of the author's own that must not be taken for a template. */
function plain(own: string): string {
  return own.includes("{{") ? `{{ ${JSON.stringify(own)} }}` : own;
}
