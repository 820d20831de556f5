const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Queues that hold tasks for handlers that this worker does not know. It gives such a task back and leaves the queue
 * alone for a while, so that a worker that knows the handler can take it; longer each time, since every giving back is
 * written down.
 */
export class AvoidedQueues {
  readonly #avoided = new Map<string, { pauseMs: number; untilMs: number }>();

  avoid(queue: string, nowMs: number): void {
    const before = this.#avoided.get(queue);
    const pauseMs = before === undefined ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, before.pauseMs * 2);
    this.#avoided.set(queue, { pauseMs, untilMs: nowMs + pauseMs });
  }

  /** Something was there for us after all. */
  welcome(queue: string): void {
    if (this.#avoided.size > 0) this.#avoided.delete(queue);
  }

  /** Those that may be looked into now, and the time until there are more. */
  open(queues: readonly string[], nowMs: number): { readonly queues: readonly string[]; readonly moreInMs: number } {
    if (this.#avoided.size === 0) return { queues, moreInMs: Infinity };
    let moreInMs = Infinity;
    const open = queues.filter((queue) => {
      const leftMs = (this.#avoided.get(queue)?.untilMs ?? nowMs) - nowMs;
      if (leftMs > 0) moreInMs = Math.min(moreInMs, leftMs);
      return leftMs <= 0;
    });
    return { queues: open, moreInMs };
  }
}
