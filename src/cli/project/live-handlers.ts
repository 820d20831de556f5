import type { HandlerEntry } from "../../definition/handlers.ts";
import type { UserHandlers } from "../../process/user-handlers.ts";
import { loadHandlerModules } from "./handler-modules.ts";
import type { WorkflowParts } from "../../sdk/workflow.ts";
import type { Handler } from "../../worker/handler.ts";

/** Handlers that may change while a worker runs: it looks each of them up when it needs it. */
export class LiveHandlers implements UserHandlers {
  readonly handlers = new Map<string, Handler>();
  readonly entries = new Map<string, HandlerEntry>();
  /** Queues that only workers take from that name them. */
  readonly queues = new Set<string>();

  /** Those of a workflow in TypeScript, and of all that it calls. */
  addWorkflow({ functions, queues, children }: WorkflowParts): void {
    for (const [name, { handler }] of functions) {
      this.handlers.set(name, handler);
      this.entries.set(name, { engine: false });
    }
    for (const queue of queues) this.queues.add(queue);
    for (const child of children) this.addWorkflow(child);
  }

  async addModules(paths: readonly string[], directory: string): Promise<void> {
    const { handlers, entries } = await loadHandlerModules(paths, directory);
    for (const [name, handler] of handlers) this.handlers.set(name, handler);
    for (const [name, entry] of entries) this.entries.set(name, entry);
  }
}
