import type { Host } from "../../host/host.ts";
import { Timeline } from "../../simulator/timeline.ts";

/** A machine whose clock stands still until nothing is left to do, and then jumps to whatever comes next. */
export function virtualHost(startMs: number): { readonly host: Host; readonly timeline: Timeline } {
  const timeline = new Timeline();
  let names = 0;
  const host: Host = {
    wallMs: () => startMs + timeline.now,
    monotonicMs: () => timeline.now,
    // No jitter: what has to be so late says so itself.
    random: () => 0,
    id: () => (++names).toString(16).padStart(16, "0"),
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted === true) return resolve();
        signal?.addEventListener("abort", () => resolve(), { once: true });
        timeline.after(ms, resolve);
      }),
  };
  return { host, timeline };
}
