import type { HandlerCall } from "../../../src/worker/handler.ts";

/** The shortest way: functions by name. */
export const handlers = {
  "plain.twice": ({ n }: { readonly n: number }) => n * 2,
  "plain.key": (_config: unknown, call: HandlerCall) => call.idempotencyKey,
  notAFunction: 7,
};
