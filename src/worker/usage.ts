/** What a call has used up, by unit: tokens, pages, money. The names are the handler's. */
export type Usage = Readonly<Record<string, number>>;

const MAX_UNITS = 32;
const MAX_NAME_CHARS = 64;

/** Sums what a handler reports. Nonsense is left out: a figure that cannot be counted must not cost the result. */
export class UsageMeter {
  readonly #sums = new Map<string, number>();

  add(usage: Usage): void {
    for (const [unit, amount] of Object.entries(usage ?? {})) {
      const sum = (this.#sums.get(unit) ?? 0) + amount;
      const isAmount = typeof amount === "number" && amount >= 0 && Number.isFinite(sum);
      const isUnit = this.#sums.has(unit) || (this.#sums.size < MAX_UNITS && isName(unit));
      if (isAmount && isUnit) this.#sums.set(unit, sum);
    }
  }

  /** undefined = nothing was reported. */
  total(): Usage | undefined {
    return this.#sums.size === 0 ? undefined : Object.fromEntries(this.#sums);
  }
}

function isName(unit: string): boolean {
  return unit.length <= MAX_NAME_CHARS && /^[A-Za-z][\w.-]*$/.test(unit);
}
