import { isJsonObject, type Json } from "../../json/json.ts";

const REDACTED = "[redacted]";

/** Names under which people keep what nobody else may see. */
const NAMES =
  /^(x-)?(proxy-)?(authorization|cookie|set-cookie|api[-_]?keys?|apikey|pass(word|wd|phrase)?|secrets?|(access|refresh|id|auth|session|bearer)?[-_]?token|private[-_]?key|client[-_]?secret|credentials?)$/i;
/** Texts that are credentials wherever they stand. */
const TEXTS = [
  /\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi,
  /\b(sk|pk|rk|ghp|gho|ghs|xox[abp])[-_][\w-]{16,}/g,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /(?<=:\/\/)[^/\s:@]+:[^/\s@]+(?=@)/g,
];

/**
 * The same value without what looks like a credential. A secret of the engine is never in a history; this is for what
 * people have written into inputs and configs themselves. A template only says where a secret goes, and stays.
 */
export function redact(value: Json, name = ""): Json {
  if (typeof value === "string") {
    if (value.includes("{{")) return value;
    return NAMES.test(name) ? REDACTED : TEXTS.reduce((text, pattern) => text.replaceAll(pattern, REDACTED), value);
  }
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => redact(item, name));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, redact(member, key)]));
}
