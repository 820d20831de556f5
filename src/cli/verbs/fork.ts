import { counted } from "../../errors/counted.ts";
import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { jsonOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";

interface Forked {
  readonly execution_id: string;
  readonly kept: readonly string[];
}

/** Another execution that begins with what one has completed; that one stays as it is. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const from = option(call, "from");
  const input = await jsonOption(call, "input");
  const body = { ...(from !== undefined && { from }), ...(input !== undefined && { input_params: input }) };
  const path = `/v1/executions/${segment(id)}/fork`;
  const forked = await server.post<Forked>(path, { body, key: option(call, "key") });
  if (call.json) printJson(call, forked);
  else {
    call.terminal.out(`${forked.execution_id}\n`);
    const kept = counted(forked.kept.length, "node");
    call.terminal.err(`runs, with what ${kept} of ${id} had completed\n`);
  }
  return EXIT.done;
};
