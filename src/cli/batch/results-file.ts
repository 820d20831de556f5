import { existsSync, renameSync } from "node:fs";
import type { Call } from "../call.ts";
import { fileLines, type Lines } from "../file-lines.ts";
import type { Begun } from "./batch-log.ts";
import { itemLines } from "./item-lines.ts";

/** Where the results of items go, line by line. */
export function resultsTo(call: Call, file: string | undefined): Lines {
  if (file === undefined) return { write: (line) => call.terminal.outInTurn(`${line}\n`), end: async () => undefined };
  return fileLines(file, "a");
}

/**
 * Leaves only the results of segments that were written to their end: what a process wrote that died before it was
 * done, and what is to be tried again, comes anew.
 */
export async function keepWritten(file: string, begun: readonly Begun[]): Promise<void> {
  if (!existsSync(file)) return;
  const fresh = `${file}.new`;
  const kept = fileLines(fresh);
  for await (const { text } of itemLines(file)) {
    const index = /^\{"index":(\d+),/.exec(text)?.[1];
    if (index !== undefined && isWritten(begun, Number(index))) await kept.write(text);
  }
  await kept.end();
  renameSync(fresh, file);
}

function isWritten(begun: readonly Begun[], index: number): boolean {
  let low = 0;
  let high = begun.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { from, count } = begun[middle]!.segment;
    if (index < from) high = middle;
    else if (index >= from + count) low = middle + 1;
    else return begun[middle]!.outcome !== undefined;
  }
  return false;
}
