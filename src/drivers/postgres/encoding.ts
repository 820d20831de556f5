/** What a column of ours holds. */
export type Scalar = string | number | boolean | null;

/**
 * An array as Postgres reads it. `pg` can do it too, but looks at each value several times, and this is most of what a
 * busy process does for a commit.
 */
export function arrayLiteral(values: readonly Scalar[]): string {
  return `{${values.map(element).join(",")}}`;
}

function element(value: Scalar): string {
  if (typeof value === "string") return `"${/["\\]/.test(value) ? value.replaceAll(/["\\]/g, "\\$&") : value}"`;
  return value === null ? "NULL" : String(value);
}

/**
 * Texts and what separates them: two values for `(string_to_array(…, …))[2:]`. Each begins with the separator, since
 * Postgres makes no array of an empty text. Nothing is escaped, so that it costs neither side anything.
 */
export function packed(texts: readonly string[]): readonly [text: string, separator: string] {
  // No JSON has these raw. A text that has them all the same does not have more and more of them; and as the first is not
  // repeated, no end of a text and beginning of a separator look like a whole one.
  let separator = "\u001e\u001f";
  while (texts.some((text) => text.includes(separator))) separator += "\u001f";
  return [texts.length === 0 ? "" : separator + texts.join(separator), separator];
}

/** Postgres has no text with a NUL in it: it refuses to look for one, where the answer is that there is none. */
export function mayBeText(text: string): boolean {
  return !text.includes("\0");
}
