import { appendFileSync } from "node:fs";
import type { Json } from "../../src/json/json.ts";
import type { Heartbeats } from "../../src/worker/heartbeat-thread.ts";

/** Writes down of whom it was told that they have begun. */
export function openHeartbeats(options: Json): Promise<Heartbeats> {
  const { file } = options as { readonly file: string };
  return Promise.resolve({
    heartbeat: (beats) => {
      for (const { token, started } of beats) if (started !== undefined) appendFileSync(file, `${token}\n`);
      return Promise.resolve({ lost: [], cancelled: [] });
    },
  });
}
