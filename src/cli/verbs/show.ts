import type { Workflow } from "../../definition/workflow.ts";
import { isQuiet, partsOf } from "../../drawing/fold-parts.ts";
import { namesOf } from "../../drawing/node-names.ts";
import { shownDuration, shownState } from "../../drawing/states.ts";
import type { Json } from "../../json/json.ts";
import { type Call, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { failureText } from "../failure-text.ts";
import { printJson, printTable } from "../print.ts";
import { connect, segment } from "../server.ts";
import type { ShownExecution } from "../shapes.ts";

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const node = option(call, "node");
  if (node !== undefined) {
    printJson(call, await server.get<Json>(`/v1/executions/${segment(id)}/nodes/${segment(node)}`));
    return EXIT.done;
  }
  const execution = await server.execution(id);
  if (call.json) printJson(call, execution);
  else if (execution.nodes === undefined) showExecution(call, execution);
  else showExecution(call, execution, await server.definition(id));
  return EXIT.done;
};

function showExecution(call: Call, execution: ShownExecution, definition?: Workflow): void {
  const parts = definition === undefined ? new Map<string, string>() : partsOf(definition);
  const names = definition === undefined ? new Map<string, string>() : namesOf(definition);
  const out = (text: string): void => call.terminal.out(text);
  const { execution_id: id, workflow, version, status, generation, created_at, started_at, finished_at } = execution;
  const { symbol, word } = shownState(execution.batch_status ?? status);
  const took =
    started_at === null || finished_at === null
      ? ""
      : ` in ${shownDuration(Date.parse(finished_at) - Date.parse(started_at))}`;
  out(`${workflow}${version === null ? "" : ` v${version}`}   ${id}\n`);
  out(`${symbol} ${word}${took}   created ${created_at}${generation > 1 ? `   generation ${generation}` : ""}\n\n`);
  const written = Object.entries(execution.nodes ?? {}).filter(
    ([name, { status: one }]) => !parts.has(name) || !isQuiet(one),
  );
  const rows = written.map(([name, node]) => {
    const shown = shownState(node.status);
    const ms =
      node.started_at === null || node.finished_at === null
        ? ""
        : shownDuration(Date.parse(node.finished_at) - Date.parse(node.started_at));
    const notes = [
      names.get(name) ?? "",
      node.items === undefined ? "" : `${node.items.completed}/${node.items.total} items`,
      node.reason ?? "",
      node.error === null ? "" : `${node.error.code}: ${node.error.message}`,
    ];
    return [
      name,
      `${shown.symbol} ${shown.word}`,
      String(node.attempt),
      ms,
      notes.filter((note) => note !== "").join(" · "),
    ];
  });
  if (execution.nodes_omitted !== undefined) out(`${execution.nodes_omitted} nodes, too many to list here\n`);
  else printTable(call, ["NODE", "STATUS", "ATTEMPT", "TOOK", ""], rows);
  if (status === "COMPLETED" || status === "PARTIAL") out(`\noutput ${JSON.stringify(execution.output)}\n`);
  if (status === "FAILED" || status === "PARTIAL") out(`\n${failureText(execution, true)}`);
}
