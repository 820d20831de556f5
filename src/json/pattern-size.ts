/** An escape, a class, or a character: one step of the program that a pattern becomes. */
const ATOM = /\\(?:[pPx]\{[^}]*\}|[^])|\[\^?\]?(?:\\[^]|\[:\^?\w+:\]|[^\]\\])*\]|[^]/y;
const OPEN = /\((?:\?(?:P?<\w*>|[A-Za-z]*-?[A-Za-z]*:?))?/y;
const COUNT = /\{(\d{1,9})(?:,(\d{0,9}))?\}/y;

interface Group {
  size: number;
  /** Of what stood last: a count that follows is of that. */
  last: number;
}

/**
 * About how many steps the program has that a pattern becomes, told from its text. A thousand characters can ask for a
 * million, by what is repeated inside what is repeated, and to find that out by compiling it takes seconds and hundreds
 * of megabytes. Rather too much than too little.
 */
export function patternSize(pattern: string): number {
  const groups: Group[] = [{ size: 1, last: 0 }];
  for (let at = 0; at < pattern.length;) {
    const group = groups.at(-1)!;
    const counted = matchAt(COUNT, pattern, at);
    const opened = counted === null ? matchAt(OPEN, pattern, at) : null;
    const [text, least, most = ""] = counted ?? opened ?? matchAt(ATOM, pattern, at)!;
    at += text.length;
    if (counted !== null) {
      // Each of them may be left out, which is a step more.
      const copies = Math.max(1, Number(least), Number(most)) * (group.last + 1);
      group.size += copies - group.last;
      group.last = copies;
    } else if (opened !== null) groups.push({ size: 2, last: 0 });
    else if (text === ")" && groups.length > 1) {
      groups.pop();
      add(groups.at(-1)!, group.size);
    } else if (text === "*" || text === "+" || text === "?") {
      group.size++;
      group.last++;
    } else add(group, 1);
  }
  return groups.reduce((sum, { size }) => sum + size, 0);
}

function add(group: Group, size: number): void {
  group.size += size;
  group.last = size;
}

function matchAt(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(text);
}
