import { LOCAL } from "../../api/service/caller.ts";
import { Refusal } from "../../api/service/refusal.ts";
import type { Service } from "../../api/service/service.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Json } from "../../json/json.ts";
import type { WorkflowParts } from "../../sdk/workflow.ts";
import type { DefinitionText } from "../definition-file.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { faultLines } from "../problems-text.ts";

/** Something to run: a definition as it is written, or a workflow in TypeScript. */
export type Runnable = { readonly text: DefinitionText } | { readonly file: string; readonly parts: WorkflowParts };

export interface Beginning {
  readonly input: Json | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly allowMissing: boolean;
}

/** Starts an execution in this process. Held first, then triggered: so a problem of the definition is told with its line. */
export async function beginExecution(
  service: Service,
  runnable: Runnable,
  { input, labels, allowMissing }: Beginning,
): Promise<string> {
  const file = "text" in runnable ? runnable.text.file : runnable.file;
  try {
    const source = "text" in runnable ? runnable.text : { definition: await definitionOf(service, runnable.parts) };
    const { execution_id: id } = await service.submissions.submit(LOCAL, source, { start: false, allowMissing });
    await service.submissions.trigger(LOCAL, id, input, labels);
    return id;
  } catch (error) {
    throw refusalOf(error, file);
  }
}

/** Stores what is to be run, under its name. */
export async function publishRunnable(
  service: Service,
  runnable: Runnable,
  allowMissing: boolean,
): Promise<{ readonly name: string; readonly workflow_definition_id: string }> {
  const file = "text" in runnable ? runnable.text.file : runnable.file;
  try {
    const source = "text" in runnable ? runnable.text : { definition: await definitionOf(service, runnable.parts) };
    return await service.submissions.publish(source, allowMissing);
  } catch (error) {
    throw refusalOf(error, file);
  }
}

/** Workflows that it calls are stored before it, and it names the versions that came of that. */
async function definitionOf(service: Service, parts: WorkflowParts): Promise<Json> {
  const versions = new Map<WorkflowParts, string>();
  for (const child of parts.children) {
    const definition = await definitionOf(service, child);
    const { workflow_definition_id: hash } = await service.submissions.publish({ definition }, false);
    versions.set(child, hash);
  }
  return parts.definition((child) => versions.get(child) ?? child.hash);
}

/** What the service refuses, in the form of a command. */
function refusalOf(error: unknown, file: string): unknown {
  if (!(error instanceof MillraceError)) return error;
  const { errors = [], detail = error.message } = error instanceof Refusal ? error.more : {};
  const exit = error.kind === "unavailable" || error.kind === "internal" ? EXIT.unreachable : EXIT.invalid;
  return new Failure(exit, `${file}: ${detail} (${error.code})`, {
    code: error.code,
    lines: faultLines(errors),
  });
}
