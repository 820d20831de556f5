import type { ErrorValue } from "../core/message.ts";
import { checkJson } from "../json/check-json.ts";
import type { Json } from "../json/json.ts";
import { HandlerError } from "./handler.ts";

/** Longer messages are cut: an error must fit into a journal. */
export const MAX_ERROR_CHARS = 16_000;
const MAX_CODE_CHARS = 128;

/** Errors that say the work itself is wrong: the same attempt again would fail the same way. */
const NOT_RETRYABLE: ReadonlySet<string> = new Set([
  "TypeError",
  "SyntaxError",
  "RangeError",
  "ReferenceError",
  "URIError",
]);

/** Whatever a handler threw, as data. Never throws itself. */
export function errorValue(thrown: unknown): ErrorValue {
  try {
    if (thrown instanceof HandlerError) {
      const { retryable, details } = thrown;
      const code = cut(thrown.code).slice(0, MAX_CODE_CHARS);
      return { code, message: cut(thrown.message), retryable, ...storable(details) };
    }
    if (thrown instanceof Error) {
      const message = cut(thrown.message === "" ? thrown.name : thrown.message);
      // What `fetch` throws when the network fails is a TypeError by name only.
      const isNetwork = thrown.name === "TypeError" && thrown.message === "fetch failed";
      return { code: "HANDLER_ERROR", message, retryable: isNetwork || !NOT_RETRYABLE.has(thrown.name) };
    }
    return { code: "HANDLER_ERROR", message: cut(`The handler threw ${describe(thrown)}`), retryable: true };
  } catch {
    return { code: "HANDLER_ERROR", message: "The handler threw something that cannot be read", retryable: true };
  }
}

/** Details that cannot be stored, or are too much, are left out: the error itself is worth more. */
function storable(details: Json | undefined): { details?: Json } {
  if (details === undefined || checkJson(details) !== undefined) return {};
  return JSON.stringify(details).length > MAX_ERROR_CHARS ? {} : { details };
}

function cut(message: unknown): string {
  const text = String(message).toWellFormed().replaceAll("\0", "\u2400");
  return text.length <= MAX_ERROR_CHARS ? text : `${text.slice(0, MAX_ERROR_CHARS).toWellFormed()}…`;
}

function describe(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}
