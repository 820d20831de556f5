import type { Journal } from "../store/contract.ts";
import type { Owner } from "./owner.ts";

/** Wakes that one look into the store brings. */
const MOST_AT_ONCE = 1000;

/** Whether an owner knows of too few of the wakes that the store has: those of less than half of the time it looks ahead. */
export function needsWakes(owner: Owner, horizonMs: number, nowMs = datesUpToMs(owner)): boolean {
  return owner.valid && (owner.horizon?.atMs ?? -Infinity) < nowMs + horizonMs / 2;
}

/** Files the wakes that the store has for the time that the owner looks ahead. */
export async function fillWakes(owner: Owner, journal: Journal, horizonMs: number): Promise<void> {
  const aheadMs = Math.max(0, owner.time.driftMs);
  // Of one moment: what comes up while the store answers is for the next turn.
  const nowMs = datesUpToMs(owner);
  while (needsWakes(owner, horizonMs, nowMs)) {
    const untilMs = nowMs + horizonMs;
    owner.readingMs = untilMs;
    const due = await journal.due(owner.partition, untilMs, MOST_AT_ONCE, owner.horizon ?? undefined);
    for (const { entity, atMs } of due) if (!owner.hasFiled(entity)) owner.wakes.file(entity, atMs - aheadMs);
    owner.horizon = due.length === MOST_AT_ONCE ? { ...due.at(-1)! } : { atMs: untilMs, entity: "\uffff" };
    owner.readingMs = -Infinity;
  }
}

/** What waits for a date is stored under that date: it may come before our own time gets there. */
function datesUpToMs({ time }: Owner): number {
  return time.nowMs() + Math.max(0, time.driftMs);
}
