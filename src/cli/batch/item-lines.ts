import { createReadStream } from "node:fs";

/** One line of a file, and where it ends in bytes. */
export interface Line {
  readonly text: string;
  readonly end: number;
}

const NEWLINE = 10;

/** The lines of a part of a file that are not blank, one by one: as much of it is in memory as the longest line. */
export async function* itemLines(file: string, from = 0, to = Infinity): AsyncGenerator<Line, void> {
  const range = { start: from, ...(Number.isFinite(to) && { end: to - 1 }) };
  if (range.start >= to) return;
  let rest: Buffer[] = [];
  let end = from;
  for await (const chunk of createReadStream(file, range) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      const bytes = Buffer.concat([...rest, chunk.subarray(start, at)]);
      rest = [];
      start = at + 1;
      end += bytes.length + 1;
      const text = bytes.toString("utf8").trim();
      if (text !== "") yield { text, end };
    }
    if (start < chunk.length) rest.push(chunk.subarray(start));
  }
  const bytes = Buffer.concat(rest);
  const text = bytes.toString("utf8").trim();
  if (text !== "") yield { text, end: end + bytes.length };
}
