/** Something that waits, and what becomes of it when it has waited too long. */
export interface Deadline {
  readonly untilMs: number;
  readonly late: () => void;
  /** Where it stands among the others. */
  place: number;
}

/** How late one may be told at most. */
const TICK_MS = 100;

/**
 * Many waits, each with an end, and one timer for all of them: nearly all are over long before, so that a timer for each
 * would only be made to be taken away again. Nothing ticks while nobody waits.
 */
export class Deadlines {
  /** Not a `Set`, whose old tables would keep alive all that ever waited: see `core/slot-map.ts`. */
  readonly #open: Deadline[] = [];
  readonly #nowMs: () => number;
  readonly #sleep: (ms: number) => Promise<void>;
  #isTicking = false;

  constructor(nowMs: () => number, sleep: (ms: number) => Promise<void>) {
    this.#nowMs = nowMs;
    this.#sleep = sleep;
  }

  add(ms: number, late: () => void): Deadline {
    const deadline = { untilMs: this.#nowMs() + ms, late, place: this.#open.length };
    this.#open.push(deadline);
    if (!this.#isTicking) void this.#tick();
    return deadline;
  }

  /** Answers whether it was still open. */
  delete(deadline: Deadline): boolean {
    const { place } = deadline;
    if (this.#open[place] !== deadline) return false;
    const last = this.#open.pop()!;
    if (last === deadline) return true;
    this.#open[place] = last;
    last.place = place;
    return true;
  }

  async #tick(): Promise<void> {
    this.#isTicking = true;
    while (this.#open.length > 0) {
      await this.#sleep(this.#pauseMs());
      const nowMs = this.#nowMs();
      for (const deadline of this.#open.filter(({ untilMs }) => untilMs <= nowMs)) {
        // One that is told may end others.
        if (this.delete(deadline)) deadline.late();
      }
    }
    this.#isTicking = false;
  }

  #pauseMs(): number {
    const nowMs = this.#nowMs();
    let pauseMs = TICK_MS;
    for (const { untilMs } of this.#open) pauseMs = Math.min(pauseMs, Math.max(1, untilMs - nowMs));
    return pauseMs;
  }
}
