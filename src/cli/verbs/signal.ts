import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { jsonOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";

export const verb: Verb = async (call) => {
  const [execution, name] = call.args as [string, string];
  const server = await connect(call);
  const id = await server.idOf(execution);
  const data = await jsonOption(call, "data");
  const body = { name, ...(data !== undefined && { data }) };
  const answer = await server.post<{ readonly status: string }>(`/v1/executions/${segment(id)}/signal`, { body });
  if (call.json) printJson(call, answer);
  else call.terminal.out(`${id} ${answer.status.toLowerCase()}\n`);
  return EXIT.done;
};
