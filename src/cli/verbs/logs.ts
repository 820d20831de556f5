import { setTimeout as sleep } from "node:timers/promises";
import { isOver } from "../../drawing/states.ts";
import type { JsonObject } from "../../json/json.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { durationOption } from "../given-values.ts";
import { harmless, oneLine } from "../print.ts";
import { connect, segment } from "../server.ts";
import type { Listed } from "../shapes.ts";

interface Line {
  readonly at: string;
  readonly node_id: string;
  readonly attempt: number;
  readonly level?: "error";
  readonly message: string;
  readonly fields?: JsonObject;
}

/** Handlers' lines are written about once a second. */
const LOOK_MS = 1_000;

const NOTHING = "nothing was logged; what handlers log in workers over HTTP is in the logs of those workers\n";

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const query = { node: option(call, "node"), attempt: option(call, "attempt") };
  const timeoutMs = durationOption(call, "timeout");
  const untilMs = performance.now() + (timeoutMs ?? Number.POSITIVE_INFINITY);
  const isFollowing = hasSwitch(call, "follow");
  const interrupts = isFollowing ? call.terminal.interrupts() : undefined;
  const seen = new Set<string>();
  let isKnown = query.node === undefined;
  for (;;) {
    // Asked before the lines: what was logged until the end is there then.
    const isLast = !isFollowing || isOver((await server.execution(id)).status);
    const { items } = await server.get<Listed<Line>>(`/v1/executions/${segment(id)}/logs`, query);
    // No lines of a node that is not there would look like one that has said nothing.
    if (!isKnown && items.length === 0) await server.get(`/v1/executions/${segment(id)}/nodes/${segment(query.node!)}`);
    isKnown = true;
    for (const line of items) {
      const key = JSON.stringify(line);
      if (seen.has(key)) continue;
      seen.add(key);
      print(call, line);
    }
    if (isLast && seen.size === 0) call.terminal.err(NOTHING);
    if (isLast) return EXIT.done;
    if (performance.now() >= untilMs) return EXIT.timeout;
    await sleep(Math.min(LOOK_MS, Math.max(0, untilMs - performance.now())), undefined, {
      ...(interrupts !== undefined && { signal: interrupts }),
    }).catch(() => undefined);
    if (interrupts?.aborted === true) return EXIT.interrupted;
  }
};

function print(call: Call, line: Line): void {
  if (call.json) call.terminal.out(`${JSON.stringify(line)}\n`);
  else {
    const { at, node_id: node, attempt, level, message, fields } = line;
    const more = fields === undefined ? "" : `  ${JSON.stringify(fields)}`;
    const place = `${at}  ${node}  attempt ${attempt}`;
    // A stack has lines of its own, which say nothing in one.
    if (level === undefined) call.terminal.out(`${oneLine(`${place}  ${message}${more}`)}\n`);
    else call.terminal.out(`${harmless(`${place}  ${level}  ${message.replaceAll("\n", "\n    ")}`)}\n`);
  }
}
