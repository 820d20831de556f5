import { MillraceError } from "../../errors/millrace-error.ts";
import { isDeeperThan } from "../../json/depth.ts";
import type { Json } from "../../json/json.ts";
import { positionsOf } from "../../json/locate.ts";
import { type JsonFault, MAX_JSON_DEPTH, scanJson } from "../../json/scan.ts";
import { MAX_BULK_BYTES } from "../limits.ts";
import { Refusal } from "../service/refusal.ts";

export type BodyFormat = "json" | "yaml";

/** A larger text, which only results of tasks are, is parsed, and what came of it looked at; others are also searched for keys that are written twice. */
const MAX_SCANNED_CHARS: number = MAX_BULK_BYTES;

/** What a body is written in. Throws for anything that is not JSON, or YAML where a definition may come. */
export function formatOf(contentType: string | undefined, encoding: string | undefined, yaml: boolean): BodyFormat {
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    throw unsupported(`The content encoding ${JSON.stringify(encoding.slice(0, 80))} is not supported`);
  }
  if (contentType === undefined || contentType === "application/json") return "json";
  const [type = "", ...parameters] = contentType
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  for (const parameter of parameters) {
    const charset = /^charset\s*=\s*"?([^"]*)"?$/.exec(parameter)?.[1];
    if (charset !== undefined && !["utf-8", "utf8", "us-ascii"].includes(charset)) {
      throw unsupported(`The character set ${JSON.stringify(charset.slice(0, 80))} is not supported; send UTF-8`);
    }
  }
  if (/^(application|text)\/([\w.-]+\+)?json$/.test(type)) return "json";
  if (yaml && /^(application|text)\/((x-|vnd\.)?yaml|[\w.-]+\+yaml)$/.test(type)) return "yaml";
  const also = yaml ? " or application/yaml" : "";
  throw unsupported(
    `The content type ${JSON.stringify(type.slice(0, 80))} is not supported; send application/json${also}`,
  );
}

/** Reads a body of JSON. Nothing counts as `{}`. Keys that reach into prototypes are data like any other here. */
export function readJsonBody(bytes: Uint8Array, maxDepth: number = MAX_JSON_DEPTH): Json {
  if (bytes.length === 0) return {};
  const text = decode(bytes);
  if (text.trim() === "") return {};
  if (text.length <= MAX_SCANNED_CHARS) {
    const fault = scanJson(text, maxDepth).find(({ kind }) => kind !== "forbiddenKey");
    if (fault !== undefined) throw faultOf(fault, text);
    return JSON.parse(text) as Json;
  }
  try {
    const value = JSON.parse(text) as Json;
    if (isDeeperThan(value, maxDepth)) throw new MillraceError("JSON_TOO_DEEP", { limit: MAX_JSON_DEPTH });
    if (!isFinite(value)) throw invalid("a number in it does not fit a 64-bit floating point number");
    return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const fault = scanJson(text, maxDepth).find(({ kind }) => kind === "syntax" || kind === "tooDeep");
    throw fault === undefined ? invalid(error.message) : faultOf(fault, text);
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalid("it is not UTF-8 text");
  }
}

function faultOf(fault: JsonFault, text: string): MillraceError {
  const { kind, offset, pointer } = fault;
  const place = positionsOf(text, [offset]).get(offset);
  const refusal = refusalOf(fault);
  return new Refusal(refusal.code, refusal.details, {
    errors: [{ code: refusal.code, path: kind === "syntax" ? "" : pointer, message: refusal.message, ...place }],
  });
}

function refusalOf({ kind, text }: JsonFault): MillraceError {
  switch (kind) {
    case "tooDeep":
      return new MillraceError("JSON_TOO_DEEP", { limit: MAX_JSON_DEPTH });
    case "duplicateKey":
      return new MillraceError("DUPLICATE_KEY", { key: text });
    case "numberRange":
      return invalid(`the number ${text.slice(0, 40)} does not fit a 64-bit floating point number`);
    case "forbiddenKey":
    case "syntax":
      return invalid(text);
  }
}

function invalid(reason: string): MillraceError {
  return new MillraceError("INVALID_JSON", { format: "JSON", reason });
}

function unsupported(reason: string): MillraceError {
  return new MillraceError("UNSUPPORTED_MEDIA_TYPE", { reason });
}

/** Whether every number in it is one that JSON can write again. */
function isFinite(root: Json): boolean {
  const left: Json[] = [root];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value === "number" && !Number.isFinite(value)) return false;
    if (typeof value === "object" && value !== null) for (const below of Object.values(value)) left.push(below);
  }
  return true;
}
