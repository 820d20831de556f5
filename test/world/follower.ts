import { setTimeout as sleep } from "node:timers/promises";
import { openStream } from "../support/event-stream.ts";
import type { Client } from "./client.ts";

const RETRY_MS = 25;

/**
 * Follows the events of one execution as a browser does: when the stream breaks, it goes on behind the last it has heard.
 * Answers the numbers and types of what it heard, in order.
 */
export async function follow(client: Client, execution: string): Promise<readonly string[]> {
  const heard: string[] = [];
  let last: string | undefined;
  for (;;) {
    const { url } = await client.listener();
    try {
      const headers: Record<string, string> = last === undefined ? {} : { "last-event-id": last };
      const stream = await openStream(`${url}/v1/executions/${execution}/events`, headers);
      if (stream.status === 204) return heard;
      for await (const { id, event } of stream.frames) {
        if (event === "end") return heard;
        heard.push(`${id} ${event}`);
        last = id;
      }
    } catch {
      // It died; the next one knows where we were.
    }
    await sleep(RETRY_MS);
  }
}
