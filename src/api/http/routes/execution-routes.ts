import { MAX_BODY_BYTES } from "../../limits.ts";
import { seqOf } from "../../service/histories.ts";
import { followEvents, wantsEvents } from "../event-stream.ts";
import { asJson, json, route, type Route } from "../route.ts";
import * as shape from "../schemas.ts";

const tag = "Executions";
const command = { 202: { description: "Done", schema: shape.commanded } };
const bodyOf = { schema: shape.emptyBody, limitBytes: MAX_BODY_BYTES };

export const executionRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/v1/executions",
    permission: "read",
    tag,
    summary: "Executions, newest first",
    query: shape.executionsQuery,
    answers: { 200: { description: "A page", schema: shape.archivedListOf(shape.listedExecution) } },
    handle: async ({ service, query }) => {
      const { status, workflow, since: sinceMs, label: labels, ...page } = query;
      return json(200, await service.executions.list({ status, workflow, sinceMs, labels }, page));
    },
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}",
    permission: "read",
    tag,
    summary: "An execution and its nodes",
    answers: { 200: { description: "As it stands", schema: shape.shownExecution } },
    handle: async ({ service, params }) => ({ status: 200, text: await service.executions.get(params["id"]!) }),
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/nodes",
    permission: "read",
    tag,
    summary: "The nodes of an execution, for those that have too many to show at once",
    query: shape.nodesQuery,
    answers: { 200: { description: "A page", schema: shape.listOf(shape.shownNode) } },
    handle: async ({ service, params, query }) => {
      const { status, ...page } = query;
      return { status: 200, text: await service.executions.nodes(params["id"]!, status, page) };
    },
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/nodes/{node}",
    permission: "read",
    tag,
    summary: "One node, or one item of a map as id[3], with its whole output",
    answers: { 200: { description: "As it stands", schema: shape.shownNode } },
    handle: async ({ service, params }) => ({
      status: 200,
      text: await service.executions.node(params["id"]!, params["node"]!),
    }),
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/input",
    permission: "read",
    tag,
    summary: "The whole input, however large",
    answers: { 200: { description: "The value", schema: shape.anyJson } },
    handle: async ({ service, params }) => ({ status: 200, text: await service.executions.input(params["id"]!) }),
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/definition",
    permission: "read",
    tag,
    summary: "The definition that it runs, also when its workflow was deleted",
    answers: { 200: { description: "Its canonical form", schema: shape.storedDefinition } },
    handle: async ({ service, params }) => ({ status: 200, text: await service.executions.definition(params["id"]!) }),
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/output",
    permission: "read",
    tag,
    summary: "The whole output, up to 500 MiB",
    answers: { 200: { description: "The value", schema: shape.anyJson } },
    handle: async ({ service, params }) => ({ status: 200, text: await service.executions.output(params["id"]!) }),
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/events",
    permission: "read",
    tag,
    summary: "What has happened; live with Accept: text/event-stream, resumed by Last-Event-ID",
    query: shape.eventsQuery,
    headers: [
      { name: "Last-Event-ID", description: "Of a stream: the last event that was seen; it goes on behind it" },
    ],
    answers: {
      200: {
        description: "A page, or a stream of events",
        schema: shape.listOf(shape.shownEvent),
        textType: "text/event-stream",
      },
      204: { description: "The stream was read to its end" },
    },
    handle: async (call) => {
      const { service, params, query } = call;
      const after = query.cursor ?? query.after;
      const place = after === undefined ? 0 : seqOf(after, query.cursor === undefined ? "after" : "cursor");
      if (wantsEvents(call)) return followEvents(call, place);
      return json(200, await service.histories.list(params["id"]!, place, query.limit));
    },
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/explain",
    permission: "read",
    tag,
    summary: "Why each open node is not done",
    query: shape.explainQuery,
    answers: { 200: { description: "One for each open node", schema: shape.listOf(shape.explanation) } },
    handle: async ({ service, params, query }) => {
      const { node, ...page } = query;
      return json(200, await service.histories.explain(params["id"]!, node, page));
    },
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/cancel",
    permission: "operate",
    tag,
    summary: "End it, and everything open in it",
    body: bodyOf,
    answers: command,
    problems: ["ALREADY_TERMINAL", "NO_OWNER"],
    handle: async ({ service, caller, params }) => json(202, await service.commands.cancel(caller, params["id"]!)),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/pause",
    permission: "operate",
    tag,
    summary: "Start nothing new until it is resumed",
    body: bodyOf,
    answers: command,
    problems: ["ALREADY_TERMINAL", "NOT_RUNNING", "NO_OWNER"],
    handle: async ({ service, caller, params }) => json(202, await service.commands.pause(caller, params["id"]!)),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/resume",
    permission: "operate",
    tag,
    summary: "Go on after a pause",
    body: bodyOf,
    answers: command,
    problems: ["NOT_PAUSED", "NO_OWNER"],
    handle: async ({ service, caller, params }) => json(202, await service.commands.resume(caller, params["id"]!)),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/retry",
    permission: "operate",
    tag,
    summary: "Run a part again in a new generation; what completed elsewhere is kept",
    query: shape.retryQuery,
    body: { schema: shape.retryBody, limitBytes: MAX_BODY_BYTES },
    answers: { ...command, 200: { description: "With dry_run: what would run again", schema: shape.dryRun } },
    problems: ["EXECUTION_OPEN", "NOT_RETRYABLE", "INPUT_INVALID", "INVALID_DEFINITION", "NO_OWNER"],
    handle: async ({ service, caller, params, query, body }) => {
      const { config, input_params: input, ...rest } = body;
      const request = {
        ...rest,
        ...(config !== undefined && { config: asJson(config) as never }),
        ...(input !== undefined && input !== null && { input_params: asJson(input) }),
      };
      const id = params["id"]!;
      if (query.dry_run === true) return json(200, await service.commands.dryRun(id, request));
      return json(202, await service.commands.retry(caller, id, request));
    },
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/fork",
    permission: "start",
    tag,
    summary: "Start another execution of the same definition, with what this one has completed",
    body: { schema: shape.forkBody, limitBytes: MAX_BODY_BYTES },
    answers: { 201: { description: "It runs; the one that it comes from stays as it is", schema: shape.forked } },
    problems: ["INPUT_INVALID", "NOT_RETRYABLE", "IDEMPOTENCY_KEY_REUSED", "OVERLOADED", "STORE_FULL", "NO_OWNER"],
    isIngress: true,
    handle: async ({ service, caller, params, body }) => {
      const { from, input_params: input } = body;
      const wanted = { from, ...(input !== undefined && input !== null && { input: asJson(input) }) };
      return json(201, await service.submissions.fork(caller, params["id"]!, wanted));
    },
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/release",
    permission: "operate",
    tag,
    summary: "Let an execution go on that was quarantined because it could not be decided",
    body: bodyOf,
    answers: { 202: { description: "Done", schema: shape.released } },
    problems: ["NOT_QUARANTINED", "NO_OWNER"],
    handle: async ({ service, caller, params }) => json(202, await service.commands.release(caller, params["id"]!)),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/signal",
    permission: "operate",
    tag,
    summary: "Send word to a node that waits for it, now or later",
    body: { schema: shape.signalBody, limitBytes: MAX_BODY_BYTES },
    answers: command,
    problems: ["ALREADY_TERMINAL", "RATE_LIMITED", "NO_OWNER"],
    handle: async ({ service, caller, params, body }) =>
      json(202, await service.commands.signal(caller, params["id"]!, body.name, asJson(body.data ?? null))),
  }),
];
