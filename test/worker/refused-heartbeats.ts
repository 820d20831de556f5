import type { Heartbeats } from "../../src/worker/heartbeat-thread.ts";

/** Never connects: the store has no room for another connection. */
export function openHeartbeats(): Promise<Heartbeats> {
  return Promise.reject(new Error("sorry, too many clients already"));
}
