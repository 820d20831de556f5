import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import type { Recording } from "../replay/recording.ts";
import { redact } from "../replay/redact.ts";
import { connect, segment, type Server } from "../server.ts";
import type { Listed, ShownEvent, ShownExecution } from "../shapes.ts";
import { version } from "../version.ts";

/** One file of an execution: enough to run it again offline, without what looks like a credential. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const shown = await server.execution(id);
  if (shown.nodes === undefined) {
    throw new Failure(EXIT.invalid, `${id} has ${shown.nodes_omitted} nodes; at most 5,000 can be exported.`);
  }
  const recording: Recording = {
    millrace_export: 1,
    exported_at: new Date().toISOString(),
    release: version(),
    execution: (await whole(server, shown as unknown as Json)) as unknown as ShownExecution,
    definition: (await server.definition(id)) as unknown as JsonObject,
    events: (await whole(server, (await history(server, id)) as unknown as Json)) as unknown as readonly ShownEvent[],
  };
  const text = `${JSON.stringify(redact(recording as unknown as Json), null, 2)}\n`;
  const file = option(call, "output");
  if (file === undefined) call.terminal.out(text);
  else {
    try {
      writeFileSync(resolve(call.terminal.directory, file), text);
    } catch (error) {
      throw new Failure(EXIT.unreachable, `${JSON.stringify(file)} cannot be written: ${(error as Error).message}`);
    }
    const next =
      shown.finished_at === null
        ? "it is not over, so it cannot be replayed; export it again when it is"
        : `replay it: millrace test ${file}`;
    call.terminal.err(`wrote ${file}; ${next}\n`);
  }
  return EXIT.done;
};

async function history(server: Server, id: string): Promise<readonly ShownEvent[]> {
  const events: ShownEvent[] = [];
  for (let after: string | null = "0"; after !== null;) {
    const page: Listed<ShownEvent> = await server.get(`/v1/executions/${segment(id)}/events`, { after, limit: "500" });
    events.push(...page.items);
    after = page.next_cursor;
  }
  return events;
}

/** Large payloads are shown by name only; a file has to hold them. */
async function whole(server: Server, value: Json): Promise<Json> {
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (const item of value as readonly Json[]) items.push(await whole(server, item));
    return items;
  }
  if (!isJsonObject(value)) return value;
  const large = value["$large"];
  if (isJsonObject(large) && typeof large["href"] === "string") {
    const answer = await server.get<Json>(large["href"]);
    return /\/nodes\/[^/]+$/.test(large["href"]) && isJsonObject(answer) ? (answer["output"] ?? null) : answer;
  }
  const members: [string, Json][] = [];
  for (const [key, member] of Object.entries(value)) members.push([key, await whole(server, member)]);
  return Object.fromEntries(members);
}
