import type { HandlerCall } from "../../../src/worker/handler.ts";

/** The shortest way: functions by name. */
export const handlers = {
  "plain.twice": ({ n }: { readonly n: number }) => n * 2,
  "plain.key": (_config: unknown, call: HandlerCall) => call.idempotencyKey,
  "plain.checked": {
    run: ({ n }: { readonly n: number }) => ({ half: n / 2 }),
    config_schema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    output_schema: { type: "object", properties: { half: { type: "integer" } } },
    timeout_seconds: 5,
  },
};
