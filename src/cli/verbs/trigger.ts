import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { jsonOption, labelsOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const input = await jsonOption(call, "input");
  const labels = labelsOption(call);
  const body = { ...(input !== undefined && { input_params: input }), ...(labels !== undefined && { labels }) };
  const answer = await server.post<{ readonly status: string }>(`/v1/workflow/trigger/${segment(id)}`, {
    body,
    key: option(call, "key"),
  });
  if (call.json) printJson(call, answer);
  else call.terminal.err(`${id} ${answer.status.toLowerCase()}; follow it: millrace watch ${id}\n`);
  return EXIT.done;
};
