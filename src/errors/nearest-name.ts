/** A suggestion further away than this is a guess that sends people the wrong way. */
const MAX_DISTANCE = 2;
/** A typo in a longer name is not what this is for, and the cost grows with the square of the length. */
const MAX_LENGTH = 128;
/** Distances computed by one index. A definition with a million unknown names gets hints for the first thousands only. */
const WORK_LIMIT = 20_000_000;

/**
 * Finds the name somebody probably meant.
 *
 * Made for one document: it sorts the candidates by length once, when first asked, looks only at lengths that can be
 * near enough, remembers its answers, and stops answering when the document has used up the work limit.
 */
export class NearestName {
  readonly #candidates: Iterable<string>;
  readonly #known = new Map<string, string | undefined>();
  #byLength: Map<number, string[]> | undefined;
  #work = 0;

  constructor(candidates: Iterable<string>) {
    this.#candidates = candidates;
  }

  /** The nearest candidate at most two edits away (one for names of up to three letters), or undefined. */
  find(name: string): string | undefined {
    if (this.#known.has(name)) return this.#known.get(name);
    const found = this.#search(name);
    this.#known.set(name, found);
    return found;
  }

  #search(name: string): string | undefined {
    if (name.length === 0 || name.length > MAX_LENGTH || this.#work > WORK_LIMIT) return undefined;
    const byLength = (this.#byLength ??= groupByLength(this.#candidates));
    const lower = name.toLowerCase();
    let best: string | undefined;
    let bestDistance = (name.length <= 3 ? 1 : MAX_DISTANCE) + 1;
    for (const length of lengthsAround(name.length)) {
      if (Math.abs(length - name.length) >= bestDistance) continue;
      for (const candidate of byLength.get(length) ?? []) {
        if (candidate === name) continue;
        this.#work += 8;
        if (!mayBeNear(lower, candidate)) continue;
        this.#work += length * (2 * bestDistance + 1);
        const distance = editDistance(lower, candidate.toLowerCase(), bestDistance - 1);
        if (distance >= bestDistance) continue;
        best = candidate;
        bestDistance = distance;
        // Only upper and lower case differ: nothing can be nearer.
        if (distance === 0) return best;
      }
      if (this.#work > WORK_LIMIT) break;
    }
    return best;
  }
}

/** One question only. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  return new NearestName(candidates).find(name);
}

function groupByLength(candidates: Iterable<string>): Map<number, string[]> {
  const groups = new Map<number, string[]>();
  for (const candidate of candidates) {
    const group = groups.get(candidate.length);
    if (group === undefined) groups.set(candidate.length, [candidate]);
    else group.push(candidate);
  }
  return groups;
}

function lengthsAround(length: number): readonly number[] {
  return [length, length - 1, length + 1, length - 2, length + 2];
}

/** Two edits cannot change the beginning and the end at once by much: most names drop out here without a table. */
function mayBeNear(lower: string, candidate: string): boolean {
  const other = candidate.length;
  const first = candidate.charCodeAt(0) | 32;
  const last = candidate.charCodeAt(other - 1) | 32;
  return (
    first === (lower.charCodeAt(0) | 32) ||
    first === (lower.charCodeAt(1) | 32) ||
    last === (lower.charCodeAt(lower.length - 1) | 32) ||
    last === (lower.charCodeAt(lower.length - 2) | 32)
  );
}

/**
 * Damerau-Levenshtein distance (neighbours swapped count as one edit), or anything above `limit` once it must exceed it.
 */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row: number[] = [i];
    let rowBest = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a.charCodeAt(i - 1) === b.charCodeAt(j - 1);
      let distance = Math.min(last[j - 1]! + (same ? 0 : 1), last[j]! + 1, row[j - 1]! + 1);
      const swapped =
        i > 1 && j > 1 && a.charCodeAt(i - 1) === b.charCodeAt(j - 2) && a.charCodeAt(i - 2) === b.charCodeAt(j - 1);
      if (swapped) distance = Math.min(distance, beforeLast[j - 2]! + 1);
      row.push(distance);
      rowBest = Math.min(rowBest, distance);
    }
    if (rowBest > limit) return limit + 1;
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
