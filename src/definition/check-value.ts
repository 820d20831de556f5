import type { ErrorCode } from "../errors/registry.ts";
import { notPlainData } from "../json/check-json.ts";
import type { Json } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { FORBIDDEN_KEYS, MAX_JSON_DEPTH } from "../json/scan.ts";
import type { ProblemList } from "./problems.ts";

interface Left {
  readonly value: object;
  readonly pointer: string;
  readonly depth: number;
}

/**
 * Sees to what the readers of text see to, for a value that came without one: depth, forbidden keys, numbers, and that
 * it is plain data at all. Gives the code of the refusal, if there is nothing to look at further.
 */
export function checkValue(root: Json, problems: ProblemList): ErrorCode | undefined {
  const left: Left[] = [];
  let failure = checkMember(root, () => "", 0, left, problems);
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, pointer, depth } = next;
    // The innermost comes first, so that a value which contains itself ends here and not never.
    if (depth > MAX_JSON_DEPTH) {
      problems.add("JSON_TOO_DEEP", pointer, { limit: MAX_JSON_DEPTH });
      return "JSON_TOO_DEEP";
    }
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) {
        failure = checkMember(value[i], () => pointer + pointerStep(i), depth, left, problems) ?? failure;
      }
      continue;
    }
    for (const key of Object.keys(value)) {
      const at = (): string => pointer + pointerStep(key);
      if (FORBIDDEN_KEYS.has(key)) {
        problems.add("FORBIDDEN_KEY", at(), { key }, { hint: "Choose another name." });
        failure = "FORBIDDEN_KEY";
      }
      const member = (value as Record<string, unknown>)[key];
      if (member !== undefined) failure = checkMember(member, at, depth, left, problems) ?? failure;
    }
  }
  return failure;
}

/** Checks a leaf, or keeps a container for later. Pointers are made only for what needs one. */
function checkMember(
  value: unknown,
  pointer: () => string,
  depth: number,
  left: Left[],
  problems: ProblemList,
): ErrorCode | undefined {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return undefined;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return undefined;
    const reason = "does not fit a 64-bit floating point number";
    problems.add("NUMBER_OUT_OF_RANGE", pointer(), { field: String(value), reason });
    return undefined;
  }
  const reason = notPlainData(value);
  if (reason !== undefined) {
    problems.add("INVALID_JSON", pointer(), { format: "JSON", reason: `a value ${reason}` });
    return "INVALID_JSON";
  }
  left.push({ value: value as object, pointer: pointer(), depth: depth + 1 });
  return undefined;
}
