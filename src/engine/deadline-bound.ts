/** More messages than an inbox takes before it refuses starts, twice over: this is load, not a backlog. */
const MAX_BACKLOG = 20_000;

/** What one read tells of the inbox. */
export interface ReadNote {
  readonly count: number;
  /** Nothing was left unread behind it. */
  readonly isDrained: boolean;
  /** The newest batch that was known to be committed when the read was sent: its mail was there to be read. */
  readonly committedBatch: number;
}

/**
 * Up to when deadlines may fire: the moment at which nothing was left unread, for a result that was posted in time
 * counts. What was parked for an entity was posted in time too, and is back in the inbox only with the commit of its
 * release; so that entity waits until a read sent after this commit has come to the end. A new owner need not know of
 * it: it fires nothing before it has seen the end itself, and finds the mail on the way there.
 *
 * If there is always something left, deadlines must not wait for ever.
 */
export class DeadlineBound {
  /** Whether the last read has brought whatever was there, or there is so much that nobody can wait for all of it. */
  hasReadAll = false;
  private taken = 0;
  private takenWhenDrained = 0;
  private drainedAtMs = -Infinity;
  /** Entities that were released: by which batch, and how many messages had been read when it was committed. */
  private readonly held = new Map<string, { readonly batch: number; taken: number }>();

  noteRead({ count, isDrained, committedBatch }: ReadNote, nowMs: number): void {
    this.taken += count;
    if (isDrained) this.takenWhenDrained = this.taken;
    this.hasReadAll = isDrained || this.taken - this.takenWhenDrained > MAX_BACKLOG;
    if (this.hasReadAll) this.drainedAtMs = nowMs;
    for (const [key, hold] of this.held) {
      if (hold.batch > committedBatch) hold.taken = this.taken;
      else if (isDrained || this.taken - hold.taken > MAX_BACKLOG) this.held.delete(key);
    }
  }

  /** This batch releases the entity, and sends it what was parked. */
  hold(key: string, batch: number): void {
    this.held.set(key, { batch, taken: this.taken });
  }

  /** Deadlines of this entity up to here may fire. */
  upToMs(key: string, nowMs: number): number {
    return this.held.size > 0 && this.held.has(key) ? -Infinity : Math.min(nowMs, this.drainedAtMs);
  }
}
