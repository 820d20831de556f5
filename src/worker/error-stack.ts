import type { Concealment } from "./concealment.ts";
import { describe } from "./error-value.ts";

/** What is kept of a stack, its causes included. */
export const MAX_STACK_CHARS = 4_096;
/** Which part of it a message may take: the lines below say where, and the error itself has the rest. */
const HEAD_PART = 1 / 8;
/** An error may be its own cause. */
const MAX_CAUSES = 4;

/** Where the lines of a stack begin that name places. */
const FIRST_PLACE = /\n {4}at /;
/** What a module's name has after it when it was loaded anew: nobody has a file of that name. */
const LOADED_ANEW = /\?changed=[\d.]+/g;

/**
 * Where an error was thrown and what caused it, as text without what is concealed. Undefined of what has no stack: of what
 * is no error, and of one whose code says it all. Never throws itself.
 */
export function errorStack(
  thrown: unknown,
  concealment: Concealment,
  maxChars: number = MAX_STACK_CHARS,
): string | undefined {
  try {
    if (!(thrown instanceof Error) || typeof thrown.stack !== "string") return undefined;
    const parts = [stackOf(thrown, concealment, maxChars)];
    for (let { cause } = thrown; cause !== undefined && cause !== null && parts.length <= MAX_CAUSES;) {
      parts.push(`caused by ${stackOf(cause, concealment, maxChars)}`);
      cause = cause instanceof Error ? cause.cause : undefined;
    }
    return cut(parts.join("\n"), maxChars);
  } catch {
    return undefined;
  }
}

/** Concealed before it is cut: half a secret at the edge would not be found. */
function stackOf(thrown: unknown, concealment: Concealment, maxChars: number): string {
  const stack = thrown instanceof Error ? (thrown.stack ?? String(thrown)) : describe(thrown);
  const text = concealment.text(stack).replaceAll(LOADED_ANEW, "").toWellFormed().replaceAll("\0", "\u2400");
  const found = text.search(FIRST_PLACE);
  const places = found === -1 ? text.length : found;
  return cut(text.slice(0, places), maxChars * HEAD_PART) + text.slice(places);
}

function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}…`;
}
