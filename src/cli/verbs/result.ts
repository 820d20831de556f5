import { isOver } from "../../drawing/states.ts";
import type { Json } from "../../json/json.ts";
import type { Verb } from "../call.ts";
import { exitCodeOf, EXIT } from "../exit-code.ts";
import { failureText } from "../failure-text.ts";
import { Failure } from "../failure.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const execution = await server.execution(id);
  const { status } = execution;
  if (!isOver(status)) {
    throw new Failure(EXIT.notAllowed, `${id} is ${status} and has no output yet.`, { hint: `millrace watch ${id}` });
  }
  printJson(call, await server.get<Json>(`/v1/executions/${segment(id)}/output`));
  if (status !== "COMPLETED") call.terminal.err(failureText(execution, true));
  return exitCodeOf(status);
};
