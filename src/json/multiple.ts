/**
 * Whether one number is a whole number of times another, as both are written: 19.99 is a multiple of 0.01, though the
 * quotient of the two doubles is not a whole number.
 */
export function isMultiple(value: number, of: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(of)) return value % of === 0;
  const [a, b] = [decimal(value), decimal(of)];
  const power = Math.min(a.power, b.power);
  const scaled = ({ digits, power: own }: Decimal): bigint => digits * 10n ** BigInt(own - power);
  return scaled(a) % scaled(b) === 0n;
}

/** digits · 10^power */
interface Decimal {
  readonly digits: bigint;
  readonly power: number;
}

function decimal(value: number): Decimal {
  const [, whole, part = "", power] = /^(-?\d)(?:\.(\d+))?e([+-]\d+)$/.exec(value.toExponential())!;
  return { digits: BigInt(whole! + part), power: Number(power) - part.length };
}
