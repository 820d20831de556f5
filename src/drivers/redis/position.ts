import type { Position } from "../../store/contract.ts";
import type { Handed } from "../../store/hand-over.ts";

const DRIVER = "redis";

/** What a read has taken: from the stream, and from the hands of workers in this process. */
interface Taken {
  /** The id behind which it was read: `0` where from the beginning. */
  readonly from: string;
  /** Of the connection, before it was read. */
  readonly age: number;
  readonly ids: readonly string[];
  readonly handed: readonly Handed[];
}

const NOTHING: Taken = { from: "0", age: 0, ids: [], handed: [] };

export function positionOf(taken: Taken): Position {
  return { driver: DRIVER, value: taken };
}

export function idsOf(position: Position): readonly string[] {
  return takenBefore(position).ids;
}

/** The id behind which these were read, `0` where from the beginning. */
export function startOf(position: Position): string {
  return takenBefore(position).from;
}

/** How old the connection was before they were read. */
export function ageOf(position: Position): number {
  return takenBefore(position).age;
}

/** The least id that could come behind them. A read gives what there is without a gap, and ids are given in order. */
export function endOf(position: Position): string {
  const last = takenBefore(position).ids.at(-1)!;
  const dash = last.indexOf("-");
  return `${last.slice(0, dash)}-${BigInt(last.slice(dash + 1)) + 1n}`;
}

export function handedOf(position: Position | null): readonly Handed[] {
  return takenBefore(position).handed;
}

/** Entries of a stream become visible in the order of their ids, so the last one names the place. */
export function nextFrom(after: Position | null): string {
  return takenBefore(after).ids.at(-1) ?? "0";
}

function takenBefore(after: Position | null): Taken {
  if (after === null) return NOTHING;
  if (after.driver !== DRIVER) throw new Error(`a position of ${after.driver}`);
  return after.value as Taken;
}
