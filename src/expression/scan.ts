const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const DOUBLE_QUOTE = 34;
const SINGLE_QUOTE = 39;
const BACKSLASH = 92;

/** A string cut at its templates. `bodies[i]` stands between `texts[i]` and `texts[i + 1]`. */
export interface Cut {
  readonly texts: readonly string[];
  readonly bodies: readonly string[];
}

/**
 * Cuts a string at its `{{ }}`. Undefined if one is never closed. Looks at each character once, so 1 MB of `{{` costs
 * one pass: after the first template that does not close there is nothing to look for.
 */
export function cutTemplates(text: string): Cut | undefined {
  const texts: string[] = [];
  const bodies: string[] = [];
  let from = 0;
  for (;;) {
    const open = text.indexOf("{{", from);
    if (open === -1) break;
    const close = findClose(text, open + 2);
    if (close === -1) return undefined;
    texts.push(text.slice(from, open));
    bodies.push(text.slice(open + 2, close));
    from = close + 2;
  }
  texts.push(text.slice(from));
  return { texts, bodies };
}

/**
 * Whether a text has a template in it, if it may also be an expression: there a `{{` in quotes is a text like any other. A
 * quote that is never closed, as in "it's {{ n.x }}", makes it no expression.
 */
export function hasTemplateOutsideQuotes(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === OPEN_BRACE && text.charCodeAt(at + 1) === OPEN_BRACE) return true;
    if (code !== DOUBLE_QUOTE && code !== SINGLE_QUOTE) continue;
    const end = endOfQuoted(text, at);
    if (end === text.length) return text.includes("{{", at);
    at = end;
  }
  return false;
}

/** The position of the `}}` that ends a template, or -1. Braces in quotes and of a map literal do not end it. */
function findClose(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case OPEN_BRACE:
        depth += 1;
        break;
      case CLOSE_BRACE:
        if (depth > 0) depth -= 1;
        else if (text.charCodeAt(at + 1) === CLOSE_BRACE) return at;
        break;
      case DOUBLE_QUOTE:
      case SINGLE_QUOTE:
        at = endOfQuoted(text, at);
        break;
      default:
    }
  }
  return -1;
}

/**
 * The position of the last quote of a quoted text that starts at `at`, by the rules of CEL's lexer: `"""` closes `"""`,
 * and a backslash hides the next character, in raw strings too.
 */
export function endOfQuoted(text: string, at: number): number {
  const quote = text.charCodeAt(at);
  const triple = text.charCodeAt(at + 1) === quote && text.charCodeAt(at + 2) === quote;
  for (let end = at + (triple ? 3 : 1); end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (code === BACKSLASH) end += 1;
    else if (code === quote) {
      if (!triple) return end;
      if (text.charCodeAt(end + 1) === quote && text.charCodeAt(end + 2) === quote) return end + 2;
    }
  }
  return text.length;
}
