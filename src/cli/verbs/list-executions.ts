import { shownDuration, shownState } from "../../drawing/states.ts";
import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { countOption, momentOption, statusOption } from "../given-values.ts";
import { printJson, printTable } from "../print.ts";
import { connect } from "../server.ts";

interface Item {
  readonly execution_id: string;
  readonly workflow: string;
  readonly status: string;
  readonly created_at: string;
  readonly finished_at: string | null;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const limit = countOption(call, "limit", 50, 100_000);
  const query = { status: statusOption(call), workflow: option(call, "workflow"), since: momentOption(call, "since") };
  const page = await server.list<Item>("/v1/executions", query, limit);
  if (call.json) printJson(call, page);
  else {
    const rows = page.items.map((item) => {
      const { symbol, word } = shownState(item.status);
      const took =
        item.finished_at === null ? "" : shownDuration(Date.parse(item.finished_at) - Date.parse(item.created_at));
      return [item.execution_id, `${symbol} ${word}`, item.workflow, item.created_at, took];
    });
    printTable(call, ["EXECUTION", "STATUS", "WORKFLOW", "CREATED", "TOOK"], rows);
    if (page.next_cursor !== null) call.terminal.err(`there are more: --limit ${limit * 2}\n`);
  }
  return EXIT.done;
};
