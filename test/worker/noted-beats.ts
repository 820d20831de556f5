import { appendFileSync } from "node:fs";
import type { Json } from "../../src/json/json.ts";
import type { Heartbeats } from "../../src/worker/heartbeat-thread.ts";

/** Writes down for whom it was called, a line for each beat. */
export function openHeartbeats(options: Json): Promise<Heartbeats> {
  const { file } = options as { readonly file: string };
  return Promise.resolve({
    heartbeat: (beats) => {
      appendFileSync(file, `${beats.map(({ token }) => token).join(" ")}\n`);
      return Promise.resolve({
        lost: beats.map(({ token }) => token).filter((token) => token.startsWith("lost")),
        cancelled: [],
      });
    },
  });
}
