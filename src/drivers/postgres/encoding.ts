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
 * What separates texts. No JSON has these raw. Postgres looks for it in steps of its length: for one of two characters it
 * looks at every second character of all that is sent, and for this one at every sixteenth.
 */
const SEPARATOR = `\u001e${"\u001f".repeat(15)}`;

/**
 * What separates texts, and the columns of them: values for the first parameters of a statement that says `unpacked`. Each text
 * begins with the separator, since Postgres makes no array of an empty text. Nothing is escaped, so that it costs neither
 * side anything.
 */
export function packed(...columns: readonly (readonly string[])[]): readonly [separator: string, ...texts: string[]] {
  // A text that has it all the same does not have more and more of it; and as the first character is not repeated, no end of
  // a text and beginning of a separator look like a whole one.
  let separator = SEPARATOR;
  while (columns.some((texts) => texts.some((text) => text.includes(separator)))) separator += "\u001f";
  return [separator, ...columns.map((texts) => (texts.length === 0 ? "" : separator + texts.join(separator)))];
}

/** The array of texts in a parameter behind the first, which has what separates them. */
export function unpacked(parameter: `$${number}`): string {
  return `(string_to_array(${parameter}, $1))[2:]`;
}

/** Postgres has no text with a NUL in it: it refuses to look for one, where the answer is that there is none. */
export function mayBeText(text: string): boolean {
  return !text.includes("\0");
}
