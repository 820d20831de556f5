import { z } from "zod";
import { nearestName } from "../../errors/nearest-name.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import { quote } from "../../errors/registry.ts";
import type { Json } from "../../json/json.ts";
import { pointerTo } from "../../json/pointer.ts";
import { type Fault, Refusal } from "../service/refusal.ts";

type Issue = z.core.$ZodIssue;

/** Checks a body by its schema. A field that nobody knows is the first thing said: it is the usual mistake. */
export function checkBody<Body>(schema: z.ZodType<Body>, value: Json): Body {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.flatMap((issue) => faultsOf(issue, knownFields(schema)));
  const unknown = errors.find(({ code }) => code === "UNKNOWN_FIELD");
  if (unknown !== undefined) {
    const field = unknown.path.slice(unknown.path.lastIndexOf("/") + 1);
    throw new Refusal("UNKNOWN_FIELD", { field, where: "The body" }, { errors });
  }
  const first = errors[0]!;
  throw new Refusal(
    "INVALID_TYPE",
    { field: first.path, expected: "as described", got: "this" },
    { errors, detail: first.message },
  );
}

/** An address is written into logs and histories; a key must not be. */
export function refuseCredentials(query: Readonly<Record<string, unknown>>): void {
  for (const field of Object.keys(query)) {
    if (CREDENTIALS.test(field)) throw new MillraceError("CREDENTIAL_IN_URL", { field });
  }
}

/** Query parameters are text, each given once. */
export function checkQuery<Query>(schema: z.ZodType<Query>, query: Readonly<Record<string, unknown>>): Query {
  const result = schema.safeParse(query);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  if (issue.code === "unrecognized_keys") {
    throw new MillraceError("INVALID_QUERY", { field: issue.keys[0]!, reason: "is not a parameter of this route" });
  }
  const field = String(issue.path[0] ?? "");
  const isTwice = Array.isArray(query[field]);
  throw new MillraceError("INVALID_QUERY", { field, reason: isTwice ? "is given twice" : reasonOf(issue) });
}

const CREDENTIALS = /^(api[_-]?key|access[_-]?token|token|key|authorization|password|secret)$/i;

function knownFields(schema: z.ZodType): readonly string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

function faultsOf(issue: Issue, known: readonly string[]): readonly Fault[] {
  const path = pointerTo(issue.path.map((step) => (typeof step === "number" ? step : String(step))));
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((field) => {
      const near = issue.path.length === 0 ? nearestName(field, known) : undefined;
      return {
        code: "UNKNOWN_FIELD",
        path: path + pointerTo([field]),
        message: `${issue.path.length === 0 ? "The body" : quote(path)} has no field ${quote(field)}.`,
        ...(near !== undefined && { hint: `Did you mean ${quote(near)}?` }),
      };
    });
  }
  const name = path === "" ? "The body" : quote(path);
  return [{ code: "INVALID_TYPE", path, message: `${name} ${reasonOf(issue)}.` }];
}

function reasonOf(issue: Issue): string {
  if (issue.message.startsWith("must ")) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      return `must be ${issue.expected === "record" ? "an object" : withArticle(issue.expected)}`;
    case "invalid_value":
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "too_big":
      return `must be at most ${issue.maximum}${sized(issue.origin)}`;
    case "too_small":
      return `must be at least ${issue.minimum}${sized(issue.origin)}`;
    case "invalid_format":
      return issue.format === "datetime" ? "must be a time such as 2026-01-31T12:00:00Z" : `must be a ${issue.format}`;
    case "invalid_union":
      return "must be a number or text";
    case "custom":
    case "invalid_element":
    case "invalid_key":
    case "not_multiple_of":
    case "unrecognized_keys":
      return `is not valid: ${issue.message}`;
  }
}

function withArticle(type: string): string {
  const name = type === "int" ? "integer" : type;
  return /^[aeiou]/.test(name) ? `an ${name}` : `a ${name}`;
}

function sized(origin: string): string {
  if (origin === "string") return " characters long";
  return origin === "array" ? " entries long" : "";
}
