import type { Handler } from "../worker/handler.ts";
import type { ReadyHandlers } from "./handlers.ts";
import { PARTS, type Workflow, type WorkflowParts } from "./workflow.ts";

/** What a worker serves. */
export interface Served {
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly queues: ReadonlySet<string>;
}

/** Handlers by name, and the functions of workflows and of those they call. */
export function servedBy(workflows: readonly Workflow<never, unknown>[], ready: ReadyHandlers): Served {
  const handlers = new Map(ready.handlers);
  const queues = new Set<string>();
  const visit = ({ functions, queues: own, children }: WorkflowParts): void => {
    for (const [name, { handler }] of functions) handlers.set(name, handler);
    for (const queue of own) queues.add(queue);
    for (const child of children) visit(child);
  };
  for (const workflow of workflows) visit(workflow[PARTS]);
  return { handlers, queues };
}
