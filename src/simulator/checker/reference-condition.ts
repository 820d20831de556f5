import type { Json } from "../../json/json.ts";
import { MISSING, parsePath, type Path, type Reader, readPath, UNKNOWN } from "./reference-path.ts";
import type { Shape } from "./shape.ts";

/** What a condition comes to. "unknown" means that it is written in a way this reference does not cover. */
export type Verdict = "true" | "false" | "error" | "unknown";

type Tree =
  | { readonly op: "literal"; readonly value: Json }
  | { readonly op: "read" | "has"; readonly path: Path }
  | { readonly op: "not"; readonly one: Tree }
  | { readonly op: "and" | "or"; readonly one: Tree; readonly other: Tree }
  | { readonly op: "compare"; readonly sign: string; readonly one: Tree; readonly other: Tree };

const TREES = new WeakMap<Shape, Map<string, Tree | typeof UNKNOWN>>();

function treeOf(text: string, shape: Shape): Tree | typeof UNKNOWN {
  let trees = TREES.get(shape);
  if (trees === undefined) TREES.set(shape, (trees = new Map()));
  let tree = trees.get(text);
  if (tree === undefined) trees.set(text, (tree = parse(text, shape)));
  return tree;
}

/** The node's condition, on the outputs in the journal so far. Undefined if it has none. */
export function conditionOf(reader: Reader): Verdict | undefined {
  const { condition } = reader.node.spec;
  return condition === undefined ? undefined : verdictOf(condition, reader);
}

/** What any condition comes to, seen from a node. */
export function verdictOf(condition: string, reader: Reader): Verdict {
  const tree = treeOf(condition, reader.story.shape!);
  if (tree === UNKNOWN) return "unknown";
  const value = evaluate(tree, reader);
  if (value === UNKNOWN) return "unknown";
  return typeof value === "boolean" ? (value ? "true" : "false") : "error";
}

/** MISSING stands for any failure. */
type Outcome = Json | typeof MISSING | typeof UNKNOWN;

function evaluate(tree: Tree, reader: Reader): Outcome {
  switch (tree.op) {
    case "literal":
      return tree.value;
    case "read":
      return readPath(tree.path, reader);
    case "has": {
      const value = readPath(tree.path, reader);
      return value === UNKNOWN ? UNKNOWN : value !== MISSING;
    }
    case "not": {
      const value = evaluate(tree.one, reader);
      return value === UNKNOWN ? UNKNOWN : typeof value === "boolean" ? !value : MISSING;
    }
    case "and":
    case "or":
      return decide(tree.op === "or", evaluate(tree.one, reader), evaluate(tree.other, reader));
    case "compare":
      return compare(tree.sign, evaluate(tree.one, reader), evaluate(tree.other, reader));
  }
}

/** If one side decides, it does not matter that the other failed. */
function decide(decisive: boolean, one: Outcome, other: Outcome): Outcome {
  if (one === decisive || other === decisive) return decisive;
  if (one === UNKNOWN || other === UNKNOWN) return UNKNOWN;
  return typeof one === "boolean" && typeof other === "boolean" ? !decisive : MISSING;
}

function compare(sign: string, one: Outcome, other: Outcome): Outcome {
  if (one === UNKNOWN || other === UNKNOWN) return UNKNOWN;
  if (one === MISSING || other === MISSING) return MISSING;
  if (sign === "==" || sign === "!=") {
    if (typeof one === "object" && one !== null && typeof other === "object" && other !== null) return UNKNOWN;
    return (one === other) === (sign === "==");
  }
  const comparable = (typeof one === "number" || typeof one === "string") && typeof one === typeof other;
  if (!comparable) return typeof one === "boolean" && typeof other === "boolean" ? UNKNOWN : MISSING;
  const [left, right] = [one as number, other as number];
  if (sign === "<") return left < right;
  if (sign === "<=") return left <= right;
  return sign === ">" ? left > right : left >= right;
}

const WORD =
  /\s*(?:(has\()|("[^"\\]*"|'[^'\\]*')|(-?\d+(?:\.\d+)?)|([A-Za-z_]\w*(?:\.\w+|\[\d+\]|\["[^"\\]*"\]|\['[^'\\]*'\])*)|(&&|\|\||==|!=|<=|>=|<|>|!|\(|\)))/y;

interface Word {
  readonly kind: "has" | "text" | "number" | "path" | "sign";
  readonly text: string;
}

function parse(condition: string, shape: Shape): Tree | typeof UNKNOWN {
  const braces = /^\{\{(.*)\}\}$/s.exec(condition.trim());
  const text = (braces?.[1] ?? condition).trim();
  // A bare path may name nodes that no expression could: `my-node.flag`.
  const path = LITERALS.has(text) ? UNKNOWN : parsePath(text, shape);
  if (path !== UNKNOWN) return "secret" in path ? UNKNOWN : { op: "read", path };
  const words = cut(text);
  if (words === UNKNOWN) return UNKNOWN;
  const parser = new Parser(words, shape);
  const tree = parser.either();
  return parser.isAtEnd ? tree : UNKNOWN;
}

const KINDS = ["has", "text", "number", "path", "sign"] as const;

function cut(text: string): Word[] | typeof UNKNOWN {
  const words: Word[] = [];
  WORD.lastIndex = 0;
  while (WORD.lastIndex < text.length) {
    const match = WORD.exec(text);
    if (match === null) return UNKNOWN;
    const kind = KINDS.findIndex((_, i) => match[i + 1] !== undefined);
    words.push({ kind: KINDS[kind]!, text: match[kind + 1]! });
  }
  return words;
}

const LITERALS: ReadonlyMap<string, Json> = new Map<string, Json>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

class Parser {
  private readonly words: readonly Word[];
  private readonly shape: Shape;
  private at = 0;

  constructor(words: readonly Word[], shape: Shape) {
    this.words = words;
    this.shape = shape;
  }

  get isAtEnd(): boolean {
    return this.at === this.words.length;
  }

  either(): Tree | typeof UNKNOWN {
    return this.chain("||", "or", () => this.chain("&&", "and", () => this.comparison()));
  }

  private chain(sign: string, op: "and" | "or", next: () => Tree | typeof UNKNOWN): Tree | typeof UNKNOWN {
    let one = next();
    while (this.take(sign)) {
      const other = next();
      if (one === UNKNOWN || other === UNKNOWN) return UNKNOWN;
      one = { op, one, other };
    }
    return one;
  }

  private comparison(): Tree | typeof UNKNOWN {
    const one = this.operand();
    const sign = ["==", "!=", "<=", ">=", "<", ">"].find((each) => this.take(each));
    if (sign === undefined || one === UNKNOWN) return one;
    const other = this.operand();
    return other === UNKNOWN ? UNKNOWN : { op: "compare", sign, one, other };
  }

  private operand(): Tree | typeof UNKNOWN {
    if (this.take("!")) {
      const one = this.operand();
      return one === UNKNOWN ? UNKNOWN : { op: "not", one };
    }
    if (this.take("(")) {
      const tree = this.either();
      return this.take(")") ? tree : UNKNOWN;
    }
    const word = this.words[this.at++];
    switch (word?.kind) {
      case "text":
        return { op: "literal", value: word.text.slice(1, -1) };
      case "number":
        return { op: "literal", value: Number(word.text) };
      case "path":
        return LITERALS.has(word.text) ? { op: "literal", value: LITERALS.get(word.text)! } : this.path("read", word);
      case "has": {
        const tree = this.path("has", this.words[this.at++]);
        return this.take(")") ? tree : UNKNOWN;
      }
      case "sign":
      case undefined:
        return UNKNOWN;
    }
  }

  /** A node by its bare name is an object even if it has no output; comparing it is nothing we cover. */
  private path(op: "read" | "has", word: Word | undefined): Tree | typeof UNKNOWN {
    const path = word?.kind === "path" ? parsePath(word.text, this.shape) : UNKNOWN;
    if (path === UNKNOWN || "secret" in path) return UNKNOWN;
    const isValue = path.root.kind === "execution" || path.root.kind === "item" || path.root.kind === "index";
    return path.steps.length === 0 && !isValue ? UNKNOWN : { op, path };
  }

  private take(sign: string): boolean {
    const word = this.words[this.at];
    if (word?.kind !== "sign" || word.text !== sign) return false;
    this.at++;
    return true;
  }
}
