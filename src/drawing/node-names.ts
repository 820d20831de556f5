import type { Workflow } from "../definition/workflow.ts";
import { partsOf } from "./fold-parts.ts";

/** What people call the nodes, by their ids. Those that nobody wrote have names that nobody gave. */
export function namesOf(workflow: Workflow): ReadonlyMap<string, string> {
  const parts = partsOf(workflow);
  const names = new Map<string, string>();
  for (const { id, name } of workflow.nodes) {
    if (name !== undefined && name !== id && !parts.has(id)) names.set(id, name);
  }
  return names;
}
