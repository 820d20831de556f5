import type { MachineEvent } from "../core/machine.ts";
import type { JournalRecord } from "../store/contract.ts";

/** Somebody who reads the same journals again and again, and parses only what is new. */
export class Reading {
  /** By execution, what was read of it last. */
  private readonly known = new Map<string, { count: number; lastText: string; events: readonly MachineEvent[] }>();

  /** The events of the records; if the store has gone back and tells another story, that one. */
  read(execution: string, records: readonly JournalRecord[]): readonly MachineEvent[] {
    let known = this.known.get(execution);
    if (known === undefined || records[known.count - 1]?.text !== known.lastText)
      known = { count: 0, lastText: "", events: [] };
    if (known.count === records.length) return known.events;
    const events = known.events.concat(
      ...records.slice(known.count).map(({ text }) => JSON.parse(text) as MachineEvent[]),
    );
    this.known.set(execution, { count: records.length, lastText: records.at(-1)?.text ?? "", events });
    return events;
  }
}
