import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { countOption } from "../given-values.ts";
import { printJson, printTable } from "../print.ts";
import { connect } from "../server.ts";

interface Review {
  readonly id: string;
  readonly workflow: string;
  readonly execution_id: string;
  readonly node_id: string;
  readonly title: string | null;
  readonly opened_at: string | null;
  readonly due_at: string | null;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const page = await server.list<Review>(
    "/v1/reviews",
    { assignee: option(call, "assignee") },
    countOption(call, "limit", 50, 100_000),
  );
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) call.terminal.err("nothing waits for a person\n");
  else {
    const rows = page.items.map((one) => [
      one.id,
      one.workflow,
      one.title ?? one.node_id,
      one.opened_at ?? "",
      one.due_at ?? "",
    ]);
    printTable(call, ["REVIEW", "WORKFLOW", "TITLE", "SINCE", "DUE"], rows);
  }
  return EXIT.done;
};
