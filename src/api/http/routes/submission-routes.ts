import { MAX_DEFINITION_BYTES } from "../../../definition/fields.ts";
import { MAX_BODY_BYTES, MAX_BULK_BYTES } from "../../limits.ts";
import { asJson, json, route, type Route } from "../route.ts";
import * as shape from "../schemas.ts";

const tag = "Submit and start";

export const submissionRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/workflow",
    permission: "submit",
    tag,
    summary: "Store a definition and accept an execution of it, which waits to be triggered; with start=true it runs",
    query: shape.submitQuery,
    body: { schema: shape.definitionBody, limitBytes: MAX_DEFINITION_BYTES, isDefinition: true },
    answers: { 201: { description: "Accepted", schema: shape.submitted } },
    problems: ["INVALID_DEFINITION", "INPUT_INVALID", "IDEMPOTENCY_KEY_REUSED", "STORE_FULL", "OVERLOADED", "NO_OWNER"],
    isIngress: true,
    handle: async (call) => {
      const { service, caller, query, source } = call;
      const start = query.start ?? false;
      if (start) call.demand("start");
      const options = { start, allowMissing: service.submissions.allowing(query.allow_missing_handlers) };
      return json(201, await service.submissions.submit(caller, source, options));
    },
  }),
  route({
    method: "POST",
    path: "/v1/workflow/trigger/{execution_id}",
    permission: "start",
    tag,
    summary: "Run what was submitted; on an execution that is FAILED or PARTIAL, run again what failed",
    body: { schema: shape.triggerBody, limitBytes: MAX_BODY_BYTES },
    answers: { 202: { description: "It runs", schema: shape.triggered } },
    problems: ["ALREADY_RUNNING", "ALREADY_TERMINAL", "INPUT_FIXED", "INPUT_INVALID", "NO_OWNER"],
    isIngress: true,
    handle: async ({ service, caller, params, body }) => {
      const input = body.input_params === undefined ? undefined : asJson(body.input_params);
      return json(202, await service.submissions.trigger(caller, params["execution_id"]!, input, body.labels));
    },
  }),
  route({
    method: "POST",
    path: "/v1/validate",
    permission: "definitions",
    isRepeatable: true,
    tag,
    summary: "Check a definition; nothing is stored",
    query: shape.validateQuery,
    body: { schema: shape.definitionBody, limitBytes: MAX_DEFINITION_BYTES, isDefinition: true },
    answers: { 200: { description: "Every problem at once", schema: shape.validation } },
    handle: async ({ service, query, source }) =>
      json(200, await service.submissions.validate(source, service.submissions.allowing(query.allow_missing_handlers))),
  }),
  route({
    method: "POST",
    path: "/v1/workflows/{name}/executions",
    permission: "start",
    tag,
    summary: "Start a stored workflow, once or with many inputs",
    body: { schema: shape.startBody, limitBytes: MAX_BULK_BYTES },
    answers: { 201: { description: "Accepted; of many, each for itself", schema: shape.started } },
    problems: ["INPUT_INVALID", "IDEMPOTENCY_KEY_REUSED", "STORE_FULL", "OVERLOADED", "NO_OWNER"],
    isIngress: true,
    handle: async ({ service, caller, params, body }) => {
      const { version, labels, inputs, input_params: input } = body;
      const name = params["name"]!;
      if (inputs === undefined) {
        return json(
          201,
          await service.submissions.start(caller, name, { input: asJson(input ?? {}), version, labels }),
        );
      }
      return json(
        201,
        await service.submissions.startAll(caller, name, { inputs: inputs.map(asJson), version, labels }),
      );
    },
  }),
];
