export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The middle of several rounds, and how far they were apart. */
export interface Spread {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) };
}

/** Below this, two figures of one run are called equal: like runs differ by as much. */
const EQUAL_BELOW = 1.2;

/** How many times the one is the other, for people. */
export function ratioText(ratio: number): string {
  if (!Number.isFinite(ratio)) return "–";
  if (Math.max(ratio, 1 / ratio) < EQUAL_BELOW) return "equal";
  return ratio >= 10 ? `${Math.round(ratio)}×` : `${ratio.toPrecision(2)}×`;
}
