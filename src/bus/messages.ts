import { z } from "zod";
import * as shape from "../api/http/schemas.ts";

/** A start of a stored workflow. */
export const startMessage = z.strictObject({
  workflow: shape.shortName,
  input_params: shape.anyJson.optional(),
  version: shape.version,
  labels: shape.labels,
  /** The same again is the same execution. Without it, each message is one. */
  idempotency_key: z.string().min(1).max(255).optional(),
});
export type StartMessage = z.infer<typeof startMessage>;

const running_ms = z.number().min(0).max(31_536_000_000).optional();
const beside = { usage: shape.usage, close_limit_seconds: shape.close_limit_seconds, running_ms };

const served = z.array(shape.shortName).max(1_000);

/** What a worker tells: one result, or that it has tasks. */
export const reportMessage = z.union(
  [
    z.strictObject({ token: shape.token, output: shape.anyJson, ...beside }),
    z.strictObject({ token: shape.token, error: shape.reported, ...beside }),
    z.strictObject({ token: shape.token, hand_back: z.literal(true) }),
    z.strictObject({
      worker_id: shape.workerId,
      tokens: shape.heldTokens,
      handlers: served.optional(),
      queues: served.optional(),
    }),
  ],
  {
    error:
      'must have a "token" with an "output", an "error" or "hand_back": true, or "worker_id" and "tokens", and nothing else that kafka.md does not name',
  },
);
export type ReportMessage = z.infer<typeof reportMessage>;

/** What workers are told. */
export interface CancelMessage {
  readonly tokens: readonly string[];
}
