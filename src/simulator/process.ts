import type { Host } from "../host/host.ts";
import type { Random } from "./random.ts";
import type { Actor, Timeline } from "./timeline.ts";

/**
 * A process of the simulated world. It can be killed, stopped like by SIGSTOP, or put to sleep with its whole machine;
 * its clocks are its own.
 */
export class SimProcess implements Actor {
  readonly name: string;
  alive = true;
  pausedUntil = 0;
  /** Where its wall clock stands, beside the true time. */
  wallOffsetMs = 0;
  /** How long its machine has slept: monotonic time does not pass meanwhile. */
  sleptMs = 0;
  private asleepUntil = 0;
  readonly host: Host;
  private readonly timeline: Timeline;

  constructor(name: string, timeline: Timeline, random: Random) {
    this.name = name;
    this.timeline = timeline;
    this.host = {
      wallMs: () => timeline.now + this.wallOffsetMs,
      monotonicMs: () => timeline.now - this.sleptMs,
      random: () => random.next(),
      id: () => random.hex(16),
      sleep: (ms, signal) => this.sleep(ms, signal),
    };
  }

  kill(): void {
    this.alive = false;
  }

  /** It stands still for a while, and does not know it. */
  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.timeline.now + ms);
  }

  /** As `pause`, with the whole machine: not even its monotonic clock goes on. */
  putToSleep(ms: number): void {
    const { now } = this.timeline;
    const from = Math.max(now, this.asleepUntil);
    const until = now + ms;
    if (until <= from) return;
    this.asleepUntil = until;
    this.pause(ms);
    // At once, not when it wakes: nobody in it looks at a clock before then, and then it must be right.
    this.sleptMs += until - from;
  }

  private sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (signal === undefined) return this.timeline.after(ms, resolve, this);
      if (signal.aborted) return resolve();
      const wake = (): void => {
        // A signal outlives many a sleep, and looks through all its listeners for each new one.
        signal.removeEventListener("abort", wake);
        if (this.alive) resolve();
      };
      signal.addEventListener("abort", wake);
      this.timeline.after(ms, wake, this);
    });
  }
}
