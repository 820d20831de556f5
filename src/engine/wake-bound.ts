import type { Resident } from "./resident.ts";

/**
 * When the store is to have an entity looked at, as a lower bound: whoever takes over then looks too early at worst, finds
 * nothing, and files it anew. null if nobody need look.
 *
 * @param expiresMs when it may be removed, if it may
 */
export function wakeBound(
  entity: Resident,
  nowMs: number,
  volatileTasks: boolean,
  expiresMs: number | null = null,
): number | null {
  const { machine, state } = entity;
  if (machine.hasWork(state)) return nowMs;
  if (machine.isEnded(state) && entity.withdrawing.length > 0) return nowMs;
  if (machine.isEnded(state) || expiresMs !== null) return expiresMs;
  if (volatileTasks && machine.liveCount(state) > 0) return nowMs;
  return earlier(machine.nextWakeMs(state), machine.nextCalendarMs?.(state) ?? null);
}

/** When an entity has been of no use for long enough to be removed. */
export function expiryOf({ machine, state }: Resident, retentionMs: number | null): number | null {
  if (machine.expiresAtMs !== undefined) return machine.expiresAtMs(state);
  const sinceMs = retentionMs === null ? null : (machine.idleSinceMs?.(state) ?? null);
  return sinceMs === null ? null : sinceMs + retentionMs!;
}

/**
 * When to look at an entity in memory, in partition time: a date comes when the calendar says so, however far that is
 * ahead of our time or behind it.
 */
export function wakeTime({ machine, state }: Resident, nowMs: number, calendarMs: number): number | null {
  const date = machine.nextCalendarMs?.(state) ?? null;
  return earlier(machine.nextWakeMs(state), date === null ? null : nowMs + Math.max(0, date - calendarMs));
}

function earlier(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

/**
 * The bound is written when it becomes earlier, not when it becomes later.
 *
 * @param readMs up to where the store's wakes have been read: there nobody meets them again
 */
export function mustStoreWake(entity: Resident, wakeMs: number | null, horizonMs: number, readMs: number): boolean {
  const stored = entity.storedWakeMs;
  // When it may be removed is worth nothing while it is in use; but to take that back each time would cost more than to look.
  const isForEver = entity.machine.renewal !== undefined;
  if (wakeMs === null && isForEver && stored !== null && stored > readMs) return false;
  if (wakeMs === null || stored === null) return wakeMs !== stored;
  if (wakeMs < stored) return true;
  // What now waits for long is moved back, or a take-over would load everything that ever ran.
  const idle = entity.machine.liveCount(entity.state) === 0 && !entity.machine.hasWork(entity.state);
  return idle && wakeMs > stored + horizonMs;
}
