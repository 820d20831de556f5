import type { Patch } from "../world/patch.ts";

/** A text in one of the scripts that Redis runs. */
export interface ScriptPatch {
  readonly script: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly put: string;
}

/** A deliberate bug that only several processes on one store bring to light. */
export interface Mutant {
  readonly name: string;
  /** What a hurried developer would have thought. */
  readonly thought: string;
  readonly store: "redis" | "postgres";
  /** A part of what is then said. */
  readonly says: RegExp;
  readonly patches: readonly Patch[];
  readonly scripts: readonly ScriptPatch[];
}

export const MUTANTS: readonly Mutant[] = [];

/** A script with a deliberate bug, if it is to have one. A patch that no longer fits fails loudly. */
export function patchedScript(name: string, text: string, mutant: Mutant | undefined): string {
  let script = text;
  for (const { find, put } of mutant?.scripts.filter((patch) => patch.script === name) ?? []) {
    if (script.split(find).length !== 2) throw new Error(`the patch does not fit ${name}.lua exactly once: ${find}`);
    script = script.replace(find, () => put);
  }
  return script;
}
