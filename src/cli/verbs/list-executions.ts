import { shownDuration, shownState } from "../../drawing/states.ts";
import { type Call, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { countOption, labelsOption, momentOption, statusOption } from "../given-values.ts";
import { printJson, printTable, tellGap } from "../print.ts";
import { connect } from "../server.ts";
import type { Listed } from "../shapes.ts";

/** As many as the server lists in all. */
const MAX_LISTED = 100_000;

interface Item {
  readonly execution_id: string;
  readonly workflow: string;
  readonly status: string;
  readonly batch_status?: string;
  readonly created_at: string;
  readonly finished_at: string | null;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const limit = countOption(call, "limit", 50, MAX_LISTED);
  const labels = Object.entries(labelsOption(call) ?? {}).map(([name, value]) => `${name}=${value}`);
  const query = {
    status: statusOption(call),
    workflow: option(call, "workflow"),
    since: momentOption(call, "since"),
    label: labels.length === 0 ? undefined : labels.join(","),
  };
  const page = await searched(call, (most) => server.list<Item>("/v1/executions", query, most), limit);
  if (call.json) printJson(call, page);
  else {
    const rows = page.items.map((item) => {
      const { symbol, word } = shownState(item.batch_status ?? item.status);
      const took =
        item.finished_at === null ? "" : shownDuration(Date.parse(item.finished_at) - Date.parse(item.created_at));
      return [item.execution_id, `${symbol} ${word}`, item.workflow, item.created_at, took];
    });
    printTable(call, ["EXECUTION", "STATUS", "WORKFLOW", "CREATED", "TOOK"], rows);
    if (page.next_cursor !== null) call.terminal.err(`there are more: --limit ${Math.min(limit * 2, MAX_LISTED)}\n`);
  }
  tellGap(call, page);
  return EXIT.done;
};

/** The server finds by state, workflow and time; a word is looked for in what that has found. */
async function searched(
  call: Call,
  list: (limit: number) => Promise<Listed<Item>>,
  limit: number,
): Promise<Listed<Item>> {
  const text = option(call, "search")?.toLowerCase();
  if (text === undefined) return list(limit);
  const { items, next_cursor, ...gap } = await list(MAX_SEARCHED);
  const found = items.filter((item) => `${item.execution_id} ${item.workflow}`.toLowerCase().includes(text));
  if (next_cursor !== null) call.terminal.err(`only the newest ${MAX_SEARCHED} were looked at\n`);
  return { items: found.slice(0, limit), next_cursor: null, ...gap };
}

const MAX_SEARCHED = 20_000;
