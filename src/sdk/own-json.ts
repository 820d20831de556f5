import { MillraceError } from "../errors/millrace-error.ts";
import { checkJson } from "../json/check-json.ts";
import { copyJson } from "../json/copy-json.ts";
import type { Json } from "../json/json.ts";

/** A copy of what a caller gave, to be made before anything is awaited: it is theirs, and they may change it. Throws for what is no JSON. */
export function ownJson(called: string, given: unknown): Json {
  const fault = checkJson(given);
  if (fault === undefined) return copyJson(given as Json);
  const where = fault.pointer === "" ? `the ${called}` : `the value at "${fault.pointer}"`;
  throw new MillraceError("INPUT_INVALID", { reason: `${where} ${fault.reason}` });
}
