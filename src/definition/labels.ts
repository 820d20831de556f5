import type { JsonObject } from "../json/json.ts";

/** What labels look like; a list of them in a query is joined by commas, so there is none in a value. */
export const MAX_LABELS = 16;
export const LABEL_NAME: RegExp = /^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$/;
export const LABEL_VALUE: RegExp = /^[^\p{Cc},]{1,255}$/u;

/** What names of labels begin with by which the engine itself says what an execution is. Nobody else gives those. */
export const OWN_LABELS = "millrace/";

/** Those of a definition that executions can have: the rest, lists and the like, is only shown with the definition. */
export function usableLabels(labels: JsonObject): Readonly<Record<string, string>> {
  const usable = Object.entries(labels).flatMap(([name, given]) => {
    const isWritten = typeof given === "string" || typeof given === "number" || typeof given === "boolean";
    const value = isWritten ? String(given) : "";
    const isTheirs = LABEL_NAME.test(name) && !name.startsWith(OWN_LABELS);
    return isTheirs && LABEL_VALUE.test(value) && value.isWellFormed() ? [[name, value] as const] : [];
  });
  return Object.fromEntries(usable.slice(0, MAX_LABELS));
}
