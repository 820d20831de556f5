import { BUILTIN_HANDLERS } from "../definition/builtin-handlers.ts";
import type { Json } from "../json/json.ts";
import type { WorkflowParts } from "../sdk/workflow.ts";
import type { Settings } from "../settings/declarations.ts";
import type { Call } from "./call.ts";
import { definitionText, isModule, moduleText } from "./definition-file.ts";
import type { ExitCode } from "./exit-code.ts";
import { followExecution, type FollowOptions } from "./follow-execution.ts";
import { labelsOption } from "./given-values.ts";
import { localSource } from "./local-source.ts";
import { beginExecution, type Runnable } from "./project/begin-execution.ts";
import { LiveHandlers } from "./project/live-handlers.ts";
import { neededModules } from "./project/needed-modules.ts";
import { workflowsOfModule } from "./project/workflow-module.ts";
import { outliveForgottenPromises, startFailure, startProcess } from "./start-process.ts";

/** A file runs in this process, in memory, and with nothing else. */
export async function runHere(
  call: Call,
  file: string,
  input: Json | undefined,
  options: FollowOptions,
): Promise<ExitCode> {
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
