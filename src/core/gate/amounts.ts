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

/** What a reservation comes to. Of what never went out nothing is known, and nothing was used. */
export function settled(reserved: Amounts, used: Amounts | undefined): Amounts {
  return used === undefined ? {} : { ...reserved, ...used };
}
