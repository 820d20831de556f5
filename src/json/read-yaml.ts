import { Composer, type Document as YamlDocument, Lexer, Parser } from "yaml";
import { type Document, type ReadFault, unreadable } from "./document.ts";
import { MAX_JSON_DEPTH } from "./scan.ts";
import { YamlTree } from "./yaml-tree.ts";

/**
 * YAML takes about a second per MiB to parse and a hundred times its size in memory, so it is for definitions that
 * people write. Generated ones are JSON.
 */
export const MAX_YAML_BYTES: number = 4 * 1_048_576;

/** One level of nesting puts one or two tokens on the parser's stack. The exact limit is checked on the tree. */
const MAX_PARSER_STACK = 3 * MAX_JSON_DEPTH;

/** How far around a fault a template is looked for. */
const MAX_LOOK = 500;

/** Tags that only say what the value is anyway. */
const PLAIN_TAGS: ReadonlySet<string> = new Set(["!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"]);

/**
 * Reads YAML 1.2 as far as it means the same as JSON: no tags, no merge keys, no directives, one document, and aliases
 * only within a limit. Never throws.
 */
export function readYaml(text: string): Document {
  if (text.charCodeAt(0) === 0xfeff) return invalid(0, "it starts with a byte order mark");
  const tree = parseYaml(text);
  if ("code" in tree) return unreadable([withTemplateHint(text, tree)]);
  if (tree.value === undefined) return unreadable(tree.faults.map((fault) => withTemplateHint(text, fault)));
  return { value: tree.value, faults: tree.faults, locate: (pointers) => tree.locate(pointers) };
}

/** The syntax tree of the only document, or the first thing wrong with the text. */
function parseYaml(text: string): YamlTree | ReadFault {
  const composer = newComposer();
  const parser = new Parser();
  const documents: YamlDocument.Parsed[] = [];
  let openQuote: number | undefined;
  try {
    for (const lexeme of new Lexer().lex(text)) {
      // Refused before it is parsed: a long list with a tag in front would first be turned into something else.
      if (lexeme.startsWith("!") && !PLAIN_TAGS.has(lexeme)) return unsafeTag(lexeme, parser.offset);
      if (isOpenQuote(lexeme)) openQuote ??= parser.offset;
      for (const token of parser.next(lexeme)) {
        if (token.type === "error") return syntax(token.offset, token.message);
        documents.push(...composer.next(token));
      }
      // The composer calls itself for each level; deep nesting must not get that far.
      if (parser.stack.length > MAX_PARSER_STACK) return tooDeep(parser.offset);
    }
    for (const token of parser.end()) documents.push(...composer.next(token));
    documents.push(...composer.end(true, text.length));
  } catch (error) {
    if (!(error instanceof FirstError)) throw error;
    // The library reports it where the text ends, which may be hundreds of lines further down.
    if (openQuote !== undefined && error.message.startsWith("Missing closing")) {
      return syntax(openQuote, "this quote is never closed");
    }
    return syntax(error.offset, error.message);
  }
  const [first, second] = documents;
  if (first === undefined) return syntax(0, "the text is empty");
  if (second !== undefined) return syntax(second.range[0], "there is more than one document");
  return new YamlTree(first);
}

function isOpenQuote(lexeme: string): boolean {
  if (lexeme.startsWith('"')) return !/^"(?:[^"\\]|\\.)*"$/su.test(lexeme);
  return lexeme.startsWith("'") && (lexeme.length === 1 || !lexeme.endsWith("'"));
}

/** Thrown out of the composer, which would otherwise collect one error object for each of a million bad characters. */
class FirstError extends Error {
  readonly offset: number;
  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

function newComposer(): Composer {
  const composer = new Composer({
    version: "1.2",
    schema: "core",
    merge: false,
    // The library compares each key with every other one, which takes minutes on large maps. The tree does it.
    uniqueKeys: false,
    // Each pretty error walks the text from the start.
    prettyErrors: false,
  });
  let first: FirstError | undefined;
  type Source = number | readonly [number, number] | { readonly offset: number };
  // Private in the library, whose version is pinned; the corpus of bad YAML in the tests would tell.
  (composer as unknown as { onError: unknown }).onError = (at: Source, _: string, message: string, warning = false) => {
    if (warning) return;
    const offset = typeof at === "number" ? at : "offset" in at ? at.offset : at[0];
    // Each collection around the fault catches what is thrown, and reports it again at its own beginning.
    throw (first ??= new FirstError(offset, message));
  };
  return composer;
}

/** To YAML, `{{ x }}` without quotes is a map in a map. What it says of that helps nobody who meant a template. */
function withTemplateHint(text: string, fault: ReadFault): ReadFault {
  if (fault.hint !== undefined || (fault.code !== "INVALID_JSON" && fault.code !== "YAML_UNSAFE")) return fault;
  if (!hasBareTemplate(lineAt(text, fault.offset))) return fault;
  return { ...fault, hint: 'Put quotes around what contains a template: "{{ … }}".' };
}

function hasBareTemplate(line: string): boolean {
  return /(^|[\s:,[{])\{\{/.test(line.replaceAll(/"(?:[^"\\]|\\.)*"|'[^']*'/g, '""'));
}

/** The line around an offset, as far as somebody would have written it by hand. */
function lineAt(text: string, offset: number): string {
  const start = Math.max(text.lastIndexOf("\n", offset - 1) + 1, offset - MAX_LOOK);
  return text.slice(start, offset + MAX_LOOK).split("\n", 1)[0]!;
}

function unsafeTag(tag: string, offset: number): ReadFault {
  const reason = `the tag "${tag.slice(0, 80)}" is not supported`;
  return { code: "YAML_UNSAFE", details: { reason }, pointer: "", offset, hint: "Leave the tag out." };
}

function tooDeep(offset: number): ReadFault {
  return { code: "JSON_TOO_DEEP", details: { limit: MAX_JSON_DEPTH }, pointer: "", offset };
}

function invalid(offset: number, reason: string): Document {
  return unreadable([syntax(offset, reason)]);
}

function syntax(offset: number, message: string): ReadFault {
  const reason = message.replace(/\.$/, "");
  return { code: "INVALID_JSON", details: { format: "YAML", reason }, pointer: "", offset };
}
