import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";
import { reviewOf } from "./decide.ts";

export const verb: Verb = async (call) => {
  const [name, ...assignees] = call.args as [string, ...string[]];
  const server = await connect(call);
  const id = await reviewOf(server, name);
  const answer = await server.post<object>(`/v1/reviews/${segment(id)}/assign`, { body: { assignees } });
  if (call.json) printJson(call, answer);
  else call.terminal.out(`${id} is for ${assignees.join(", ")} to decide\n`);
  return EXIT.done;
};
