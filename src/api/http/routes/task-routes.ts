import type { ErrorCode, ErrorDetails } from "../../../errors/registry.ts";
import { MillraceError } from "../../../errors/millrace-error.ts";
import { isDeeperThan } from "../../../json/depth.ts";
import { MAX_JSON_DEPTH } from "../../../json/scan.ts";
import { MAX_OUTPUT_BYTES } from "../../../worker/output.ts";
import { MAX_BODY_BYTES, MAX_BULK_BYTES } from "../../limits.ts";
import { Refusal } from "../../service/refusal.ts";
import type { Settled } from "../../service/task-results.ts";
import { asJson, json, type Reply, route, type Route } from "../route.ts";
import * as shape from "../schemas.ts";

const tag = "Tasks";
const PROBLEMS = ["TASK_TOKEN_INVALID", "STALE_ATTEMPT", "OUTPUT_INVALID", "OUTPUT_TOO_LARGE", "NO_OWNER"];

/** An output that is nested too deeply fails its node: the request that brings it has to be readable for that. */
const MAX_RESULT_DEPTH = 1_000;

export const taskRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/tasks/lease",
    permission: "work",
    tag,
    summary: "Take tasks, waiting for them if there are none",
    body: { schema: shape.leaseBody, limitBytes: MAX_BODY_BYTES },
    answers: { 200: { description: "As many as there were", schema: shape.leased } },
    handle: async ({ service, caller, body, gone }) => json(200, await service.gateway.lease(caller, body, gone)),
  }),
  route({
    method: "POST",
    path: "/v1/tasks/complete",
    permission: "work",
    isRepeatable: true,
    tag,
    summary: "Report the output of a task, or of several",
    body: { schema: shape.completeBody, limitBytes: MAX_BULK_BYTES, maxDepth: MAX_RESULT_DEPTH },
    answers: { 200: { description: "What the owner made of it", schema: shape.settled } },
    problems: PROBLEMS,
    handle: async ({ service, caller, body }) => {
      const { results, token, output, usage, close_limit_seconds } = body;
      const given = results ?? [{ token: token!, output, usage, close_limit_seconds }];
      if (given.some((one) => one.usage !== undefined && isDeeperThan(asJson(one.usage), MAX_JSON_DEPTH))) {
        throw new MillraceError("JSON_TOO_DEEP", { limit: MAX_JSON_DEPTH });
      }
      const settled = await service.gateway.settle(
        caller,
        given.map((one) => ({
          token: one.token,
          output: asJson(one.output ?? null),
          ...(one.usage !== undefined && { usage: asJson(one.usage) }),
          close_limit_seconds: one.close_limit_seconds,
        })),
      );
      return answer(settled, results !== undefined);
    },
  }),
  route({
    method: "POST",
    path: "/v1/tasks/fail",
    permission: "work",
    isRepeatable: true,
    tag,
    summary: "Report that a task failed, or several",
    body: { schema: shape.failBody, limitBytes: MAX_BULK_BYTES },
    answers: { 200: { description: "What the owner made of it", schema: shape.settled } },
    problems: PROBLEMS,
    handle: async ({ service, caller, body }) => {
      const { results, token, error, usage, close_limit_seconds } = body;
      const given = results ?? [{ token: token!, error: error!, usage, close_limit_seconds }];
      const settled = await service.gateway.settle(
        caller,
        given.map((one) => {
          const { details, ...rest } = one.error;
          return {
            token: one.token,
            error: { ...rest, ...(details !== undefined && { details: asJson(details) }) },
            ...(one.usage !== undefined && { usage: asJson(one.usage) }),
            close_limit_seconds: one.close_limit_seconds,
          };
        }),
      );
      return answer(settled, results !== undefined);
    },
  }),
  route({
    method: "POST",
    path: "/v1/tasks/hand-back",
    permission: "work",
    isRepeatable: true,
    tag,
    summary: "Give back a task that was not done, or several: another worker gets it, and its attempt is not used up",
    body: { schema: shape.handBackBody, limitBytes: MAX_BULK_BYTES },
    answers: { 200: { description: "What the owner made of it", schema: shape.settled } },
    problems: ["TASK_TOKEN_INVALID", "STALE_ATTEMPT", "NO_OWNER"],
    handle: async ({ service, caller, body }) => {
      const { results, token } = body;
      const given = results ?? [{ token: token! }];
      const settled = await service.gateway.settle(
        caller,
        given.map((one) => ({ token: one.token, handedBack: true })),
      );
      return answer(settled, results !== undefined);
    },
  }),
  route({
    method: "POST",
    path: "/v1/tasks/heartbeat",
    permission: "work",
    isRepeatable: true,
    tag,
    summary: "Keep tasks; tells which of them count no more",
    body: { schema: shape.heartbeatBody, limitBytes: MAX_BULK_BYTES },
    answers: { 200: { description: "What to stop", schema: shape.cancelledTokens } },
    handle: async ({ service, caller, body }) =>
      json(200, await service.gateway.heartbeat(caller, body.worker_id, body.tokens)),
  }),
];

function answer(settled: readonly Settled[], isList: boolean): Reply {
  if (isList) {
    const results = settled.map(({ token, accepted, recorded, code }) => ({ token, accepted, recorded, code }));
    return json(200, { results });
  }
  const { code, accepted, recorded, execution } = settled[0]!;
  if (code === undefined) return json(200, { accepted, ...(recorded !== undefined && { recorded }) });
  const details = {
    reason: "see the node's error",
    limitBytes: MAX_OUTPUT_BYTES,
  } as unknown as ErrorDetails<ErrorCode>;
  throw new Refusal(code as ErrorCode, details, {
    ...(execution !== undefined && { execution }),
    ...(code === "NO_OWNER" && { retryAfterSeconds: 1 }),
  });
}
