import * as z from "zod";
import { json, route, type Route } from "../api/http/route.ts";
import { partFields } from "../api/http/schemas.ts";
import { ordinal } from "../api/service/paging.ts";
import type { Service } from "../api/service/service.ts";
import { MAX_PAGE } from "../api/limits.ts";
import { type Attempt, type LogLine, readLogs } from "./task-logs.ts";

const query = z.strictObject({
  ...partFields,
  node: z.string().optional(),
  attempt: z.coerce.number().int().min(1).max(1_000_000).optional(),
});
const line = z.looseObject({
  node_id: z.string(),
  attempt: z.number(),
  at: z.string(),
  level: z.enum(["error"]).optional(),
  message: z.string(),
});

/** What handlers have logged. */
export function logRoutes(service: Service): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/executions/{id}/logs",
      permission: "read",
      tag: "Executions",
      summary: "What its handlers have logged, and the stacks of what they threw, by attempt",
      query,
      answers: {
        200: {
          description: "All that was kept",
          schema: z.looseObject({ items: z.array(line), next_cursor: z.string().nullable() }),
        },
      },
      handle: async ({ params, query: { limit, cursor, ...filter } }) => {
        const id = params["id"]!;
        const items = await linesOf(service, id, filter);
        const list = `logs ${id} ${JSON.stringify(filter)}`;
        return json(200, await service.paging.slice(list, { limit, cursor }, items, (_, index) => ordinal(index)));
      },
    }),
  ];
}

/** A line, and of which delivery of which attempt it is. */
export interface ShownLine extends LogLine {
  readonly node_id: string;
  readonly generation: number;
  readonly attempt: number;
  readonly delivery: number;
}

interface Filter {
  readonly node?: string | undefined;
  readonly attempt?: number | undefined;
}

/** All lines of an execution in the order of their time. */
export async function linesOf(service: Service, id: string, filter: Filter = {}): Promise<readonly ShownLine[]> {
  const kept = await readLogs(service.store, await attemptsOf(service, id, filter));
  const items = kept.flatMap(({ attempt: { instance, generation, attempt, delivery }, lines }) =>
    lines.map((one) => ({ node_id: instance, generation, attempt, delivery, ...one })),
  );
  return items.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

/** Every delivery of every attempt, as the history has them. */
async function attemptsOf(service: Service, id: string, { node, attempt }: Filter): Promise<readonly Attempt[]> {
  const found: Attempt[] = [];
  let generation = 1;
  for (let after: number | null = 0; after !== null;) {
    const { items, next_cursor: next } = await service.histories.list(id, after, MAX_PAGE);
    for (const { type, node_id: instance, attempt: number, data } of items) {
      if (type === "generation_opened") generation = Number(data["generation"]);
      if (type !== "task_dispatched" || instance === undefined || number === undefined) continue;
      if (node !== undefined && instance !== node && !instance.startsWith(`${node}[`)) continue;
      if (attempt !== undefined && number !== attempt) continue;
      const round = Number(data["round"] ?? 0);
      const name = round > 0 ? `${instance}@${round}` : instance;
      found.push({
        execution: id,
        generation,
        instance: name,
        attempt: number,
        delivery: Number(data["delivery"] ?? 1),
      });
    }
    after = next === null ? null : Number(next);
  }
  return found;
}
