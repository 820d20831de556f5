import type { BatchBuilder } from "./batch.ts";
import type { PartitionTime } from "./partition-time.ts";
import type { Entity, Haste, Resident } from "./resident.ts";
import type { Unshipped } from "./unshipped.ts";
import { expiryOf } from "./wake-bound.ts";
import type { WakeHeap } from "./wake-heap.ts";

/** Whether the parent of a child is gone is looked up after this, and then at least so often in the time that things are kept. */
const FIRST_LOOK_MS = 1_000;
const LOOKS_IN_RETENTION = 8;

const IN_TIME: Haste = "if kept long enough";

/** What of an owner's memory says who may go. */
interface Kept {
  readonly entities: { get(key: string): Entity | undefined };
  readonly wakes: WakeHeap;
  readonly time: PartitionTime;
  readonly unshipped: Unshipped | null;
}

/** The removal of what is over, for one owner: when its time has come, and with whom it goes. */
export class Retention {
  /** Children whose time has come and whose parent is gone: looked up for the batch that is being formed. */
  readonly deserted: Set<string> = new Set();
  /** What is to be removed now, if it is over, and need not wait until its own wake has it looked at. */
  readonly hurried: Map<string, Haste> = new Map();
  /** The time of the batch being formed. */
  batchMs = 0;

  private readonly kept: Kept;
  private readonly retentionMs: number | null;

  constructor(kept: Kept, retentionMs: number | null) {
    this.kept = kept;
    this.retentionMs = retentionMs;
  }

  hurry(keys: readonly string[], haste: Haste = "for room"): void {
    const { wakes, time } = this.kept;
    for (const key of keys) {
      this.hurried.set(key, haste);
      wakes.file(key, time.nowMs());
    }
  }

  /** Has what has been over for long enough removed by this batch, unless that has something to say of it. Answers whether it goes. */
  remove(builder: BatchBuilder, entity: Resident): boolean {
    const { key, machine, state } = entity;
    const haste = this.hurried.get(key);
    this.hurried.delete(key);
    if (!this.mayExpire(entity, this.batchMs, haste) || builder.hasEvents(key)) return false;
    if (!this.deserted.has(key) && this.callerOf(entity) !== null) {
      // A look that came early puts off nothing.
      if (this.mayExpire(entity, this.batchMs)) this.keepUntil(builder, key, this.batchMs + this.nextLookMs(entity));
      return false;
    }
    if (entity.withdrawing.length > 0 || machine.hasWork(state)) {
      // What was out at its end is called back with this batch, as after every load, and then nothing stands in the way.
      if (entity.withdrawing.length > 0) this.hurry([key], haste ?? IN_TIME);
      return false;
    }
    builder.purge.push(key);
    if (this.kept.unshipped === null) {
      // What is in an archive may come back, and go on.
      for (const message of machine.farewell?.(state) ?? []) builder.send(message);
      for (const child of machine.called?.(state) ?? []) builder.orphans.push({ key: child, haste: haste ?? IN_TIME });
    }
    for (const letter of machine.letters?.(state) ?? []) builder.discardLetter(letter);
    return true;
  }

  /** Children among these that would be removed now, each with its parent: that has to be looked up first. */
  expiringChildren(keys: readonly string[]): ReadonlyMap<string, string> {
    const { entities, time } = this.kept;
    const nowMs = time.nowMs();
    const children = new Map<string, string>();
    for (const key of keys) {
      const entity = entities.get(key);
      if (entity?.kind !== "resident") continue;
      const caller = this.callerOf(entity);
      if (caller === null || !this.mayExpire(entity, nowMs, this.hurried.get(key))) continue;
      children.set(key, caller);
    }
    return children;
  }

  /** When this time has come, it may be removed here: it is in the archive, or its parent may be gone. */
  keepUntil(builder: BatchBuilder, key: string, untilMs: number): void {
    const entity = this.kept.entities.get(key);
    if (entity?.kind === "quarantine") return;
    if (entity !== undefined) {
      entity.keepUntilMs = untilMs;
      entity.storedWakeMs = untilMs;
    }
    builder.wakeByName(key, untilMs);
  }

  /** When an entity may be removed, as far as is known now; null if it may not. */
  expiryOf(entity: Resident): number | null {
    const { unshipped } = this.kept;
    const plainMs = expiryOf(entity, this.retentionMs);
    if (entity.machine.expiresAtMs !== undefined) return plainMs;
    if (unshipped !== null) return unshipped.expiryOf(entity, plainMs, this.batchMs);
    if (plainMs === null || entity.keepUntilMs === null || this.callerOf(entity) === null) return plainMs;
    // What was stored by an owner that keeps things for longer binds nobody.
    return Math.max(plainMs, Math.min(entity.keepUntilMs, this.batchMs + this.retentionMs!));
  }

  /** Whether it may be removed then, as far as its age says. */
  private mayExpire(entity: Resident, atMs: number, haste?: Haste): boolean {
    const expiresMs = this.expiryOf(entity);
    if (expiresMs === null) return false;
    if (expiresMs <= atMs || haste === "for room") return true;
    // It waits only until its parent is looked for again.
    if (haste === undefined || this.kept.unshipped !== null) return false;
    return (expiryOf(entity, this.retentionMs) ?? Infinity) <= atMs;
  }

  /** Who has called it, and may want it again: what is in an archive comes back, and need not stay here for that. */
  private callerOf({ machine, state }: Resident): string | null {
    return this.kept.unshipped === null ? (machine.callerOf?.(state) ?? null) : null;
  }

  /** In how long to look again whether the parent of a child is gone: soon at first, as most go together, then ever later. */
  private nextLookMs(entity: Resident): number {
    const heldMs = (entity.keepUntilMs ?? 0) - (expiryOf(entity, this.retentionMs) ?? 0);
    return Math.ceil(Math.min(Math.max(heldMs, FIRST_LOOK_MS), this.retentionMs! / LOOKS_IN_RETENTION));
  }
}
