import { DEFAULT_BATCH_CONCURRENCY, MAX_BODY_BYTES, MAX_BULK_BYTES } from "../../limits.ts";
import { asJson, json, route, type Route } from "../route.ts";
import * as shape from "../schemas.ts";

const tag = "Batches";
const command = { 202: { description: "Done", schema: shape.commandedBatch } };
const bodyOf = { schema: shape.emptyBody, limitBytes: MAX_BODY_BYTES };

export const batchRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/batches",
    permission: "start",
    tag,
    summary: "Run a stored workflow over many items, so many at a time",
    body: { schema: shape.batchBody, limitBytes: MAX_BULK_BYTES },
    answers: { 201: { description: "Accepted", schema: shape.startedBatch } },
    problems: ["PAYLOAD_TOO_LARGE", "IDEMPOTENCY_KEY_REUSED", "STORE_FULL", "OVERLOADED", "NO_OWNER"],
    isIngress: true,
    handle: async ({ service, caller, body }) => {
      const { items, concurrency = DEFAULT_BATCH_CONCURRENCY, ...rest } = body;
      return json(201, await service.batches.create(caller, { ...rest, concurrency, items: items.map(asJson) }));
    },
  }),
  route({
    method: "GET",
    path: "/v1/batches",
    permission: "read",
    tag,
    summary: "Batches, newest first",
    query: shape.pageQuery,
    answers: { 200: { description: "A page", schema: shape.archivedListOf(shape.listedBatch) } },
    handle: async ({ service, query }) => json(200, await service.batches.list(query)),
  }),
  route({
    method: "GET",
    path: "/v1/batches/{id}",
    permission: "read",
    tag,
    summary: "How far a batch is",
    answers: { 200: { description: "As it stands", schema: shape.shownBatch } },
    handle: async ({ service, params }) => json(200, await service.batches.get(params["id"]!)),
  }),
  route({
    method: "GET",
    path: "/v1/batches/{id}/items",
    permission: "read",
    tag,
    summary: "The items of a batch in their order, with the output or error of each",
    query: shape.batchItemsQuery,
    answers: { 200: { description: "A page", schema: shape.listOf(shape.batchItem) } },
    handle: async ({ service, params, query }) => {
      const { status, ...page } = query;
      return { status: 200, text: await service.batches.items(params["id"]!, status, page) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/batches/{id}/cancel",
    permission: "operate",
    tag,
    summary: "End a batch, and the executions of its items that run",
    body: bodyOf,
    answers: command,
    problems: ["ALREADY_TERMINAL", "NO_OWNER"],
    handle: async ({ service, caller, params }) => json(202, await service.batches.cancel(caller, params["id"]!)),
  }),
  route({
    method: "POST",
    path: "/v1/batches/{id}/retry",
    permission: "operate",
    tag,
    summary: "Try the items again that failed or were cancelled",
    body: bodyOf,
    answers: command,
    problems: ["EXECUTION_OPEN", "NOT_RETRYABLE", "NO_OWNER"],
    handle: async ({ service, caller, params }) => json(202, await service.batches.retry(caller, params["id"]!)),
  }),
];
