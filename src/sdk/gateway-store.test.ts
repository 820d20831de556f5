import { expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { GatewayStore } from "./gateway-store.ts";
import type { HttpClient } from "./http-client.ts";

/** What a server would be sent of results with these bodies, by path. */
async function sent(...bodies: readonly JsonObject[]): Promise<Record<string, Json>> {
  const requests: Record<string, Json> = {};
  const http = {
    json: async ({ path, body }: { readonly path: string; readonly body: { readonly results: Json } }) => {
      requests[path] = body.results;
      return { results: [] };
    },
  } as unknown as HttpClient;
  const { store } = new GatewayStore(http, nodeHost, { worker: "w", by: "handlers" });
  await store.tasks.settle(
    bodies.map((body, i) => {
      const outcome = body["kind"] === "taskCompleted" ? "completed" : "failed";
      return { token: `t${i}`, ref: `t${i}`, partition: 0, outcome, text: JSON.stringify({ body }) };
    }),
  );
  return requests;
}

test("what was used, and that there is no more for a while, is told with a result and with a failure", async () => {
  const told = { usage: { tokens: 5 }, closeForMs: 7_000 };
  const error = { code: "BAD", message: "no use", retryable: true };
  expect(
    await sent({ kind: "taskCompleted", output: { json: 1 }, ...told }, { kind: "taskFailed", error, ...told }),
  ).toEqual({
    "/v1/tasks/complete": [{ token: "t0", output: 1, usage: { tokens: 5 }, close_limit_seconds: 7 }],
    "/v1/tasks/fail": [{ token: "t1", error, usage: { tokens: 5 }, close_limit_seconds: 7 }],
  });
});
