import { quote } from "../errors/registry.ts";
import { HandlerError } from "../worker/handler.ts";

/** Headers that belong to the connection, not to the request: with them one request could pass for two. */
const NOT_OURS_TO_SET: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The headers that a config writes, by their names in lower case. */
export function writtenHeaders(
  headers: Readonly<Record<string, string | number | boolean>> = {},
): Readonly<Record<string, string>> {
  const checked: Record<string, string> = {};
  for (const [written, value] of Object.entries(headers)) {
    const name = written.toLowerCase();
    if (NOT_OURS_TO_SET.has(name) || !/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) {
      throw new HandlerError("INVALID_HEADER", `The header ${quote(written)} cannot be set`);
    }
    // A line break would begin another header, or another request.
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(String(value))) {
      const message = `The value of the header ${quote(written)} contains characters that a header cannot carry`;
      throw new HandlerError("INVALID_HEADER_VALUE", message);
    }
    checked[name] = String(value);
  }
  return checked;
}
