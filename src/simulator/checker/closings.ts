import type { Json } from "../../json/json.ts";
import { type Commit, type Evidence, executionOf, isExecution } from "./evidence.ts";
import { LEAVING } from "./gates.ts";
import type { Invariant } from "./invariant.ts";

/** A task has ended, and whoever it called has no more to give for so long. */
interface Closing {
  readonly gate: string;
  readonly execution: string;
  readonly node: string;
  readonly closeForMs: number;
  readonly commit: Commit;
}

/** In a world at peace every rate has heard what was said to those who had passed it, and was closed. */
const closingsAreHeard: Invariant = {
  id: "I38c",
  name: "who has no more to give is left alone",
  world(evidence, _stories, found) {
    const { world, poisoned, surviving } = evidence;
    if (!world.liveness) return;
    // One that nobody has used for long was removed, and hears nothing.
    const closed = new Set(
      surviving.flatMap(({ entry }) => [...entry.records.flatMap(closedBy), ...(entry.purge ?? [])]),
    );
    for (const { gate, execution, node, closeForMs, commit } of closings(evidence)) {
      if (poisoned.has(executionOf(execution))) continue;
      const isTold = (evidence.mail.get(gate) ?? []).some(({ from, body }) => {
        const { kind, closeForMs: told = 0 } = body as { readonly kind: Json; readonly closeForMs?: number };
        return from === execution && kind === "gateReturn" && told >= closeForMs;
      });
      const what = isTold ? "did not mind" : "was not told";
      if (!isTold || !closed.has(gate)) found(`${gate} ${what} that ${node} ended with ${closeForMs} ms`, { commit });
    }
  },
};

function closedBy({ entity, events }: Commit["entry"]["records"][number]): readonly string[] {
  return events.some((event) => (event.kind as string) === "gateClosed") ? [entity] : [];
}

function closings(evidence: Evidence): readonly Closing[] {
  const all: Closing[] = [];
  /** By task: the rates that it has passed, or stands at; and who is out. */
  const passed = new Map<string, string[]>();
  const out = new Set<string>();
  for (const commit of evidence.surviving) {
    for (const { entity, events } of commit.entry.records) {
      if (!isExecution(entity)) continue;
      for (const event of events) {
        if (event.kind === "executionEnded" || event.kind === "paused") {
          for (const task of passed.keys()) {
            const stays = event.kind === "paused" && out.has(task);
            if (task.startsWith(`${entity} `) && !stays) passed.delete(task);
          }
        }
        if (!("node" in event)) continue;
        const { node } = event;
        const task = `${entity} ${node}`;
        if (event.kind === "gateAsked" && event.wait === "rate_limit") {
          passed.set(task, [...(passed.get(task) ?? []), event.gate]);
        }
        if (event.kind === "taskDispatched") out.add(task);
        if ((event.kind === "taskCompleted" || event.kind === "taskFailed") && event.closeForMs !== undefined) {
          const { closeForMs } = event;
          for (const gate of passed.get(task) ?? []) all.push({ gate, execution: entity, node, closeForMs, commit });
        }
        if (!LEAVING.has(event.kind)) continue;
        out.delete(task);
        for (const one of passed.keys()) if (one === task || one.startsWith(`${task}[`)) passed.delete(one);
      }
    }
  }
  return all;
}

export const CLOSINGS: readonly Invariant[] = [closingsAreHeard];
