import type { Json } from "../../json/json.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { isFile, looksLikeFile, noFile } from "../definition-file.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { followExecution, type FollowOptions } from "../follow-execution.ts";
import { durationOption, jsonOption, labelsOption } from "../given-values.ts";
import { printJson } from "../print.ts";
import { connect, isForServer, segment, type Server } from "../server.ts";
import { serverSource } from "../server-source.ts";
import { definitionFor, submit } from "../submission.ts";

/** A file runs here, in memory, with nothing else; a name runs on the server. */
export const verb: Verb = async (call) => {
  const [name] = call.args as [string];
  const isHere = isFile(call.terminal, name);
  if (isHere) refuseVersion(call);
  const input = await jsonOption(call, "input");
  if (isHere && !(await isForServer(call))) {
    refuseServerOptions(call);
    const options = followOptions(call, false);
    // An engine is loaded only where it is to run.
    const { runHere } = await import("../run-here.ts");
    return runHere(call, name, input, options);
  }
  if (!isHere && looksLikeFile(name)) throw noFile(call.terminal, name);
  return runThere(call, name, isHere, input);
};

/** Only what is stored has versions. */
export function refuseVersion(call: Call): void {
  if (option(call, "version") === undefined) return;
  throw new Failure(EXIT.usage, "--version is of a stored workflow; a file is what stands in it.", {
    hint: "name the workflow instead of a file: millrace workflow ls",
  });
}

/** What runs here ends with the command, and nobody could ask for it a second time. */
function refuseServerOptions(call: Call): void {
  const given = hasSwitch(call, "no-watch") ? "no-watch" : option(call, "key") === undefined ? undefined : "key";
  if (given === undefined) return;
  throw new Failure(EXIT.usage, `--${given} is for an execution on a server; this file would run here.`, {
    hint: "run it on a server with --server, --url or --context, or leave the option out",
  });
}

function followOptions(call: Call, goesOn: boolean): FollowOptions {
  return {
    timeoutMs: durationOption(call, "timeout"),
    leaveReviews: hasSwitch(call, "no-wait-approval"),
    onLeave: { goesOn },
  };
}

async function runThere(call: Call, name: string, isHere: boolean, input: Json | undefined): Promise<ExitCode> {
  // Read before anything starts: an option that cannot be read must not cost an execution that nobody knows the id of.
  const options = followOptions(call, true);
  const server = await connect(call);
  const id = await started(call, server, name, isHere, input);
  // Who says how long to wait, or for what not, wants to wait.
  const isTold = hasSwitch(call, "watch") || options.timeoutMs !== undefined || options.leaveReviews;
  const watches = !hasSwitch(call, "no-watch") && (isTold || call.terminal.isLive);
  if (watches) return followExecution(call, serverSource(server), id, options);
  if (call.json) printJson(call, { execution_id: id });
  else call.terminal.out(`${id}\n`);
  return EXIT.done;
}

async function started(
  call: Call,
  server: Server,
  name: string,
  isHere: boolean,
  input: Json | undefined,
): Promise<string> {
  const key = option(call, "key");
  const labels = labelsOption(call);
  if (!isHere) {
    const version = option(call, "version");
    const body = {
      ...(input !== undefined && { input_params: input }),
      ...(labels !== undefined && { labels }),
      ...(version !== undefined && { version }),
    };
    const { execution_id: id } = await server.post<{ readonly execution_id: string }>(
      `/v1/workflows/${segment(name)}/executions`,
      { body, key },
    );
    return id;
  }
  const { settings } = await call.settings();
  const text = await definitionFor(call, server, name);
  const { execution_id: id } = await submit<{ readonly execution_id: string }>(server, text, {
    start: true,
    allowMissing: settings.allowMissingHandlers,
    input,
    labels,
    key,
  });
  return id;
}
