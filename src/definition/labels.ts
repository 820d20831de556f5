import type { Json, JsonObject } from "../json/json.ts";

/** What labels look like; a list of them in a query is joined by commas, so there is none in a value. */
export const MAX_LABELS = 16;
export const LABEL_NAME: RegExp = /^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$/;
export const LABEL_VALUE: RegExp = /^[^\p{Cc},]{1,255}$/u;

export const LABEL_NAME_RULE = "must be up to 63 letters, digits or _ . / -, beginning with a letter or digit";
export const LABEL_VALUE_RULE = "must be 1 to 255 characters, without commas and control characters";

/** What names of labels begin with by which the engine itself says what an execution is. Nobody else gives those. */
export const OWN_LABELS = "millrace/";

/** Those of a definition that executions can have: the rest, lists and the like, is only shown with the definition. */
export function usableLabels(labels: JsonObject): Readonly<Record<string, string>> {
  const usable = Object.entries(labels).filter(([name, value]) => labelFault(name, value) === undefined);
  return Object.fromEntries(
    usable.slice(0, MAX_LABELS).map(([name, value]) => [name, String(value as string | number | boolean)]),
  );
}

/** Why executions do not get labels of their definition, by the name of each. null means "not given". */
export function unusedLabels(labels: JsonObject): ReadonlyMap<string, string> {
  const unused = new Map<string, string>();
  let used = 0;
  for (const [name, value] of Object.entries(labels)) {
    const fault =
      labelFault(name, value) ?? (++used > MAX_LABELS ? `an execution has at most ${MAX_LABELS}` : undefined);
    if (fault !== undefined && value !== null) unused.set(name, fault);
  }
  return unused;
}

function labelFault(name: string, value: Json): string | undefined {
  if (!LABEL_NAME.test(name)) return `its name ${LABEL_NAME_RULE}`;
  if (name.startsWith(OWN_LABELS)) return `names that begin with ${OWN_LABELS} are the engine's own`;
  if (typeof value === "object") return "its value must be text, a number, true or false";
  const text = String(value);
  return LABEL_VALUE.test(text) && text.isWellFormed() ? undefined : `its value ${LABEL_VALUE_RULE}`;
}
