import { MAX_BODY_BYTES } from "../../limits.ts";
import { liveReply, metricsReply, readyReply } from "../health-replies.ts";
import { json, route, type Route } from "../route.ts";
import * as shape from "../schemas.ts";

/** What the server itself has to tell. */
export interface SystemParts {
  readonly isDraining: () => boolean;
  readonly metrics: () => Promise<string>;
  readonly openapi: () => string;
  readonly docs: () => string;
  readonly limits: () => readonly unknown[];
}

const tag = "System";

export function systemRoutes(parts: SystemParts): readonly Route[] {
  const live = (path: string): Route =>
    route({
      method: "GET",
      path,
      permission: "open",
      tag,
      summary: "Whether the process lives",
      answers: { 200: { description: "It does", schema: shape.health } },
      handle: async () => liveReply(),
    });
  const ready = (path: string): Route =>
    route({
      method: "GET",
      path,
      permission: "open",
      tag,
      summary: "Whether it can serve requests, and which part cannot",
      answers: { 200: { description: "It can", schema: shape.health } },
      problems: ["NOT_READY", "STORE_UNAVAILABLE"],
      handle: ({ service }) => readyReply(parts.isDraining(), () => service.overview.readiness()),
    });
  const command = (action: "trip" | "reset", summary: string): Route =>
    route({
      method: "POST",
      path: `/v1/limits/{name}/${action}`,
      permission: "operate",
      tag,
      summary,
      answers: { 200: { description: "As they stand now", schema: shape.listOf(shape.shownLimit) } },
      problems: ["NO_OWNER"],
      handle: async ({ service, caller, params }) =>
        json(200, await service.limits.command(caller, params["name"]!, action)),
    });
  return [
    live("/health/live"),
    ready("/health/ready"),
    live("/livez"),
    ready("/readyz"),
    live("/healthz"),
    route({
      method: "GET",
      path: "/metrics",
      permission: "read",
      tag,
      summary: "Measurements, as Prometheus reads them",
      answers: { 200: { description: "Text", type: "text/plain" } },
      handle: async () => metricsReply(await parts.metrics()),
    }),
    route({
      method: "GET",
      path: "/v1/workers",
      permission: "read",
      tag,
      summary: "Workers that are alive, and what they serve",
      answers: { 200: { description: "A page", schema: shape.listOf(shape.shownWorker) } },
      query: shape.pageQuery,
      handle: async ({ service, query }) => {
        const { items } = await service.overview.workers();
        return json(200, await service.paging.slice("workers", query, items, ({ worker_id: id }) => id));
      },
    }),
    route({
      method: "GET",
      path: "/v1/queues",
      permission: "read",
      tag,
      summary: "Queues, how much waits in them, how many workers serve them",
      answers: { 200: { description: "A page", schema: shape.listOf(shape.shownQueue) } },
      query: shape.pageQuery,
      handle: async ({ service, query }) => {
        const { items } = await service.overview.queues();
        return json(200, await service.paging.slice("queues", query, items, ({ name }) => name));
      },
    }),
    route({
      method: "GET",
      path: "/v1/limits",
      permission: "read",
      tag,
      summary: "What is limited: how much of it is in use, how many wait, and until when it is closed",
      answers: { 200: { description: "All of them", schema: shape.listOf(shape.shownLimit) } },
      query: shape.pageQuery,
      handle: async ({ service, query }) => {
        return json(200, await service.limits.list(query, parts.limits()));
      },
    }),
    command("trip", "Let nothing through a limit until it is reset; what is under way goes on"),
    command("reset", "Open a limit that was tripped, or that whoever is behind it had closed for a while"),
    route({
      method: "POST",
      path: "/v1/limits/{name}/override",
      permission: "operate",
      tag,
      summary:
        "Set a rate or a number of places that goes before what the definitions say; an empty body takes it back",
      body: { schema: shape.overrideBody, limitBytes: MAX_BODY_BYTES },
      answers: { 200: { description: "As they stand now", schema: shape.listOf(shape.shownLimit) } },
      problems: ["NO_OWNER"],
      handle: async ({ service, caller, params, body }) =>
        json(200, await service.limits.override(caller, params["name"]!, body)),
    }),
    route({
      method: "POST",
      path: "/v1/limits/{name}/raise",
      permission: "operate",
      tag,
      summary: "Let a budget allow at least so much in all; of several at once the most counts",
      body: { schema: shape.raiseBody, limitBytes: MAX_BODY_BYTES },
      answers: { 200: { description: "As they stand now", schema: shape.listOf(shape.shownLimit) } },
      problems: ["NO_OWNER"],
      handle: async ({ service, caller, params, body }) =>
        json(200, await service.limits.raise(caller, params["name"]!, body)),
    }),
    route({
      method: "GET",
      path: "/openapi.json",
      permission: "open",
      tag,
      summary: "This interface as an OpenAPI 3.1 document",
      answers: { 200: { description: "The document", schema: shape.anyJson } },
      handle: async () => ({ status: 200, text: parts.openapi() }),
    }),
    route({
      method: "GET",
      path: "/docs",
      permission: "open",
      tag,
      summary: "The same for people",
      answers: { 200: { description: "A page", type: "text/html" } },
      handle: async () => ({ status: 200, text: parts.docs(), type: "text/html; charset=utf-8" }),
    }),
  ];
}
