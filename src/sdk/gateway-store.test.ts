import { expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { completeBody, heartbeatBody, leaseBody } from "../api/http/schemas.ts";
import { beat, GatewayStore } from "./gateway-store.ts";
import type { Heartbeat, Settlement } from "../store/contract.ts";
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

/** A server that takes what the real one's rules allow, and answers as it is told. */
function strict(answer: (path: string, body: JsonObject) => Json): {
  readonly http: HttpClient;
  readonly paths: string[];
} {
  const rules: Readonly<Record<string, { parse(body: unknown): unknown }>> = {
    "/v1/tasks/heartbeat": heartbeatBody,
    "/v1/tasks/lease": leaseBody,
    "/v1/tasks/complete": completeBody,
  };
  const paths: string[] = [];
  const json = async ({ path, body }: { readonly path: string; readonly body: JsonObject }): Promise<Json> => {
    rules[path]!.parse(body);
    paths.push(path);
    return answer(path, body);
  };
  return { http: { json } as unknown as HttpClient, paths };
}

const many = Array.from({ length: 2_500 }, (_, i) => `t${i}`);
const completed = (token: string, output: Json = { json: 1 }): Settlement => {
  const text = JSON.stringify({ body: { kind: "taskCompleted", output } });
  return { token, ref: token, partition: 0, outcome: "completed", text };
};

test("more than the server takes at once is asked for, kept and told in parts", async () => {
  const { http, paths } = strict((path, body) => {
    if (path === "/v1/tasks/lease") return { tasks: [] };
    if (path === "/v1/tasks/heartbeat") return { cancelled: (body["tokens"] as string[]).slice(0, 1) };
    return { results: [] };
  });
  const { store } = new GatewayStore(http, nodeHost, { worker: "w", by: "handlers" });
  const beats = many.map((token) => ({ token }) as Heartbeat);
  expect(await beat(http, "w", beats, 60_000)).toEqual({ lost: [], cancelled: ["t0", "t1000", "t2000"] });
  await store.tasks.lease({ queues: ["q"], max: 10_000, leaseMs: 60_000, waitMs: 0, worker: "w" });
  expect(await store.tasks.settle(many.map((token) => completed(token)))).toHaveLength(many.length);
  expect(paths.filter((path) => path.endsWith("complete"))).toHaveLength(3);
});

test("a large output is told again when the server could not decide on it", async () => {
  const told: Json[] = [];
  const { http } = strict((_, body) => {
    told.push((body["results"] as JsonObject[])[0]!["output"]!);
    return { results: told.length === 1 ? [{ token: "t", code: "NO_OWNER" }] : [] };
  });
  const { store } = new GatewayStore(http, nodeHost, { worker: "w", by: "handlers" });
  await store.records.put([{ scope: "e", hash: "h", text: '"large"' }]);
  const result = completed("t", { blob: { hash: "h", bytes: 7 } });
  await expect(store.tasks.settle([result])).rejects.toThrow("could not decide");
  expect(await store.tasks.settle([result])).toEqual(["settled"]);
  expect(told).toEqual(["large", "large"]);
});

test("of equal large outputs each is told, also when the server could not decide on all of them at once", async () => {
  const told: Json[] = [];
  let undecided: string | undefined = "b";
  const { http } = strict((_, body) => {
    const results = body["results"] as JsonObject[];
    told.push(...results.map(({ token, output }) => ({ token: token!, output: output! })));
    return {
      results: results.map(({ token }) => ({ token: token!, ...(token === undecided && { code: "NO_OWNER" }) })),
    };
  });
  const { store } = new GatewayStore(http, nodeHost, { worker: "w", by: "handlers" });
  for (const scope of ["e1", "e2"]) await store.records.put([{ scope, hash: "h", text: '"large"' }]);
  const [a, b] = ["a", "b"].map((token) => completed(token, { blob: { hash: "h", bytes: 7 } }));
  await expect(store.tasks.settle([a!, b!])).rejects.toThrow("could not decide");
  expect(await store.tasks.settle([a!])).toEqual(["settled"]);
  undecided = undefined;
  expect(await store.tasks.settle([b!])).toEqual(["settled"]);
  expect(told.slice(2)).toEqual([
    { token: "a", output: "large" },
    { token: "b", output: "large" },
  ]);
});

test("a lease may take as long as it waits and some seconds more, a beat a part of the leases that it keeps", async () => {
  const limits: unknown[] = [];
  const json = async ({ answerMs }: { readonly answerMs: number }): Promise<Json> => {
    limits.push(answerMs);
    return { tasks: [], cancelled: [] };
  };
  const http = { json } as unknown as HttpClient;
  const { store } = new GatewayStore(http, nodeHost, { worker: "w", by: "handlers" });
  await store.tasks.lease({ queues: ["q"], max: 1, leaseMs: 15_000, waitMs: 7_500, worker: "w" });
  await store.tasks.lease({ queues: ["q"], max: 1, leaseMs: 15_000, waitMs: 90_000, worker: "w" });
  for (const leaseMs of [4_000, 15_000, 60_000]) await store.tasks.heartbeat([{ token: "t" } as Heartbeat], leaseMs);
  expect(limits).toEqual([12_500, 35_000, 1_000, 3_750, 5_000]);
});
