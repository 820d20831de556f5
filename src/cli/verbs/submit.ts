import { hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { jsonOption, labelsOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect, withQuery } from "../server.ts";
import { definitionFor, submission } from "../submission.ts";

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
  const path = withQuery("/v1/workflow", {
    start: hasSwitch(call, "start") ? "true" : undefined,
    allow_missing_handlers: settings.allowMissingHandlers ? "true" : undefined,
  });
  const sent = submission(text, await jsonOption(call, "input"), labelsOption(call));
  const answer = await server.post<Submitted>(path, { ...sent, key: option(call, "key") });
  if (call.json) printJson(call, answer);
  else {
    const { name, version, status, execution_id: id } = answer;
    call.terminal.out(`${id}\n`);
    const next = status === "PENDING" ? `run it: millrace trigger ${id}` : `follow it: millrace watch ${id}`;
    call.terminal.err(`${name} version ${version}, ${status.toLowerCase()}; ${next}\n`);
  }
  return EXIT.done;
};
