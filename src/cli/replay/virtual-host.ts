import type { Host } from "../../host/host.ts";
import { Timeline } from "../../simulator/timeline.ts";

/** A machine whose clock stands still until nothing is left to do, and then jumps to whatever comes next. */
export class VirtualHost implements Host {
  readonly timeline = new Timeline();
  readonly #startMs: number;
  /** While it boots nobody sleeps long: what is slow to look again later would be slow to begin. */
  isBooting = true;
  #names = 0;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  wallMs(): number {
    return this.#startMs + this.timeline.now;
  }

  monotonicMs(): number {
    return this.timeline.now;
  }

  /** No jitter: what has to be so late says so itself. */
  random(): number {
    return 0;
  }

  id(): string {
    return (++this.#names).toString(16).padStart(16, "0");
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      signal?.addEventListener("abort", () => resolve(), { once: true });
      this.timeline.after(this.isBooting ? Math.min(ms, 1) : ms, resolve);
    });
  }
}
