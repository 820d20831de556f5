import { once } from "node:events";
import { createWriteStream, existsSync, renameSync, type WriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import type { Call } from "../call.ts";
import type { Begun } from "./batch-log.ts";
import { itemLines } from "./item-lines.ts";

/** Where the results of items go, line by line. */
export interface Results {
  write(line: string): Promise<void>;
  /** What was written so far is in the file. */
  end(): Promise<void>;
}

export function resultsTo(call: Call, file: string | undefined): Results {
  if (file === undefined) return { write: (line) => call.terminal.outInTurn(`${line}\n`), end: async () => undefined };
  const stream = createWriteStream(file, { flags: "a" });
  return { write: (line) => written(stream, line), end: () => ended(stream) };
}

async function written(stream: WriteStream, line: string): Promise<void> {
  if (!stream.write(`${line}\n`)) await once(stream, "drain");
}

async function ended(stream: WriteStream): Promise<void> {
  stream.end();
  await finished(stream);
}

/**
 * Leaves only the results of segments that were written to their end: what a process wrote that died before it was
 * done, and what is to be tried again, comes anew.
 */
export async function keepWritten(file: string, begun: readonly Begun[]): Promise<void> {
  if (!existsSync(file)) return;
  const fresh = `${file}.new`;
  const stream = createWriteStream(fresh);
  for await (const { text } of itemLines(file)) {
    const index = /^\{"index":(\d+),/.exec(text)?.[1];
    if (index !== undefined && isWritten(begun, Number(index))) await written(stream, text);
  }
  await ended(stream);
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
