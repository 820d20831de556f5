import { hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { changesOf, jsonOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect, segment, withQuery } from "../server.ts";
import { wouldRun } from "./act.ts";

export const verb: Verb = async (call) => {
  const from = option(call, "from");
  if (from === undefined)
    throw new Failure(EXIT.usage, "--from NODE is missing.", { hint: "millrace rerun <execution> --from <node>" });
  const input = await jsonOption(call, "input");
  const server = await connect(call);
  const id = await server.idOf(call.args[0]!);
  const changes = changesOf(call);
  const config =
    changes.length === 0
      ? undefined
      : await (await import("../changed-config.ts")).changedConfig(server, id, from, changes);
  const isDryRun = hasSwitch(call, "dry-run");
  const path = withQuery(`/v1/executions/${segment(id)}/retry`, { dry_run: isDryRun ? "true" : undefined });
  const body = {
    from,
    scope: hasSwitch(call, "only") ? "node" : "descendants",
    ...(config !== undefined && { config }),
    ...(input !== undefined && { input_params: input }),
  };
  const answer = await server.post<{ readonly status: string; readonly generation: number }>(path, { body });
  if (call.json) printJson(call, answer);
  else if (isDryRun) call.terminal.out(wouldRun(id, answer));
  else call.terminal.out(`${id} ${answer.status.toLowerCase()}, generation ${answer.generation}\n`);
  return EXIT.done;
};
