import { abortAfter } from "../abort-after.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { durationOption } from "../given-values.ts";
import { oneLine } from "../print.ts";
import { connect, segment } from "../server.ts";
import type { Listed, ShownEvent } from "../shapes.ts";

/** The history, one line for each event; with --follow also what comes, until the execution is over. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const after = option(call, "after") ?? "0";
  if (!/^\d{1,15}$/.test(after))
    throw new Failure(EXIT.usage, `--after must be the number of an event, not ${JSON.stringify(after)}.`);
  if (!hasSwitch(call, "follow")) {
    for (let cursor: string | null = after; cursor !== null;) {
      const page: Listed<ShownEvent> = await server.get(`/v1/executions/${segment(id)}/events`, {
        after: cursor,
        limit: "500",
      });
      for (const event of page.items) print(call, event);
      cursor = page.next_cursor;
    }
    return EXIT.done;
  }
  const leaving = new AbortController();
  const stopTimer = abortAfter(leaving, durationOption(call, "timeout"));
  call.terminal.interrupts().addEventListener("abort", () => leaving.abort("interrupted"), { once: true });
  for await (const event of server.events(id, Number(after), leaving.signal)) print(call, event);
  stopTimer();
  if (!leaving.signal.aborted) return EXIT.done;
  return leaving.signal.reason === "timeout" ? EXIT.timeout : EXIT.interrupted;
};

function print(call: Call, event: ShownEvent): void {
  if (call.json) call.terminal.out(`${JSON.stringify(event)}\n`);
  else {
    const { seq, at, type, node_id: node, attempt, data } = event;
    const place = [node ?? "", attempt === undefined ? "" : `attempt ${attempt}`]
      .filter((part) => part !== "")
      .join(" ");
    const told = JSON.stringify(data);
    call.terminal.out(
      oneLine(
        `${String(seq).padStart(4)}  ${at}  ${type.padEnd(18)} ${place}  ${told === "{}" ? "" : told}`,
      ).trimEnd() + "\n",
    );
  }
}
