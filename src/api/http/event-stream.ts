import { seqOf } from "../service/histories.ts";
import type { Call, EventSink, Reply } from "./route.ts";

export function wantsEvents(call: Call): boolean {
  const accepted = (call.header("accept") ?? "").toLowerCase().split(",");
  return accepted.some(
    (range) => /^\s*text\/event-stream\s*(;|$)/.test(range) && !/;\s*q=0(\.0*)?\s*(;|$)/.test(range),
  );
}

/** What happens to an execution, as server-sent events: from the beginning, or from where the client was. */
export async function followEvents(call: Call, after: number): Promise<Reply> {
  const { service, params } = call;
  const id = params["id"]!;
  const last = call.header("last-event-id") || undefined;
  const asked = last === undefined ? after : seqOf(last, "Last-Event-ID");
  // A client that has seen the end, and comes again, is told that there is no more: it stops coming.
  if (last !== undefined && (await service.histories.isOver(id, asked))) return { status: 204 };
  // An unknown execution is an answer, not a stream. And a store may have lost what somebody has seen of it.
  const from = Math.min(asked, await service.histories.version(id));
  return { status: 200, stream: (out) => send(call, id, from, out) };
}

async function send(call: Call, id: string, from: number, out: EventSink): Promise<void> {
  let seq = from;
  for await (const { events, isBacklog, isEnd } of call.service.histories.follow(id, from, out.closed)) {
    for (const event of events) {
      ({ seq } = event);
      const frame = `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
      if (!(await out.send(frame, isBacklog))) return;
    }
    if (isEnd) {
      await out.send(`id: ${seq}\nevent: end\ndata: ${JSON.stringify({ seq })}\n\n`, true);
      return;
    }
  }
}
