import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { failureText } from "../failure-text.ts";
import { oneLine, printJson } from "../print.ts";
import { connect } from "../server.ts";

/** One sentence for each open node: why it is not done. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const items = await server.explain(id, call.args[1]);
  if (call.json) printJson(call, items);
  else if (items.length > 0) {
    for (const { sentence } of items) call.terminal.out(`${oneLine(sentence)}\n`);
  } else {
    const execution = await server.execution(id);
    const { status, nodes } = execution;
    const node = call.args[1] === undefined ? undefined : nodes?.[call.args[1]];
    if (node === undefined) {
      // Who asks why of one that did not end well wants to know what went wrong.
      call.terminal.out(status === "COMPLETED" ? `${id} is over: completed.\n` : failureText(execution, true));
    } else {
      const error = node.error === null ? "" : `: ${node.error.code}: ${node.error.message}`;
      const reason = node.reason === null ? "" : ` (${node.reason})`;
      call.terminal.out(`${oneLine(`${call.args[1]} is over: ${node.status.toLowerCase()}${reason}${error}`)}\n`);
    }
  }
  return EXIT.done;
};
