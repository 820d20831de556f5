/** Something that waits, and what becomes of it when it has waited too long. */
export interface Deadline {
  readonly untilMs: number;
  readonly late: () => void;
}

/** How late one may be told at most. */
const TICK_MS = 100;

/**
 * Many waits, each with an end, and one timer for all of them: nearly all are over long before, so that a timer for each
 * would only be made to be taken away again. Nothing ticks while nobody waits.
 */
export class Deadlines {
  readonly #open = new Set<Deadline>();
  readonly #nowMs: () => number;
  readonly #sleep: (ms: number) => Promise<void>;
  #isTicking = false;

  constructor(nowMs: () => number, sleep: (ms: number) => Promise<void>) {
    this.#nowMs = nowMs;
    this.#sleep = sleep;
  }

  add(ms: number, late: () => void): Deadline {
    const deadline = { untilMs: this.#nowMs() + ms, late };
    this.#open.add(deadline);
    if (!this.#isTicking) void this.#tick();
    return deadline;
  }

  delete(deadline: Deadline): void {
    this.#open.delete(deadline);
  }

  async #tick(): Promise<void> {
    this.#isTicking = true;
    while (this.#open.size > 0) {
      await this.#sleep(this.#pauseMs());
      const nowMs = this.#nowMs();
      for (const deadline of this.#open) {
        if (deadline.untilMs > nowMs) continue;
        this.#open.delete(deadline);
        deadline.late();
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
