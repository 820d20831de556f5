import { compileFilter } from "./filters.ts";
import type { Filter } from "./filters.ts";
import type { Problem } from "./binding.ts";
import type { Json } from "../json/json.ts";
import type { Step } from "./step.ts";

/** A path as it is written: `name(.key | [n] | ["key"])*` and filters. */
export interface Path {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly filters: readonly Filter[];
}

const NO_FILTERS: readonly Filter[] = [];
const MAX_FILTERS = 16;

/** Sticky, so that one expression object serves every text without slicing it. None can backtrack. */
const WORD = /[A-Za-z0-9_-]+/y;
const SPACE = /[ \t\r\n]*/y;
const INDEX = /\[(\d{1,15})\]/y;

/** Reads a text as a path. "other" means that it is none: it may be an expression. */
export function parsePath(text: string): Path | Problem | "other" {
  const start = skipSpace(text, 0);
  const name = match(WORD, text, start);
  if (name === undefined || name.startsWith("-")) return "other";

  const read: Step[] = [];
  let at = start + name.length;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 46 /* . */) {
      const key = match(WORD, text, at + 1);
      if (key === undefined) return "other";
      read.push(key);
      at += 1 + key.length;
    } else if (code === 91 /* [ */) {
      const bracket = readBracket(text, at);
      if (bracket === undefined) return "other";
      read.push(bracket.value);
      at = bracket.end;
    } else break;
  }

  // A copy has no room for more: paths are kept for as long as their definition is.
  const steps = read.slice();
  at = skipSpace(text, at);
  if (at === text.length) return { name, steps, filters: NO_FILTERS };
  if (text[at] !== "|" || text[at + 1] === "|") return "other";
  const filters = parseFilters(text, at);
  return "code" in filters ? filters : { name, steps, filters };
}

function readBracket(text: string, at: number): { value: Step; end: number } | undefined {
  const index = match(INDEX, text, at);
  if (index !== undefined) return { value: Number(index.slice(1, -1)), end: at + index.length };
  const quoted = readQuoted(text, at + 1);
  return quoted !== undefined && text[quoted.end] === "]" ? { value: quoted.value, end: quoted.end + 1 } : undefined;
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  "\\": "\\",
  "/": "/",
  '"': '"',
  "'": "'",
};
const PLAIN = /[^"'\\\r\n]+/y;

/** A text in single or double quotes with the common escapes. Undefined if there is none at `at`. */
function readQuoted(text: string, at: number): { value: string; end: number } | undefined {
  const quote = text[at];
  if (quote !== '"' && quote !== "'") return undefined;
  let value = "";
  for (let from = at + 1; from < text.length;) {
    const char = text[from]!;
    if (char === quote) return { value, end: from + 1 };
    const plain = match(PLAIN, text, from);
    if (plain !== undefined) {
      value += plain;
      from += plain.length;
    } else if (char === "\\") {
      const unicode = /^u([0-9a-fA-F]{4})/.exec(text.slice(from + 1, from + 6));
      const escaped = unicode === null ? ESCAPES[text[from + 1] ?? ""] : String.fromCharCode(parseInt(unicode[1]!, 16));
      if (escaped === undefined) return undefined;
      value += escaped;
      from += unicode === null ? 2 : 6;
    } else if (char === "\r" || char === "\n") {
      return undefined;
    } else {
      value += char; // The other kind of quote.
      from += 1;
    }
  }
  return undefined;
}

function parseFilters(text: string, from: number): Filter[] | Problem {
  const filters: Filter[] = [];
  let at = from;
  while (at < text.length) {
    if (text[at] !== "|") return syntax(`Expected \`|\` and a filter at \`${text.slice(at, at + 20)}\`.`);
    at = skipSpace(text, at + 1);
    const name = match(WORD, text, at);
    if (name === undefined) return syntax("Expected the name of a filter after `|`.");
    at += name.length;

    let literal: Json | undefined;
    if (text[at] === "(") {
      const argument = readArgument(text, at + 1);
      if (argument === undefined)
        return syntax(`The filter \`${name}\` takes one literal: a text, number, true, false, null, [] or {}.`);
      literal = argument.value;
      at = argument.end;
    }
    if (filters.length === MAX_FILTERS)
      return { code: "EXPRESSION_TOO_COMPLEX", message: `At most ${MAX_FILTERS} filters.` };
    const filter = compileFilter(name, literal);
    if (typeof filter === "string") return syntax(filter);
    filters.push(filter);
    at = skipSpace(text, at);
  }
  return filters;
}

/** The literal between the parentheses of a filter; undefined value if they are empty, undefined if it is no literal. */
function readArgument(text: string, from: number): { value: Json | undefined; end: number } | undefined {
  const start = skipSpace(text, from);
  if (text[start] === ")") return { value: undefined, end: start + 1 };
  const quoted = readQuoted(text, start);
  if (quoted !== undefined) {
    const end = skipSpace(text, quoted.end);
    return text[end] === ")" ? { value: quoted.value, end: end + 1 } : undefined;
  }
  const end = endOfArgument(text, start);
  try {
    return { value: JSON.parse(text.slice(start, end)) as Json, end: end + 1 };
  } catch {
    return undefined; // Not JSON, so not a literal.
  }
}

/** The first `)` that stands in no quotes. */
function endOfArgument(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === ")") return at;
    if (text[at] === '"') {
      const quoted = readQuoted(text, at);
      if (quoted === undefined) return text.length;
      at = quoted.end - 1;
    }
  }
  return text.length;
}

function syntax(message: string): Problem {
  return { code: "TEMPLATE_SYNTAX", message };
}

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function skipSpace(text: string, at: number): number {
  return at + (match(SPACE, text, at)?.length ?? 0);
}
