/** What a call uses up, or may: LLM tokens, money, calls, time. What is not said is none. */
export interface Amounts {
  readonly tokens?: number;
  readonly usd?: number;
  readonly calls?: number;
  readonly seconds?: number;
}

export type AmountUnit = keyof Amounts;

export const AMOUNT_UNITS: readonly AmountUnit[] = ["tokens", "usd", "calls", "seconds"];

/** What one ask has used, for the settling of what was reserved for it. */
export interface Used {
  readonly ask: number;
  /** Of a unit that it does not name as much as was reserved. */
  readonly used: Amounts;
}

/** Both together, or the one without the other. */
export function added(one: Amounts, other: Amounts, sign: 1 | -1 = 1): Amounts {
  const sum: { [Unit in AmountUnit]?: number } = { ...one };
  for (const unit of AMOUNT_UNITS) {
    if (other[unit] !== undefined) sum[unit] = (sum[unit] ?? 0) + sign * other[unit];
  }
  return sum;
}

/**
 * What a reservation comes to. Of what never went out nothing was used; and of what nothing was reserved for, nothing is
 * counted.
 */
export function settled(reserved: Amounts, used: Amounts | undefined): Amounts {
  if (used === undefined) return {};
  const units = AMOUNT_UNITS.filter((unit) => reserved[unit] !== undefined);
  return Object.fromEntries(units.map((unit) => [unit, used[unit] ?? reserved[unit]!]));
}
