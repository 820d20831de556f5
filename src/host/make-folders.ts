import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder with all above it. The outermost that was not there before, if any.
 *
 * Node can do that by itself, but never ends where a parent refuses, as /proc does, and takes a disk that is read-only
 * for a folder that is missing.
 */
export function makeFolders(folder: string): string | undefined {
  const missing: string[] = [];
  for (let at = folder; !existsSync(at); at = dirname(at)) missing.push(at);
  // A file may stand there, which the system tells best.
  if (missing.length === 0 && !statSync(folder).isDirectory()) mkdirSync(folder);
  for (const one of missing.toReversed()) {
    try {
      mkdirSync(one);
    } catch (error) {
      // Somebody else may have made it meanwhile.
      if (!existsSync(one)) throw error;
    }
  }
  return missing.at(-1);
}
