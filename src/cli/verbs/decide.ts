import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { jsonOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect, segment } from "../server.ts";

/** approve and reject. */
export const verb: Verb = async (call) => {
  const [id] = call.args as [string];
  const server = await connect(call);
  const data = await jsonOption(call, "data");
  const comment = option(call, "comment");
  const body = {
    decision: call.command,
    ...(data !== undefined && { data }),
    ...(comment !== undefined && { comment }),
  };
  const answer = await server.post<{ readonly execution_id: string; readonly status: string }>(
    `/v1/reviews/${segment(id)}`,
    { body },
  );
  if (call.json) printJson(call, answer);
  else call.terminal.out(`${id} ${call.command === "approve" ? "approved" : "rejected"}\n`);
  return EXIT.done;
};
