/**
 * The tokens of JSON text, by offset. Every function takes the offset of a token's first character and gives the offset
 * behind its last one, or `~offset` (always negative) of the character that must not be there.
 */

const QUOTE = 34;
const BACKSLASH = 92;
const MINUS = 45;

export function skipSpace(text: string, from: number): number {
  let i = from;
  for (;;) {
    const c = text.charCodeAt(i);
    if (c === 32 || c === 10 || c === 13 || c === 9) i++;
    else return i;
  }
}

export function stringEnd(text: string, from: number): number {
  let i = from + 1;
  for (;;) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) return i + 1;
    if (c === BACKSLASH) {
      const escaped = escapeEnd(text, i);
      if (escaped < 0) return escaped;
      i = escaped;
    } else if (c >= 32) i++;
    // A control character, or NaN: the end of the text.
    else return ~i;
  }
}

function escapeEnd(text: string, from: number): number {
  const c = text.charCodeAt(from + 1);
  if (c === 117) {
    for (let k = 2; k < 6; k++) if (!isHexDigit(text.charCodeAt(from + k))) return ~(from + k);
    return from + 6;
  }
  // " \ / b f n r t
  const simple =
    c === QUOTE || c === BACKSLASH || c === 47 || c === 98 || c === 102 || c === 110 || c === 114 || c === 116;
  return simple ? from + 2 : ~(from + 1);
}

function isHexDigit(c: number): boolean {
  return isDigit(c) || (c >= 65 && c <= 70) || (c >= 97 && c <= 102);
}

function isDigit(c: number): boolean {
  return c >= 48 && c <= 57;
}

export function startsNumber(c: number): boolean {
  return c === MINUS || isDigit(c);
}

export function numberEnd(text: string, from: number): number {
  let i = text.charCodeAt(from) === MINUS ? from + 1 : from;
  if (text.charCodeAt(i) === 48) i++;
  else {
    const whole = digitsEnd(text, i);
    if (whole < 0) return whole;
    i = whole;
  }
  if (text.charCodeAt(i) === 46) {
    const fraction = digitsEnd(text, i + 1);
    if (fraction < 0) return fraction;
    i = fraction;
  }
  const c = text.charCodeAt(i);
  if (c !== 101 && c !== 69) return i;
  const sign = text.charCodeAt(i + 1);
  return digitsEnd(text, sign === 43 || sign === MINUS ? i + 2 : i + 1);
}

function digitsEnd(text: string, from: number): number {
  let i = from;
  while (isDigit(text.charCodeAt(i))) i++;
  return i === from ? ~i : i;
}

export function literalEnd(text: string, from: number): number {
  if (text.startsWith("true", from) || text.startsWith("null", from)) return from + 4;
  if (text.startsWith("false", from)) return from + 5;
  return ~from;
}

/** The end of any value in text that is known to be valid JSON. */
export function valueEnd(text: string, from: number): number {
  let depth = 0;
  let i = from;
  for (;;) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) i = stringEnd(text, i);
    else if (c === 123 || c === 91) {
      depth++;
      i++;
      continue;
    } else if (c === 125 || c === 93) {
      depth--;
      i++;
    } else if (depth > 0) {
      i++;
      continue;
    } else i = startsNumber(c) ? numberEnd(text, i) : literalEnd(text, i);
    if (depth === 0) return i;
  }
}
