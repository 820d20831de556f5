import { hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { jsonOption, labelsOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect } from "../server.ts";
import { definitionFor, submit } from "../submission.ts";

interface Submitted {
  readonly execution_id: string;
  readonly name: string;
  readonly version: number;
  readonly status: string;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const { settings } = await call.settings();
  const text = await definitionFor(call, server, call.args[0]!);
  const answer = await submit<Submitted>(server, text, {
    start: hasSwitch(call, "start"),
    allowMissing: settings.allowMissingHandlers,
    input: await jsonOption(call, "input"),
    labels: labelsOption(call),
    key: option(call, "key"),
  });
  if (call.json) printJson(call, answer);
  else {
    const { name, version, status, execution_id: id } = answer;
    call.terminal.out(`${id}\n`);
    const next = status === "PENDING" ? `run it: millrace trigger ${id}` : `follow it: millrace watch ${id}`;
    call.terminal.err(`${name} version ${version}, ${status.toLowerCase()}; ${next}\n`);
  }
  return EXIT.done;
};
