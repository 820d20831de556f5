import type { Machine, MachineEvent } from "./machine.ts";

/** As much of a journal's record as a fold needs. */
export interface FoldedRecord {
  /** Of its first event. */
  readonly version: number;
  readonly text: string;
}

/**
 * Applies a journal, or what is left of it, to a state. Where its beginning was cut off, or what a snapshot would go on with,
 * it begins at the event that holds everything.
 */
export function fold<State, Event extends MachineEvent>(
  machine: Machine<State, Event>,
  state: State,
  records: readonly FoldedRecord[],
): State {
  let isCut = false;
  for (const { version, text } of records) {
    const events = JSON.parse(text) as Event[];
    const next = machine.versionOf(state) + 1;
    isCut ||= version > next;
    const first = isCut
      ? events.findIndex((event) => machine.isRenewal?.(event) ?? false)
      : Math.max(0, next - version);
    if (first === -1) continue;
    isCut = false;
    for (let i = first; i < events.length; i++) machine.evolve(state, events[i]!);
  }
  if (isCut) throw new Error(`the events from ${machine.versionOf(state) + 1} on are missing`);
  return state;
}

/** The part of a whole journal that a fold needs. */
export function sinceRenewal<Record extends FoldedRecord>(
  machine: Machine,
  records: readonly Record[],
): readonly Record[] {
  if (machine.isRenewal === undefined) return records;
  const last = records.findLastIndex(({ text }) =>
    (JSON.parse(text) as MachineEvent[]).some((event) => machine.isRenewal?.(event)),
  );
  return records.slice(Math.max(0, last));
}
