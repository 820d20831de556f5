import type { JsonObject } from "../../../json/json.ts";
import { MAX_DEFINITION_BYTES } from "../../../definition/fields.ts";
import { MAX_BODY_BYTES } from "../../limits.ts";
import { asJson, json, route, type Route } from "../route.ts";
import * as shape from "../schemas.ts";

const DEFAULT_REPLAYS = 1_000;

export const operationRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/v1/workflows",
    permission: "definitions",
    tag: "Workflows",
    summary: "Stored workflows with their newest version, by name",
    query: shape.pageQuery,
    answers: { 200: { description: "A page", schema: shape.listOf(shape.namedVersion) } },
    handle: async ({ service, query }) => json(200, await service.workflows.list(query)),
  }),
  route({
    method: "POST",
    path: "/v1/workflows",
    permission: "submit",
    isRepeatable: true,
    tag: "Workflows",
    summary: "Store a definition under its name, without an execution of it",
    query: shape.validateQuery,
    body: { schema: shape.definitionBody, limitBytes: MAX_DEFINITION_BYTES, isDefinition: true },
    answers: { 201: { description: "Stored", schema: shape.namedVersion } },
    problems: ["INVALID_DEFINITION", "STORE_FULL"],
    handle: async ({ service, query, source }) =>
      json(201, await service.submissions.publish(source, service.submissions.allowing(query.allow_missing_handlers))),
  }),
  route({
    method: "GET",
    path: "/v1/workflows/{name}",
    permission: "definitions",
    tag: "Workflows",
    summary: "The newest version of a workflow",
    answers: { 200: { description: "The definition and its shape", schema: shape.shownWorkflow } },
    handle: async ({ service, params }) => json(200, await service.workflows.get(params["name"]!)),
  }),
  route({
    method: "DELETE",
    path: "/v1/workflows/{name}",
    permission: "submit",
    tag: "Workflows",
    summary: "Forget a name; executions that are over keep their definition",
    answers: { 204: { description: "Gone" } },
    problems: ["EXECUTION_OPEN"],
    handle: async ({ service, params }) => {
      await service.workflows.remove(params["name"]!);
      return { status: 204 };
    },
  }),
  route({
    method: "GET",
    path: "/v1/workflows/{name}/versions",
    permission: "definitions",
    tag: "Workflows",
    summary: "All versions, newest first",
    query: shape.pageQuery,
    answers: { 200: { description: "A page", schema: shape.listOf(shape.namedVersion) } },
    handle: async ({ service, params, query }) => json(200, await service.workflows.versions(params["name"]!, query)),
  }),
  route({
    method: "GET",
    path: "/v1/workflows/{name}/versions/{version}",
    permission: "definitions",
    tag: "Workflows",
    summary: "One version, by its number or hash",
    answers: { 200: { description: "The definition and its shape", schema: shape.shownWorkflow } },
    handle: async ({ service, params }) => json(200, await service.workflows.get(params["name"]!, params["version"])),
  }),

  route({
    method: "GET",
    path: "/v1/dlq",
    permission: "read",
    tag: "Dead letters",
    summary: "Nodes that failed by their own fault, newest first",
    query: shape.lettersQuery,
    answers: { 200: { description: "A page", schema: shape.archivedListOf(shape.shownLetter) } },
    handle: async ({ service, query }) => {
      const { limit, cursor, ...filter } = query;
      return json(200, await service.letters.list(filter, { limit, cursor }));
    },
  }),
  route({
    method: "POST",
    path: "/v1/dlq/retry",
    permission: "operate",
    tag: "Dead letters",
    summary: "Replay every open dead letter that passes a filter; those of one execution make one generation",
    body: { schema: shape.replayBody, limitBytes: MAX_BODY_BYTES },
    answers: { 202: { description: "How many", schema: shape.counted } },
    handle: async ({ service, caller, body }) => {
      const { filter = {}, limit = DEFAULT_REPLAYS, dry_run: isDryRun = false } = body;
      return json(202, await service.letters.replayAll(caller, filter, limit, isDryRun));
    },
  }),
  route({
    method: "GET",
    path: "/v1/dlq/{id}",
    permission: "read",
    tag: "Dead letters",
    summary: "One dead letter",
    answers: { 200: { description: "As it stands", schema: shape.shownLetter } },
    handle: async ({ service, params }) => json(200, await service.letters.get(params["id"]!)),
  }),
  route({
    method: "DELETE",
    path: "/v1/dlq/{id}",
    permission: "operate",
    tag: "Dead letters",
    summary: "Throw a dead letter away",
    answers: { 204: { description: "Gone" } },
    problems: ["NO_OWNER"],
    handle: async ({ service, caller, params }) => {
      await service.letters.discard(caller, params["id"]!);
      return { status: 204 };
    },
  }),
  route({
    method: "POST",
    path: "/v1/dlq/{id}/retry",
    permission: "operate",
    tag: "Dead letters",
    summary: "Replay a dead letter: a new generation that opens its node again, if wanted with another config",
    body: { schema: shape.replayOneBody, limitBytes: MAX_BODY_BYTES },
    answers: { 202: { description: "It runs again", schema: shape.commanded } },
    problems: ["EXECUTION_OPEN", "NOT_RETRYABLE", "ALREADY_REPLAYED", "INVALID_DEFINITION", "NO_OWNER"],
    handle: async (call) => {
      const { service, caller, params, body } = call;
      if (body.config !== undefined) call.demand("edit");
      const config = body.config === undefined ? undefined : (asJson(body.config) as JsonObject);
      return json(202, await service.letters.replay(caller, params["id"]!, config));
    },
  }),

  route({
    method: "GET",
    path: "/v1/reviews",
    permission: "reviews",
    tag: "Reviews",
    summary: "Reviews that wait for somebody, newest first",
    query: shape.reviewsQuery,
    answers: { 200: { description: "A page", schema: shape.listOf(shape.shownReview) } },
    handle: async ({ service, query }) => {
      const { assignee, ...page } = query;
      return json(200, await service.reviews.list(page, assignee));
    },
  }),
  route({
    method: "GET",
    path: "/v1/reviews/examples",
    permission: "reviews",
    tag: "Reviews",
    summary: "What people have made of what was proposed to them, newest first",
    query: shape.examplesQuery,
    answers: { 200: { description: "A page", schema: shape.archivedListOf(shape.shownExample) } },
    handle: async ({ service, query }) => {
      const { workflow, ...page } = query;
      return json(200, await service.reviews.examples(page, workflow));
    },
  }),
  route({
    method: "GET",
    path: "/v1/reviews/{id}",
    permission: "reviews",
    tag: "Reviews",
    summary: "One review",
    answers: { 200: { description: "As it stands", schema: shape.shownReview } },
    handle: async ({ service, params }) => json(200, await service.reviews.get(params["id"]!)),
  }),
  route({
    method: "POST",
    path: "/v1/reviews/{id}",
    permission: "decide",
    tag: "Reviews",
    summary: "Decide; the first decision counts, or, where two people are needed, the second",
    body: { schema: shape.reviewBody, limitBytes: MAX_BODY_BYTES },
    answers: { 200: { description: "Decided", schema: shape.commanded } },
    problems: ["REVIEW_CLOSED", "REVIEW_SAME_PERSON", "REVIEW_INVALID", "NO_OWNER"],
    handle: async ({ service, caller, params, body }) => {
      const { decision, comment } = body;
      const data = asJson(body.data ?? null);
      return json(200, await service.reviews.decide(caller, params["id"]!, { decision, data, comment }));
    },
  }),
  route({
    method: "POST",
    path: "/v1/reviews/{id}/assign",
    permission: "decide",
    tag: "Reviews",
    summary: "Say who is to decide",
    body: { schema: shape.assignBody, limitBytes: MAX_BODY_BYTES },
    answers: { 200: { description: "Assigned", schema: shape.commanded } },
    problems: ["REVIEW_CLOSED", "NO_OWNER"],
    handle: async ({ service, caller, params, body }) =>
      json(200, await service.reviews.assign(caller, params["id"]!, body.assignees)),
  }),
];
