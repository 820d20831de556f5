import { BINARY, boolean, negate } from "./cel-operators.ts";
import { FUNCTIONS, METHODS } from "./cel-functions.ts";
import { MACRO_NAMES, isMacro, macro } from "./cel-macros.ts";
import { allowStep, attempt, forbid, tooComplex, wrongSyntax } from "./cel-run.ts";
import { ExpressionFailure, unresolved } from "./failure.ts";
import { MISSING, stepInto } from "./step.ts";
import { patternOf } from "./patterns.ts";
import { patternSize } from "../json/pattern-size.ts";
import { put, typeName } from "./value.ts";
import type { ASTNode } from "@marcbachmann/cel-js";
import type { BinaryName } from "./cel-operators.ts";
import type { Callable } from "./cel-functions.ts";
import type { Code } from "./cel-run.ts";
import type { Missing, Step } from "./step.ts";
import type { Value } from "./value.ts";

/** A place where the expression names something outside itself: `fetch.body` is the name `fetch`, the step `body`. */
export interface Use {
  readonly name: string;
  readonly steps: readonly Step[];
  /** Inside has(): absence is an answer and not a failure. */
  readonly guarded: boolean;
  /** Where the name stands in the text. */
  readonly start: number;
}

/**
 * An expression that passed the guard. The library's parser made its tree; the tree is run by us, because the library's
 * evaluator has no place for a budget, swallows every error inside `||` and exists(), and cannot be rid of matches().
 */
export interface Program {
  readonly evaluate: Code;
  readonly uses: readonly Use[];
}

const MAX_UNARY = 32;
const MAX_PATTERN_SIZE = 500;
/** By its text, which says rather too much: what is larger is not compiled to find out. */
const MAX_COMPILED_SIZE = 10_000;
const MAX_PATTERNS = 8;
const MAX_MACROS_DEEP = 2;

const FUNCTION_NAMES = [...new Set(["has", "like", ...MACRO_NAMES, ...FUNCTIONS.keys(), ...METHODS.keys()])].join(", ");

export function compileProgram(tree: ASTNode): Program {
  const compiler = new Compiler();
  return { evaluate: compiler.compile(tree), uses: compiler.uses };
}

class Compiler {
  readonly uses: Use[] = [];
  /** The names of the macro variables around, outermost first. */
  readonly #locals: string[] = [];
  #patterns = 0;

  compile(node: ASTNode): Code {
    switch (node.op) {
      case "value":
        return literal(node.args);
      case "id":
      case ".":
      case "[]":
        return this.#select(node);
      case "call":
        return this.#call(node.args[0], node.args[1]);
      case "rcall":
        return this.#methodCall(node.args[0], node.args[1], node.args[2]);
      case "list":
        return this.#list(node.args);
      case "map":
        return this.#map(node.args);
      case "?:":
        return this.#ternary(node.args);
      case "&&":
        return logical(this.compile(node.args[0]), this.compile(node.args[1]), false);
      case "||":
        return logical(this.compile(node.args[0]), this.compile(node.args[1]), true);
      case "!_":
      case "-_":
        return this.#unary(node);
      case ".?":
      case "[?]":
        throw forbid("Optional access is not offered: use has().");
      case "==":
      case "!=":
      case "<":
      case "<=":
      case ">":
      case ">=":
      case "in":
      case "+":
      case "-":
      case "*":
      case "/":
      case "%":
        break;
    }
    return this.#binary(node.op, node.args[0], node.args[1]);
  }

  #binary(operator: BinaryName, left: ASTNode, right: ASTNode): Code {
    const [one, other, apply] = [this.compile(left), this.compile(right), BINARY[operator]];
    return (run) => {
      run.meter.step();
      return apply(one(run), other(run), run.meter);
    };
  }

  /** `!!!!x`: the parser counts its depth for all but these, which would nest as deep as the text is long. */
  #unary(node: ASTNode): Code {
    const operators: string[] = [];
    let at = node;
    for (; at.op === "!_" || at.op === "-_"; at = at.args) operators.push(at.op);
    if (operators.length > MAX_UNARY) throw tooComplex(`more than ${MAX_UNARY} signs in a row`);
    const operand = this.compile(at);
    return (run) => {
      run.meter.step(operators.length);
      let value = operand(run);
      for (const operator of operators.toReversed()) {
        value = operator === "-_" ? negate(value) : !boolean(value, "`!`");
      }
      return value;
    };
  }

  #select(node: ASTNode): Code {
    const { base, steps } = chain(node);
    if (base.op === "id" && !this.#locals.includes(base.args)) {
      const use = this.#use(base, steps, false);
      return (run) => {
        const value = run.read(use);
        if (value === MISSING) throw unresolved(run.whyMissing(use));
        return value;
      };
    }
    const start = base.op === "[]" ? this.#index(base) : base.op === "id" ? this.#local(base.args) : this.compile(base);
    if (steps.length === 0) return start;
    return (run) => {
      let value = start(run);
      for (const step of steps) value = enter(value, step);
      return value;
    };
  }

  #use(base: ASTNode & { op: "id" }, steps: readonly Step[], guarded: boolean): number {
    return this.uses.push({ name: base.args, steps, guarded, start: base.start }) - 1;
  }

  #local(name: string): Code {
    const depth = this.#locals.lastIndexOf(name);
    return (run) => run.locals[depth]!;
  }

  #index(node: ASTNode & { op: "[]" }): Code {
    const [of, by] = [this.compile(node.args[0]), this.compile(node.args[1])];
    return (run) => {
      run.meter.step();
      const value = of(run);
      const key = by(run);
      if (typeof key === "string" || typeof key === "number") return enter(value, key);
      if (typeof key === "bigint") return enter(value, Number(key));
      throw unresolved(`A key is a text or an integer, not ${typeName(key)}.`);
    };
  }

  /** has(a.b.c): true if each step is there. A step that is missing before the last one also means no. */
  #has(args: readonly ASTNode[]): Code {
    const { base, steps } = chain(args[0]!);
    if (args.length !== 1 || steps.length === 0) {
      throw wrongSyntax("has() takes one path with at least one key: has(fetch.body).");
    }
    if (base.op === "id" && !this.#locals.includes(base.args)) {
      const use = this.#use(base, steps, true);
      return (run) => {
        run.meter.step();
        return run.read(use) !== MISSING;
      };
    }
    const start = this.compile(base);
    return (run) => {
      run.meter.step();
      let value: Value | Missing = start(run);
      for (const step of steps) if (value !== MISSING) value = stepInto(value, step);
      return value !== MISSING;
    };
  }

  #call(name: string, args: readonly ASTNode[]): Code {
    if (name === "has") return this.#has(args);
    if (name === "like") return this.#like(args);
    return this.#invoke(name, FUNCTIONS.get(name), args);
  }

  #methodCall(name: string, receiver: ASTNode, args: readonly ASTNode[]): Code {
    if (name === "like") return this.#like([receiver, ...args]);
    if (name === "matches")
      throw forbid("matches() is not offered: its time has no bound.", "Use like(text, pattern).");
    if (isMacro(name, args.length)) return this.#macro(name, receiver, args);
    return this.#invoke(name, METHODS.get(name), [receiver, ...args]);
  }

  #macro(name: string, receiver: ASTNode, args: readonly ASTNode[]): Code {
    const [variable, ...bodies] = args;
    if (variable?.op !== "id") throw wrongSyntax(`The first argument of ${name}() is the name of its variable.`);
    allowStep(variable.args);
    const list = this.compile(receiver);
    const depth = this.#locals.length;
    if (depth === MAX_MACROS_DEEP) throw tooComplex(`${MACRO_NAMES.join(", ")} inside each other more than twice`);
    this.#locals.push(variable.args);
    const codes = bodies.map((each) => this.compile(each));
    this.#locals.pop();
    return macro(name, list, codes, depth);
  }

  #invoke(name: string, callable: Callable | undefined, args: readonly ASTNode[]): Code {
    if (callable === undefined || args.length < callable.least || args.length > callable.most) {
      throw forbid(`There is no function \`${name}\` that is called like this.`, `There are: ${FUNCTION_NAMES}.`);
    }
    const codes = args.map((each) => this.compile(each));
    return (run) => {
      run.meter.step();
      return callable.call(
        codes.map((code) => code(run)),
        run.meter,
      );
    };
  }

  /** like(text, pattern): finds the pattern anywhere in the text, in time linear in both. */
  #like(args: readonly ASTNode[]): Code {
    const pattern = args[1];
    if (args.length !== 2 || pattern?.op !== "value" || typeof pattern.args !== "string") {
      throw forbid("like(text, pattern) needs its pattern as a literal text.");
    }
    const source = pattern.args;
    const size = sizeOfPattern(source);
    this.#patterns += 1;
    if (this.#patterns > MAX_PATTERNS) throw tooComplex(`more than ${MAX_PATTERNS} calls of like()`);
    const subject = this.compile(args[0]!);
    return (run) => {
      run.meter.step();
      const value = subject(run);
      if (typeof value !== "string") throw unresolved(`like() needs a text, and got ${typeName(value)}.`);
      // About 10 µs a step for the worst patterns measured: a spent budget is a tenth of a second.
      run.meter.scan(value.length * size * 4);
      return patternOf(source).test(value);
    };
  }

  #list(elements: readonly ASTNode[]): Code {
    const codes = elements.map((each) => this.compile(each));
    return (run) => {
      run.meter.step();
      return codes.map((code) => code(run));
    };
  }

  #map(entries: readonly (readonly [ASTNode, ASTNode])[]): Code {
    const codes = entries.map(([key, value]) => {
      if (key.op === "value" && typeof key.args === "string") allowStep(key.args);
      return [this.compile(key), this.compile(value)] as const;
    });
    return (run) => {
      run.meter.step();
      const object: { [key: string]: Value } = {};
      for (const [keyCode, valueCode] of codes) {
        const key = keyCode(run);
        if (typeof key !== "string") throw unresolved(`The keys of an object are texts, not ${typeName(key)}.`);
        put(object, key, valueCode(run));
      }
      return object;
    };
  }

  #ternary([condition, then, otherwise]: readonly [ASTNode, ASTNode, ASTNode]): Code {
    const [test, yes, no] = [this.compile(condition), this.compile(then), this.compile(otherwise)];
    return (run) => {
      run.meter.step();
      return boolean(test(run), "`? :`") ? yes(run) : no(run);
    };
  }
}

/** `a.b["c"][0]` as the node `a` and the steps b, c, 0: as much as is literal. */
function chain(node: ASTNode): { base: ASTNode; steps: Step[] } {
  const steps: Step[] = [];
  let base = node;
  for (;;) {
    const step = base.op === "." ? base.args[1] : base.op === "[]" ? literalStep(base.args[1]) : undefined;
    if (step === undefined) return { base, steps: steps.reverse() };
    allowStep(step);
    steps.push(step);
    base = (base as ASTNode & { op: "." | "[]" }).args[0];
  }
}

function literalStep(node: ASTNode): Step | undefined {
  if (node.op !== "value") return undefined;
  if (typeof node.args === "bigint") return Number(node.args);
  return typeof node.args === "string" ? node.args : undefined;
}

function enter(value: Value, step: Step): Value {
  const inside = stepInto(value, step);
  if (inside !== MISSING) return inside;
  throw unresolved(`${typeName(value)} has no \`${String(step).slice(0, 100)}\`.`);
}

function literal(value: unknown): Code {
  if (typeof value === "bigint" && BigInt.asIntN(64, value) !== value) {
    throw wrongSyntax("An integer literal needs more than 64 bits.");
  }
  if (typeof value === "object" && value !== null) throw forbid("Bytes and unsigned integers are not offered.");
  return () => value as Value;
}

/**
 * `&&` and `||` as CEL has them: if one side decides, it does not matter that the other failed. A spent budget always
 * matters; if it could be absorbed here, the budget would not be one.
 */
function logical(left: Code, right: Code, decisive: boolean): Code {
  const name = decisive ? "`||`" : "`&&`";
  return (run) => {
    run.meter.step();
    const first = attempt(left, run);
    if (first === decisive) return decisive;
    const second = right(run);
    if (second === decisive) return decisive;
    if (first instanceof ExpressionFailure) throw first;
    boolean(first, name);
    return boolean(second, name);
  };
}

function sizeOfPattern(source: string): number {
  if (patternSize(source) > MAX_COMPILED_SIZE) throw tooComplex("a pattern this large");
  let size: number;
  try {
    size = patternOf(source).programSize();
  } catch (error) {
    throw wrongSyntax(`The pattern is not valid: ${(error as Error).message}`);
  }
  if (size > MAX_PATTERN_SIZE) throw tooComplex("a pattern this large");
  return size;
}
