import { CACHE_KIND } from "../core/cache/state.ts";
import { entityKind } from "../core/entity.ts";
import type { Header, Listed } from "../store/contract.ts";
import type { BatchBuilder } from "./batch.ts";
import type { Resident } from "./resident.ts";
import type { ShippingSettings } from "./settings.ts";

/** More than these are not held in memory: they are on the list in the store, and are read when there is room again. */
const MAX_HELD = 100_000;
/** When to ask again whether something may be removed that is not shipped, or of which we do not know. */
const ASK_AGAIN_MS = 60_000;
const ASK_SOON_MS = 1_000;

interface Entry {
  /** The last version that a batch of this tenure holds, committed or not; 0 if none does. */
  formed: number;
  /** The last that is committed, and when we heard of it. */
  committed: number;
  committedAtMs: number;
  /** Up to here it had come at `markedAtMs`; 0 if nothing is marked, Infinity if all of it is from before this tenure. */
  upTo: number;
  markedAtMs: number;
  /** Dead letters of it may have come or gone. */
  letters: boolean;
}

/** Something that is old enough to be shipped. */
export interface Ripe {
  readonly entity: string;
  readonly letters: boolean;
}

/**
 * What of one partition the archive does not have yet. Each entity with new records is put on a list of the store by the
 * commit that brings them, and taken off by a commit after they were shipped: so whoever owns the partition next knows.
 * Here is the same in memory, with what is needed to tell how old it is.
 */
export class Unshipped {
  readonly list: string;
  private readonly settings: ShippingSettings;
  private readonly entries = new Map<string, Entry>();
  /** Shipped to their end: to be taken off the list. */
  private readonly done = new Map<string, { readonly version: number; readonly header: Header | null }>();
  /** Of journals that are to be cut: where the last record that the archive has of them begins, 0 if nobody knows. */
  private readonly kept = new Map<string, number>();
  /** Whether all that is on the list is held here. */
  private complete = false;

  constructor(partition: number, settings: ShippingSettings) {
    this.list = `unshipped/${partition}`;
    this.settings = settings;
  }

  get size(): number {
    return this.entries.size;
  }

  /** Whether the list in the store has to be read, and there is room for it. */
  get mustRead(): boolean {
    return !this.complete && this.entries.size < MAX_HELD / 2;
  }

  /** What was on the list when this tenure, or this memory, began. */
  inherit(listed: readonly Listed[], nowMs: number): void {
    for (const { id } of listed) {
      const known = this.entries.get(id);
      // It goes on already, and its letters may be of an earlier tenure.
      if (known !== undefined) known.letters = true;
      if (known !== undefined) continue;
      const entry = { formed: 0, committed: 0, committedAtMs: 0, upTo: Infinity, markedAtMs: nowMs, letters: true };
      this.entries.set(id, entry);
    }
  }

  /** The list was read; to its end, unless there was no room for more. */
  wasRead(isWhole: boolean): void {
    this.complete = isWhole;
  }

  get hasRoom(): boolean {
    return this.entries.size < MAX_HELD;
  }

  /** A batch is formed: its records are on the list with the same commit. */
  form(builder: BatchBuilder, nowMs: number): void {
    for (const { entity, first, last } of builder.written()) {
      // What can be made again is not worth keeping, and begins at its first version whenever it comes back.
      if (entityKind(entity) === CACHE_KIND) continue;
      let entry = this.entries.get(entity);
      if (entry === undefined) {
        builder.listing({ list: this.list, id: entity, entity, atMs: nowMs, text: "{}" });
        if (!this.hasRoom) {
          this.complete = false;
          continue;
        }
        entry = { formed: 0, committed: 0, committedAtMs: 0, upTo: 0, markedAtMs: 0, letters: false };
        this.entries.set(entity, entry);
      }
      if (entry.upTo === Infinity) entry.upTo = first - 1;
      entry.formed = last;
      this.done.delete(entity);
    }
    for (const entity of builder.lettered()) {
      const entry = this.entries.get(entity);
      if (entry !== undefined) entry.letters = true;
    }
  }

  /** Takes off the list what was shipped to its end. What has ended is looked at again when it may be removed. */
  takeOff(builder: BatchBuilder, nowMs: number, limit: number, ended: (entity: string, untilMs: number) => void): void {
    let count = 0;
    for (const [entity, { version, header }] of this.done) {
      if (++count > limit) return;
      this.done.delete(entity);
      const entry = this.entries.get(entity);
      if (entry === undefined || entry.formed > version) continue;
      this.entries.delete(entity);
      builder.listing({ list: this.list, id: entity, entity, atMs: nowMs, text: null });
      if (header !== null && header.class !== "open") ended(entity, nowMs + this.settings.keepMs);
    }
  }

  committed(builder: BatchBuilder, nowMs: number): void {
    for (const { entity, last } of builder.written()) {
      const entry = this.entries.get(entity);
      if (entry === undefined) continue;
      entry.committed = last;
      entry.committedAtMs = nowMs;
      if (entry.upTo > 0) continue;
      entry.upTo = last;
      entry.markedAtMs = nowMs;
    }
  }

  /** A batch is given up: what the list holds is asked of the store again. */
  forget(): void {
    this.entries.clear();
    this.done.clear();
    this.kept.clear();
    this.complete = false;
  }

  /**
   * What can be shipped now. What goes on and on is shipped up to where it had come some time ago; anything else waits
   * until it is old enough as a whole, and goes in one piece.
   */
  ripe(nowMs: number): Ripe[] {
    const { windowMs, everyMs } = this.settings;
    const found: Ripe[] = [];
    for (const [entity, entry] of this.entries) {
      if (this.done.has(entity)) continue;
      const isWhole = entry.formed === 0 || nowMs - entry.committedAtMs >= windowMs;
      const isLate = entry.upTo > 0 && nowMs - entry.markedAtMs >= windowMs + 2 * everyMs;
      const isOld = entry.upTo === Infinity ? nowMs - entry.markedAtMs >= windowMs : entry.committed > 0 && isWhole;
      if (isOld || isLate) found.push({ entity, letters: entry.letters });
    }
    return found;
  }

  /** Up to which version an entity may be shipped at this moment; asked after its records were read. */
  bound(entity: string, nowMs: number): number {
    const entry = this.entries.get(entity);
    if (entry === undefined) return 0;
    const isWhole = entry.committed > 0 && nowMs - entry.committedAtMs >= this.settings.windowMs;
    return isWhole ? entry.committed : entry.upTo;
  }

  /** Up to here the journal of an entity is in the archive, but for its last record there, which the next is known by. */
  keptFrom(entity: string): number {
    const known = this.kept.get(entity);
    if (known === undefined) this.kept.set(entity, 0);
    return known ?? 0;
  }

  /** It is in the archive up to this version, which is in a record that begins at `lastRecord`. */
  shipped(entity: string, version: number, header: Header | null, lastRecord: number): void {
    if (this.kept.has(entity)) this.kept.set(entity, lastRecord);
    const entry = this.entries.get(entity);
    if (entry === undefined) return;
    if (entry.formed <= version) {
      this.done.set(entity, { version, header });
      return;
    }
    entry.upTo = entry.committed > version ? entry.committed : 0;
    entry.markedAtMs = entry.committedAtMs;
  }

  /** How many have something that the archive has not, when it has these up to the versions that are said. */
  behindAfter(shipped: readonly { readonly entity: string; readonly version: number }[]): number {
    const whole = shipped.filter(({ entity, version }) => {
      const entry = this.entries.get(entity);
      return entry !== undefined && entry.formed <= version && !this.done.has(entity);
    });
    return this.entries.size - this.done.size - whole.length;
  }

  get hasDone(): boolean {
    return this.done.size > 0;
  }

  /** When an entity may be removed, if it may: not before it is shipped, and for a while after that. */
  expiryOf(entity: Resident, plainMs: number | null, nowMs: number): number | null {
    const { machine, state, key, keepUntilMs } = entity;
    const idleMs = machine.idleSinceMs?.(state) ?? null;
    if (idleMs === null) return null;
    // What lives for ever would come back at its first version, and have to take the place of what is kept.
    if (machine.renewal !== undefined) return null;
    // One that was never triggered is not over: it stays as long as without an archive.
    const endMs = machine.isEnded(state) ? idleMs + this.settings.keepMs : plainMs;
    if (endMs === null) return null;
    // What has ended gets its time when it is taken off the list, whoever does that.
    if (this.entries.has(key)) return machine.isEnded(state) ? null : Math.max(endMs, nowMs + ASK_AGAIN_MS);
    if (!this.complete) return Math.max(endMs, nowMs + ASK_SOON_MS);
    return Math.max(endMs, keepUntilMs ?? -Infinity);
  }
}
