import type { Call } from "./call.ts";
import type { Gap } from "./shapes.ts";

/** JSON for people and programs alike. */
export function printJson(call: Call, value: unknown): void {
  call.terminal.out(`${JSON.stringify(value, null, 2)}\n`);
}

/** Nobody is to take a list for all there is while a part of it could not be seen. */
export function tellGap(call: Call, { incomplete }: Gap): void {
  if (incomplete === undefined) return;
  call.terminal.err("the archive does not answer: what only it has is left out\n");
}

/** Columns, as wide as what is in them. Cells hold one line each, without anything that moves the cursor. */
export function printTable(call: Call, heads: readonly string[], rows: readonly (readonly string[])[]): void {
  const cells = [heads, ...rows.map((row) => row.map(oneLine))];
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  for (const [i, row] of cells.entries()) {
    const line = row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column]!)))
      .join("   ");
    call.terminal.out(`${i === 0 ? call.terminal.style("bold", line.trimEnd()) : line.trimEnd()}\n`);
  }
}

/** Names and messages come from elsewhere: a terminal must not be told what to do by them. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ");
}

/** The same for what has lines of its own. */
export function harmless(text: string): string {
  return text.split("\n").map(oneLine).join("\n");
}
