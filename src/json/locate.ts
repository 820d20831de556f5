import { pointerStep, pointerSteps } from "./pointer.ts";
import { skipSpace, stringEnd, valueEnd } from "./tokens.ts";

/** A place in a text, both counted from 1; columns in UTF-16 units, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Where a value starts, and the key that holds it. */
export interface Place {
  readonly value: number;
  /** The same as `value` for array elements and the document. */
  readonly key: number;
}

interface Wanted {
  pointer: string | undefined;
  readonly children: Map<string, Wanted>;
}

/**
 * Finds the offsets of some values in valid JSON text. Positions are needed only for problems, so instead of keeping
 * one per value the text is read again, once for all pointers. What no pointer goes through is skipped over.
 */
export function locateJson(text: string, pointers: Iterable<string>): Map<string, Place> {
  const places = new Map<string, Place>();
  const root = wantedTree(pointers);
  const open: { wanted: Wanted; index: number }[] = [];
  let wanted: Wanted | undefined = root;
  let i = skipSpace(text, 0);
  let key = i;
  for (;;) {
    if (wanted?.pointer !== undefined) places.set(wanted.pointer, { value: i, key });
    const c = text.charCodeAt(i);
    const isContainer = c === 123 || c === 91;
    if (wanted !== undefined && wanted.children.size > 0 && isContainer) {
      const inside = skipSpace(text, i + 1);
      if (text.charCodeAt(inside) === c + 2) i = inside + 1;
      else {
        open.push({ wanted, index: c === 123 ? -1 : 0 });
        ({ wanted, i, key } = enter(text, inside, open.at(-1)!));
        continue;
      }
    } else i = valueEnd(text, i);

    // Behind a value: close what ends here, or go to the next member.
    i = skipSpace(text, i);
    while (open.length > 0 && text.charCodeAt(i) !== 44) {
      open.pop();
      i = skipSpace(text, i + 1);
    }
    const container = open.at(-1);
    if (container === undefined) return places;
    if (container.index >= 0) container.index++;
    ({ wanted, i, key } = enter(text, skipSpace(text, i + 1), container));
  }
}

/** Steps onto a member of an open container: reads its key, or takes its index. */
function enter(
  text: string,
  from: number,
  container: { wanted: Wanted; index: number },
): { wanted: Wanted | undefined; i: number; key: number } {
  const { children } = container.wanted;
  if (container.index >= 0) return { wanted: children.get(String(container.index)), i: from, key: from };
  const end = stringEnd(text, from);
  const name = JSON.parse(text.slice(from, end)) as string;
  const value = skipSpace(text, skipSpace(text, end) + 1);
  return { wanted: children.get(name), i: value, key: from };
}

function wantedTree(pointers: Iterable<string>): Wanted {
  const root: Wanted = { pointer: undefined, children: new Map() };
  for (const pointer of pointers) {
    let wanted = root;
    for (const step of pointerSteps(pointer)) {
      let child = wanted.children.get(step);
      if (child === undefined) wanted.children.set(step, (child = { pointer: undefined, children: new Map() }));
      wanted = child;
    }
    wanted.pointer = pointer;
  }
  return root;
}

/** The place of a pointer, or of the nearest thing around it that exists: a missing field is shown at its object. */
export function withParents(pointers: Iterable<string>): Set<string> {
  const all = new Set<string>();
  for (const pointer of pointers) {
    let parent = "";
    all.add(parent);
    for (const step of pointerSteps(pointer)) all.add((parent += pointerStep(step)));
  }
  return all;
}

/** Turns offsets into lines and columns in one pass over the text. */
export function positionsOf(text: string, offsets: Iterable<number>): Map<number, Position> {
  const sorted = [...new Set(offsets)].sort((a, b) => a - b);
  const positions = new Map<number, Position>();
  let line = 1;
  let lineStart = 0;
  let newline = text.indexOf("\n");
  for (const offset of sorted) {
    while (newline !== -1 && newline < offset) {
      line++;
      lineStart = newline + 1;
      newline = text.indexOf("\n", lineStart);
    }
    positions.set(offset, { line, column: offset - lineStart + 1 });
  }
  return positions;
}
