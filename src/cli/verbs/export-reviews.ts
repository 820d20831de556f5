import { resolve } from "node:path";
import type { Json } from "../../json/json.ts";
import { type Call, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { fileLines, type Lines } from "../file-lines.ts";
import { countOption } from "../given-values.ts";
import { tellGap } from "../print.ts";
import { connect } from "../server.ts";
import type { Gap, Listed } from "../shapes.ts";

const PAGE = 500;

/** Page by page: nobody has to have them all in memory. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const most = countOption(call, "limit", 100_000, 100_000_000);
  const sink = linesTo(call, option(call, "output"));
  let count = 0;
  let gap: Gap = {};
  let cursor: string | undefined;
  do {
    const query = { workflow: option(call, "workflow"), limit: String(Math.min(PAGE, most - count)), cursor };
    const page = await server.get<Listed<Json>>("/v1/reviews/examples", query);
    for (const example of page.items) await sink.write(JSON.stringify(example));
    count += page.items.length;
    if (page.incomplete !== undefined) gap = { incomplete: page.incomplete };
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && count < most);
  await sink.end();
  call.terminal.err(`${count} ${count === 1 ? "example" : "examples"}\n`);
  tellGap(call, gap);
  return gap.incomplete === undefined ? EXIT.done : EXIT.unreachable;
};

/** Where lines go: a file, which is waited for, or stdout. */
function linesTo(call: Call, file: string | undefined): Lines {
  if (file !== undefined) return fileLines(resolve(call.terminal.directory, file));
  return { write: (line) => call.terminal.outInTurn(`${line}\n`), end: async () => undefined };
}
