import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A text in the sources that is replaced when they are loaded. Nothing in src/ knows of it. */
export interface Patch {
  /** Below src/. */
  readonly file: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly put: string;
}

export const SRC: string = join(import.meta.dirname, "..", "..", "src");

/** Code that runs just before a statement. */
export function before(file: string, find: string, code: string): Patch {
  return { file, find, put: `${code} ${find}` };
}

/** Code that runs just after a statement. */
export function after(file: string, find: string, code: string): Patch {
  return { file, find, put: `${find} ${code}` };
}

/** The source of a file with its patches. One that no longer fits fails loudly. */
export function patched(file: string, patches: readonly Patch[]): string {
  let source = readFileSync(join(SRC, file), "utf8");
  for (const { find, put } of patches) {
    if (source.split(find).length !== 2) throw new Error(`the patch does not fit ${file} exactly once: ${find}`);
    source = source.replace(find, () => put);
  }
  return source;
}
