import type { Service } from "../api/service/service.ts";
import type { Json } from "../json/json.ts";
import type { ExecutionSource } from "./follow-execution.ts";
import type { ShownExecution } from "./shapes.ts";

/** An execution in this very process. */
export function localSource(service: Service): ExecutionSource {
  return {
    execution: async (id) => JSON.parse(await service.executions.get(id)) as ShownExecution,
    output: async (id) => JSON.parse(await service.executions.output(id)) as Json,
    events: async function* (id, after, signal) {
      for await (const { events, isEnd } of service.histories.follow(id, after, signal)) {
        yield* events;
        if (isEnd) return;
      }
    },
    explain: async (id, node) => (await service.histories.explain(id, node)).items,
  };
}
