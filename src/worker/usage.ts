/** What a call has used up, by unit: tokens, pages, money. The names are the handler's. */
export type Usage = Readonly<Record<string, number>>;

const MAX_UNITS = 32;
const MAX_NAME_CHARS = 64;

/** Sums what a handler reports. Nonsense is left out: a figure that cannot be counted must not cost the result. */
export class UsageMeter {
  /** Made for those that report something: few do, and there is one meter for each call. */
  #sums: Map<string, number> | undefined;

  add(usage: Usage): void {
    const sums = (this.#sums ??= new Map<string, number>());
    for (const [unit, amount] of Object.entries(usage ?? {})) {
      // Another kind of number cannot even be added.
      if (typeof amount !== "number") continue;
      const sum = (sums.get(unit) ?? 0) + amount;
      const isAmount = amount >= 0 && Number.isFinite(sum);
      const isUnit = sums.has(unit) || (sums.size < MAX_UNITS && isName(unit));
      if (isAmount && isUnit) sums.set(unit, sum);
    }
  }

  /** undefined = nothing was reported. */
  total(): Usage | undefined {
    return this.#sums === undefined || this.#sums.size === 0 ? undefined : Object.fromEntries(this.#sums);
  }
}

function isName(unit: string): boolean {
  return unit.length <= MAX_NAME_CHARS && /^[A-Za-z][\w.-]*$/.test(unit);
}
