import { Environment } from "@marcbachmann/cel-js";
import { bind, forbiddenPath, isForbiddenName, isForbiddenStep, isProblem } from "./binding.ts";
import { compileProgram } from "./cel-program.ts";
import { endOfQuoted } from "./scan.ts";
import { Refusal } from "./cel-run.ts";
import type { Binding, CompileOptions, Problem } from "./binding.ts";
import type { Program, Use } from "./cel-program.ts";

const LIMITS = { maxAstNodes: 256, maxDepth: 32, maxListElements: 256, maxMapEntries: 256, maxCallArguments: 32 };

/** Used for its parser only; `Program` says why. */
const environment = new Environment({ limits: LIMITS });

/** Programs by text: a fan-out has the same condition on thousands of nodes. Holds nothing that depends on a workflow. */
const programs = new Map<string, Parsed>();
const MAX_PROGRAMS = 1_000;

type Parsed = { readonly program: Program } | { readonly problem: Problem };

/** An expression whose names are bound to the nodes of one workflow. */
export interface Expression {
  readonly program: Program;
  /** In the order of `program.uses`. */
  readonly bindings: readonly Binding[];
}

/** Compiles a CEL expression, or says what is wrong with it. Never throws. */
export function compileCel(text: string, options: CompileOptions): Expression | Problem {
  const parsed = parsedOf(text);
  if ("problem" in parsed) return nodeThatCannotStandBare(text, options) ?? parsed.problem;

  const bindings: Binding[] = [];
  for (const use of parsed.program.uses) {
    const binding = bindUse(use, text, options);
    if (isProblem(binding)) return binding;
    bindings.push(binding);
  }
  return { program: parsed.program, bindings };
}

function parsedOf(text: string): Parsed {
  const known = programs.get(text);
  if (known !== undefined) return known;
  const parsed = parse(text);
  // The oldest goes first. Which texts are remembered changes the time an answer takes, never the answer.
  if (programs.size >= MAX_PROGRAMS) programs.delete(programs.keys().next().value!);
  programs.set(text, parsed);
  return parsed;
}

function parse(text: string): Parsed {
  try {
    return { program: compileProgram(environment.parse(text).ast) };
  } catch (error) {
    if (error instanceof Refusal) return { problem: error.problem };
    return { problem: explain(text, error as Error & { code?: string; summary?: string }) };
  }
}

/** Why a text is not an expression. Names what was probably attempted, since "unexpected character" helps nobody. */
function explain(text: string, error: Error & { code?: string; summary?: string }): Problem {
  // RangeError: a text of nothing but signs and parentheses can use up the stack of the parser.
  if (error.code === "limit_exceeded" || error instanceof RangeError) {
    return {
      code: "EXPRESSION_TOO_COMPLEX",
      message: `An expression may have ${LIMITS.maxAstNodes} parts and be ${LIMITS.maxDepth} deep.`,
    };
  }
  const { bare, words } = outsideQuotes(text);
  const step = words.find(isForbiddenStep);
  if (step !== undefined) return forbiddenPath(step);

  const name = words.find(isForbiddenName);
  if (name !== undefined || /[`;]|=>|(?<![=!<>])=(?!=)|\+\+|--/.test(bare)) {
    const what = name === undefined ? "Assignments, statements, functions and backticks are" : `\`${name}\` is`;
    return { code: "EXPRESSION_FORBIDDEN", message: `${what} not available in templates and conditions.` };
  }
  const filtered = /(?<!\|)\|(?!\|)/.test(bare);
  return {
    code: "TEMPLATE_SYNTAX",
    message: `This is neither a path nor an expression: ${error.summary ?? error.message}.`,
    ...(filtered ? { hint: "Filters stand only after a path, not after an expression." } : {}),
  };
}

/** The text without what is in quotes, and its words: a payload may well be named inside a string. */
function outsideQuotes(text: string): { bare: string; words: string[] } {
  let bare = "";
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]!;
    if (char === '"' || char === "'") {
      at = endOfQuoted(text, at);
      bare += '""';
    } else {
      bare += char;
    }
  }
  return { bare, words: bare.match(/[A-Za-z0-9_$-]+/g)?.flatMap((word) => [word, ...word.split("-")]) ?? [] };
}

function bindUse(use: Use, text: string, options: CompileOptions): Binding | Problem {
  if (isTypeName(use.name) && options.nodeIds.has(use.name)) return cannotStandBare(use.name);
  const binding = bind(use.name, use.steps, options);
  if (!isProblem(binding)) {
    if (binding.kind !== "secret") return binding;
    return {
      code: "EXPRESSION_FORBIDDEN",
      message: "A secret cannot be part of an expression: the engine never has its value.",
      hint: "Write {{ secrets.NAME }} by itself or inside text.",
    };
  }
  if (binding.code !== "TEMPLATE_UNKNOWN_NODE") return binding;
  // `my-node.x` reads as `my` minus `node.x`: look at the whole word before saying that there is no node `my`.
  const word = wordAround(text, use.start);
  return options.nodeIds.has(word) && word !== use.name ? cannotStandBare(word) : binding;
}

/** Names that CEL takes for types. A node may have one, but bare it would not mean the node to other CEL tools. */
const TYPE_NAMES: ReadonlySet<string> = new Set(
  "bool bytes cel double duration dyn google int list map null_type optional string timestamp type uint".split(" "),
);

function isTypeName(name: string): boolean {
  return TYPE_NAMES.has(name);
}

/** If a node's id is why a text does not parse (`1st.x > 2`, `in.x`, `loop.done`), the problem that says so. */
function nodeThatCannotStandBare(text: string, options: CompileOptions): Problem | undefined {
  const word = outsideQuotes(text).words.find((each) => options.nodeIds.has(each) && !isBareWord(each));
  return word === undefined ? undefined : cannotStandBare(word);
}

function isBareWord(word: string): boolean {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(word) || isTypeName(word)) return false;
  const parsed = parsedOf(word);
  return "program" in parsed && parsed.program.uses.length === 1;
}

function cannotStandBare(id: string): Problem {
  return {
    code: "TEMPLATE_SYNTAX",
    message: `The node id "${id}" is not a word that can stand bare in an expression.`,
    hint: `Write nodes["${id}"].`,
  };
}

function wordAround(text: string, at: number): string {
  let start = at;
  while (start > 0 && /[A-Za-z0-9_-]/.test(text[start - 1]!)) start -= 1;
  return /^[A-Za-z0-9_-]+/.exec(text.slice(start))?.[0] ?? "";
}
