import { BUILTIN_HANDLERS } from "../../definition/builtin-handlers.ts";
import type { Json } from "../../json/json.ts";
import type { WorkflowParts } from "../../sdk/workflow.ts";
import type { Settings } from "../../settings/declarations.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { definitionText, isFile, isModule, looksLikeFile, moduleText, noFile } from "../definition-file.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { followExecution, type FollowOptions } from "../follow-execution.ts";
import { durationOption, jsonOption, labelsOption } from "../given-values.ts";
import { localSource } from "../local-source.ts";
import { printJson } from "../print.ts";
import { beginExecution, type Runnable } from "../project/begin-execution.ts";
import { LiveHandlers } from "../project/live-handlers.ts";
import { neededModules } from "../project/needed-modules.ts";
import { workflowsOfModule } from "../project/workflow-module.ts";
import { connect, isForServer, segment, type Server } from "../server.ts";
import { serverSource } from "../server-source.ts";
import { outliveForgottenPromises, startFailure, startProcess } from "../start-process.ts";
import { definitionFor, submit } from "../submission.ts";

/** A file runs here, in memory, with nothing else; a name runs on the server. */
export const verb: Verb = async (call) => {
  const [name] = call.args as [string];
  const isHere = isFile(call.terminal, name);
  if (isHere) refuseVersion(call);
  const input = await jsonOption(call, "input");
  if (isHere && !(await isForServer(call))) return runHere(call, name, input);
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

function followOptions(call: Call, goesOn: boolean): FollowOptions {
  return {
    timeoutMs: durationOption(call, "timeout"),
    leaveReviews: hasSwitch(call, "no-wait-approval"),
    onLeave: { goesOn },
  };
}

async function runHere(call: Call, file: string, input: Json | undefined): Promise<ExitCode> {
  const options = followOptions(call, false);
  const { terminal } = call;
  const read = await call.settings({ logLevel: "warn" });
  const settings = { ...read.settings, store: "memory:" };
  const user = new LiveHandlers();
  const runnable = await runnableOf(call, file, user);
  try {
    await user.addModules(await modulesFor(call, settings, runnable), terminal.directory);
  } catch (error) {
    throw startFailure(error, settings.port);
  }
  const parts = { roles: ["engine", "worker"] as const, logTo: 2 as const, loopback: true, user };
  const { process, log } = await startProcess(call, { ...read, settings }, parts);
  const { service } = process;
  const stopOutliving = outliveForgottenPromises(log);
  try {
    const id = await beginExecution(service, runnable, {
      input,
      labels: labelsOption(call),
      allowMissing: settings.allowMissingHandlers,
    });
    const bringsNobody = (name: string): boolean => !BUILTIN_HANDLERS.has(name) && !user.handlers.has(name);
    // Nothing is stopped in order afterwards: a store in memory has nothing to lose, and the process ends with the command.
    const follow = settings.allowMissingHandlers ? { ...options, bringsNobody } : options;
    return await followExecution(call, localSource(service), id, follow);
  } finally {
    stopOutliving();
  }
}

/** What a module brings by itself needs no handlers from beside it, but it may name others. */
export async function modulesFor(
  { terminal }: Call,
  settings: Pick<Settings, "handlers">,
  runnable: Runnable,
): Promise<readonly string[]> {
  const text =
    "text" in runnable
      ? runnable.text
      : moduleText(runnable.file, runnable.parts, (child: WorkflowParts) => child.hash);
  return neededModules(terminal, settings, [text]);
}

/** A definition, or the workflow of a module together with its functions. */
export async function runnableOf(call: Call, file: string, user: LiveHandlers): Promise<Runnable> {
  const { terminal } = call;
  if (!isModule(file)) return { text: await definitionText(terminal, file) };
  const workflows = await workflowsOfModule(terminal.directory, file);
  for (const one of workflows) user.addWorkflow(one);
  return { file, parts: workflows[0]! };
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
