/** Text that is safe in a page. Only this module makes it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Html | readonly Html[] | undefined | false;

/** A template whose values are text, never markup, unless they were made here themselves. */
export function markup(parts: TemplateStringsArray, ...values: readonly Part[]): Html {
  return new Html(parts.reduce((all, part, i) => all + shown(values[i - 1]) + part));
}

/** Markup from a function that escapes by itself, such as a picture. */
export function trusted(text: string): Html {
  return new Html(text);
}

/** A name as a part of an address. */
export function inPath(name: string): string {
  return encodeURIComponent(name.toWellFormed());
}

function shown(value: Part): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "string" || typeof value === "number") return escaped(String(value));
  return value.map(({ text }) => text).join("");
}

/** What would turn round the text after it is left out too: a name must not change how the state beside it reads. */
function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")
    .replaceAll(/[\p{Cs}\p{Cc}\p{Bidi_Control}]/gu, (char) => (char === "\n" || char === "\t" ? char : "\uFFFD"));
}
