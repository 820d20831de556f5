import type { ExecutionState } from "./state.ts";

/** The name under which a unit is worked on: that of the unit, with the round if it repeats. */
export function instanceOf(state: ExecutionState, unit: number, round?: number): string {
  const name = state.nameOf(unit);
  if (state.planOf(unit).until === null) return name;
  return `${name}@${round ?? Math.max(1, state.runs[unit]?.round ?? 1)}`;
}

/** The unit and the round that such a name means. */
export function parseInstance(
  state: ExecutionState,
  instance: string,
): { readonly unit: number; readonly round: number } | undefined {
  const at = instance.lastIndexOf("@");
  const unit = state.unitOf(at < 0 ? instance : instance.slice(0, at));
  if (unit === undefined) return undefined;
  return { unit, round: at < 0 ? 0 : Number(instance.slice(at + 1)) };
}
