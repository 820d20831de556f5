import { statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { PARTS, type WorkflowParts } from "../../sdk/workflow.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { offerOwnPackage } from "./own-package.ts";

/** The workflows that a module exports, the default one first. Loaded anew if the file has changed. */
export async function workflowsOfModule(directory: string, file: string): Promise<readonly WorkflowParts[]> {
  offerOwnPackage();
  const path = resolve(directory, file);
  const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  if (changed === undefined) throw new Failure(EXIT.notFound, `there is no file ${JSON.stringify(file)}.`);
  let module: Readonly<Record<string, unknown>>;
  try {
    module = (await import(`${pathToFileURL(path).href}?changed=${changed}`)) as typeof module;
  } catch (error) {
    throw new Failure(
      EXIT.invalid,
      `${file} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  const exported = [module["default"], ...Object.values(module)].filter(isWorkflow).map((one) => one[PARTS]);
  const workflows = [...new Set(exported)];
  if (workflows.length > 0) return workflows;
  throw new Failure(EXIT.invalid, `${file} exports no workflow.`, { hint: "export default wf.output({ … })" });
}

function isWorkflow(value: unknown): value is { readonly [PARTS]: WorkflowParts } {
  return typeof value === "object" && value !== null && PARTS in value;
}
