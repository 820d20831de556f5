import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { MAX_RETRIES_FIELD, RETRY_FIELDS } from "./fields.ts";
import type { ProblemList } from "./problems.ts";
import { checkNumber, fieldReader, readFields, reportRepeated, writtenName, wrongType } from "./read-fields.ts";
import type { RetryPolicy } from "./workflow.ts";

const RETRY = fieldReader("A retry policy", RETRY_FIELDS);
const JITTER_RULE = { kind: "number", min: 0, max: 1, code: "INVALID_RETRY_POLICY" } as const;
const MAX_RETRIES_RULE = MAX_RETRIES_FIELD.rule as Extract<typeof MAX_RETRIES_FIELD.rule, { kind: "number" }>;

export const DEFAULT_RETRY: RetryPolicy = {
  max_attempts: 3,
  base_delay_seconds: 1,
  max_delay_seconds: 60,
  exponential_base: 2,
  jitter: 0.1,
};

/** A policy as written, over the one it inherits from. */
export function loadRetry(
  raw: Json | undefined,
  pointer: string,
  inherited: RetryPolicy,
  problems: ProblemList,
): RetryPolicy {
  if (raw === undefined || raw === null) return inherited;
  if (!isJsonObject(raw)) {
    wrongType(pointer.slice(pointer.lastIndexOf("/") + 1), "an object", raw, pointer, problems);
    return inherited;
  }
  let attempts: number | undefined;
  const given = readFields(
    RETRY,
    raw,
    () => pointer,
    problems,
    (name, value) => {
      if (name === "max_retries") attempts = fromMaxRetries(raw, value, pointer, problems);
      else if (name === "retryable_errors") {
        // Of seed 002: a list of classes of another language. Which errors are retried is the handler's to say.
        problems.add("IGNORED_FIELD", `${pointer}/${name}`, { field: name }, { atKey: true });
      } else return false;
      return true;
    },
  ) as Partial<RetryPolicy>;
  // Somebody who asks for waits of at most half a second does not mean a first one of the inherited second.
  const longest = given.max_delay_seconds ?? inherited.max_delay_seconds;
  const base = given.base_delay_seconds ?? Math.min(inherited.base_delay_seconds, longest);
  const policy: RetryPolicy = {
    max_attempts: attempts ?? given.max_attempts ?? inherited.max_attempts,
    base_delay_seconds: base,
    // And somebody who asks for a first wait of two minutes does not mean one of the inherited 60 s.
    max_delay_seconds: given.max_delay_seconds ?? Math.max(inherited.max_delay_seconds, base),
    exponential_base: given.exponential_base ?? inherited.exponential_base,
    jitter: jitterOf(raw, given, pointer, problems) ?? inherited.jitter,
  };
  if (policy.max_delay_seconds < policy.base_delay_seconds) {
    const [field, least] = [
      writtenName(RETRY, raw, "max_delay_seconds"),
      writtenName(RETRY, raw, "base_delay_seconds"),
    ];
    const reason = `must not be less than ${least} (${policy.base_delay_seconds})`;
    problems.add("INVALID_RETRY_POLICY", `${pointer}/${field}`, { field, reason });
  }
  return policy;
}

function fromMaxRetries(raw: JsonObject, value: Json, pointer: string, problems: ProblemList): number | undefined {
  if (value === null) return undefined;
  if (raw["max_attempts"] !== undefined && raw["max_attempts"] !== null)
    reportRepeated("max_retries", "max_attempts", pointer, problems);
  const good = checkNumber("max_retries", MAX_RETRIES_RULE, value, `${pointer}/max_retries`, problems);
  return good ? value + 1 : undefined;
}

function jitterOf(raw: JsonObject, given: JsonObject, pointer: string, problems: ProblemList): number | undefined {
  const jitter = given["jitter"];
  if (jitter === undefined) return undefined;
  if (typeof jitter === "boolean") return jitter ? 0.1 : 0;
  const name = raw["jitter"] === undefined ? "jitter_factor" : "jitter";
  return checkNumber(name, JITTER_RULE, jitter, pointer + pointerStep(name), problems) ? jitter : undefined;
}
