/** Names compared for a hint. A hint is a courtesy: it must not cost more than the failure it explains. */
const MAX_NAMES = 500;
const MAX_NAME_LENGTH = 64;

/** The name that `wanted` was probably meant to be, or undefined if none is close. */
export function nearestName(wanted: string, names: readonly string[]): string | undefined {
  if (wanted.length > MAX_NAME_LENGTH) return undefined;
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const name of names.slice(0, MAX_NAMES)) {
    if (name.length > MAX_NAME_LENGTH) continue;
    const distance = editDistance(wanted.toLowerCase(), name.toLowerCase());
    if (distance < bestDistance && distance < name.length) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replace = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replace, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
