import type { ErrorValue } from "../core/message.ts";
import { checkJson } from "../json/check-json.ts";
import type { Json } from "../json/json.ts";
import { Concealment } from "./concealment.ts";
import { isHandlerError } from "./handler.ts";

/** Longer messages are cut: an error must fit into a journal. */
export const MAX_ERROR_CHARS = 16_000;
const MAX_CODE_CHARS = 128;

/** Errors that say the work itself is wrong: the same attempt again would fail the same way. */
export const NOT_RETRYABLE: ReadonlySet<string> = new Set([
  "TypeError",
  "SyntaxError",
  "RangeError",
  "ReferenceError",
  "URIError",
]);

const NOTHING_TO_CONCEAL = new Concealment();

/** Whatever a handler threw, as data, without what is concealed. Never throws itself. */
export function errorValue(
  thrown: unknown,
  concealment: Concealment = NOTHING_TO_CONCEAL,
  maxChars = MAX_ERROR_CHARS,
): ErrorValue {
  const cut = (text: unknown): string => cutText(text, concealment, maxChars);
  try {
    if (isHandlerError(thrown)) {
      const { retryable, details } = thrown;
      const code = cut(thrown.code).slice(0, MAX_CODE_CHARS).toWellFormed();
      return { code, message: cut(thrown.message), retryable, ...storable(details, concealment) };
    }
    if (thrown instanceof Error) {
      const message = cut(thrown.message === "" ? thrown.name : thrown.message);
      // What `fetch` throws when the network fails is a TypeError by name only.
      const isNetwork = thrown.name === "TypeError" && thrown.message === "fetch failed";
      return { code: "HANDLER_ERROR", message, retryable: isNetwork || !NOT_RETRYABLE.has(thrown.name) };
    }
    const message = cut(`The handler threw ${describe(thrown)}`);
    return { code: "HANDLER_ERROR", message, retryable: true };
  } catch {
    return { code: "HANDLER_ERROR", message: "The handler threw something that cannot be read", retryable: true };
  }
}

/** When a handler asked to be called again, if it did. Never throws. */
export function retryAfter(thrown: unknown): { retryAfterMs?: number } {
  try {
    const retryAfterMs = (thrown as { retryAfterMs?: unknown } | null | undefined)?.retryAfterMs;
    return typeof retryAfterMs === "number" && Number.isFinite(retryAfterMs) ? { retryAfterMs } : {};
  } catch {
    return {};
  }
}

/** Details that cannot be stored, or are too much, are left out: the error itself is worth more. */
function storable(details: Json | undefined, concealment: Concealment): { details?: Json } {
  try {
    if (details === undefined || checkJson(details) !== undefined) return {};
    const text = JSON.stringify(concealment.json(details));
    return text.length > MAX_ERROR_CHARS ? {} : { details: JSON.parse(text) as Json };
  } catch {
    return {};
  }
}

/** Concealed first: half a secret at the edge would not be found. */
function cutText(message: unknown, concealment: Concealment, maxChars: number): string {
  const text = concealment.text(String(message)).toWellFormed().replaceAll("\0", "\u2400");
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}…`;
}

/** In words, whatever it is. */
export function describe(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}
