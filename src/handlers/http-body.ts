import type { Json } from "../json/json.ts";
import type { HttpAnswer } from "./http-client.ts";

/**
 * The body of an answer as data: parsed if it is JSON, else text. What says that it is JSON and is not stays text: the
 * status has already said that the call went well. Without a type, what looks like an object or a list is tried.
 */
export function bodyOf({ headers, body }: Pick<HttpAnswer, "headers" | "body">): Json {
  const type = String(headers["content-type"] ?? "").toLowerCase();
  const text = textOf(body, type);
  const isJson = type === "" ? /^\s*[[{]/.test(text) : /^[^;]*[/+]json\s*(;|$)/.test(type);
  if (!isJson) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

function textOf(body: Uint8Array, type: string): string {
  const [, charset = "utf-8"] = /;\s*charset\s*=\s*"?([^";\s]+)/.exec(type) ?? [];
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}
