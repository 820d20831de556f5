import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { PARTS, type WorkflowParts } from "../../sdk/workflow.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { loadFault } from "./load-fault.ts";
import { projectModules } from "./project-modules.ts";

/** The workflows that a module exports, the default one first. Loaded anew if it or what it imports has changed. */
export async function workflowsOfModule(directory: string, file: string): Promise<readonly WorkflowParts[]> {
  const path = resolve(directory, file);
  if (!existsSync(path)) throw new Failure(EXIT.notFound, `there is no file ${JSON.stringify(file)}.`);
  let module: Readonly<Record<string, unknown>>;
  try {
    module = (await projectModules.load(path)) as typeof module;
  } catch (error) {
    throw new Failure(EXIT.invalid, `${file} cannot be loaded: ${loadFault(error, directory)}`);
  }
  const exported = [module["default"], ...Object.values(module)].filter(isWorkflow).map((one) => one[PARTS]);
  const workflows = [...new Set(exported)];
  if (workflows.length > 0) return workflows;
  throw new Failure(EXIT.invalid, `${file} exports no workflow.`, { hint: "export default wf.output({ … })" });
}

function isWorkflow(value: unknown): value is { readonly [PARTS]: WorkflowParts } {
  return typeof value === "object" && value !== null && PARTS in value;
}
