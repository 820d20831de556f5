import { RE2JS } from "re2js";

/**
 * Patterns that are ready to run. Each may keep up to 8 MB of states it has met, so only these few are kept, however
 * many definitions use patterns. One expression has fewer than this, so a loop never compiles the same one twice.
 */
const ready = new Map<string, RE2JS>();
const MAX_READY = 32;

/** A compiled pattern, matched in time linear in the text. Throws if the pattern is not valid. */
export function patternOf(source: string): RE2JS {
  const pattern = ready.get(source) ?? RE2JS.compile(source);
  ready.delete(source);
  if (ready.size >= MAX_READY) ready.delete(ready.keys().next().value!);
  ready.set(source, pattern);
  return pattern;
}
