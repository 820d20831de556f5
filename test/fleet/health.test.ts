import { afterAll, describe, expect, test } from "vitest";
import { startOwnRedis } from "../../scripts/services/redis.ts";
import { cleanUp, folder, getJson, millrace, postJson, type Serving, start } from "../cli/program.ts";
import { Fleet, STORES } from "./fleet.ts";

afterAll(cleanUp);

/** `deaf` goes on whatever it is told, until its process ends. */
const HANDLERS = `export const handlers = {
  quick: async () => 1,
  deaf: () => new Promise(() => undefined),
};
`;
const here = folder({ "handlers.mjs": HANDLERS });
const WORKER = ["worker", "--handlers", "handlers.mjs", "--queues", "quick,deaf", "--concurrency", "1"];

async function ready({ url }: Serving): Promise<{ readonly status: number; readonly body: object }> {
  const answer = await fetch(`${url}/health/ready`);
  return { status: answer.status, body: (await answer.json()) as object };
}

async function isLive({ url }: Serving): Promise<boolean> {
  return (await fetch(`${url}/health/live`)).status === 200;
}

async function metrics({ url }: Serving): Promise<string> {
  const answer = await fetch(`${url}/metrics`);
  expect(answer.status).toBe(200);
  return answer.text();
}

async function submit(server: Serving, handler: string, more: object = {}): Promise<string> {
  const definition = { name: `health-${handler}`, nodes: [{ id: "a", handler, retry: { max_attempts: 1 }, ...more }] };
  const url = `${server.url}/v1/workflow?start=true&allow_missing_handlers=true`;
  return (await postJson<{ execution_id: string }>(url, definition)).execution_id;
}

describe.each(STORES)("processes without the API, on %s", (_kind, service) => {
  test("tell whether they live and are ready, and what they have done", async () => {
    const given = await service();
    const fleet = new Fleet(given.url, 15);
    const engine = await fleet.healthy(["serve", "--roles", "engine"]);
    const [standby, worker, server] = await Promise.all([
      fleet.healthy(["serve", "--roles", "engine"]),
      fleet.healthy(WORKER, { cwd: here, env: { WORKER_HEARTBEAT_INTERVAL: "0.5", WORKER_HEARTBEAT_TIMEOUT: "5" } }),
      fleet.server("api"),
    ]);
    for (const one of [engine, standby]) {
      const well = { status: 200, body: { status: "ok", parts: { store: "ok", engine: "ok" } } };
      await expect.poll(() => ready(one)).toEqual(well);
    }
    expect(await ready(worker)).toEqual({
      status: 200,
      body: { status: "ok", parts: { store: "ok", worker: "ok", handlers: "ok" } },
    });
    // Each tells of itself: together they have all there are.
    const held = async (one: Serving) => Number(/^millrace_partitions_held (\d+)$/m.exec(await metrics(one))?.[1]);
    await expect.poll(async () => (await held(engine)) + (await held(standby))).toBe(32);
    expect(await metrics(worker)).not.toMatch(/^millrace_(partitions_held|queue_tasks|dead_letters|engines) /m);

    const id = await submit(server, "quick");
    const status = async () => (await getJson<{ status: string }>(`${server.url}/v1/executions/${id}`)).status;
    await expect.poll(status).toBe("COMPLETED");
    const done = await metrics(worker);
    expect(done).toMatch(/^millrace_tasks_leased_total\{queue="quick"\} 1$/m);
    expect(done).toMatch(/^millrace_tasks_settled_total\{result="completed",outcome="settled"\} 1$/m);
    expect(done).toMatch(/^millrace_worker_slots 1$/m);
    const decided = (await Promise.all([engine, standby].map(metrics))).join("\n");
    expect(decided).toMatch(/^millrace_executions_accepted_total 1$/m);
    expect(decided).toMatch(/^millrace_executions_ended_total\{status="COMPLETED"\} 1$/m);
    expect(decided).toMatch(/^millrace_commits_total\{outcome="committed"\} [1-9]/m);

    // A handler that does not listen keeps its only slot.
    await submit(server, "deaf", { timeout_seconds: 0.2 });
    const stuck = 'worker: takes nothing more, since its handlers do not stop when asked: "deaf"';
    await expect
      .poll(() => ready(worker))
      .toMatchObject({ status: 503, body: { code: "NOT_READY", detail: expect.stringContaining(stuck) } });
    expect(await isLive(worker)).toBe(true);
    expect(await metrics(worker)).toMatch(/^millrace_worker_slots_kept 1$/m);

    for (const one of [worker, server, standby, engine]) expect((await one.stop()).code).toBe(0);
    await given.stop();
  });
});

test("without a store a process is not ready, lives, and tells what it has measured; then it is ready again", async () => {
  const redis = await startOwnRedis();
  const fleet = new Fleet(redis.url, 0);
  const both = await fleet.healthy(["serve", "--roles", "engine,worker"]);
  const worker = await fleet.healthy(["worker"]);
  for (const one of [both, worker]) await expect.poll(async () => (await ready(one)).status).toBe(200);
  await redis.end("SIGTERM");
  const away = { status: 503, body: { code: "STORE_UNAVAILABLE" } };
  for (const one of [both, worker]) {
    await expect.poll(() => ready(one)).toMatchObject(away);
    expect(await isLive(one)).toBe(true);
    expect(await metrics(one)).toMatch(/^millrace_worker_slots 4$/m);
  }
  await redis.begin();
  for (const one of [both, worker]) await expect.poll(async () => (await ready(one)).status).toBe(200);

  const { port } = new URL(both.url);
  const taken = await millrace(["worker", "--store", fleet.store, "--health-port", port]);
  expect([taken.code, taken.stderr]).toEqual([6, expect.stringContaining(`port ${port} is in use`)]);
  expect(taken.stderr).toContain("--health-port 0");
  await Promise.all([both.stop(), worker.stop()]);
  await redis.stop();
});

test("a process that is to stop is not ready from then on, and lives until its handlers have ended", async () => {
  const redis = await startOwnRedis();
  const fleet = new Fleet(redis.url, 0);
  const server = await fleet.server("api,engine");
  const worker = await fleet.healthy([...WORKER, "--grace", "3"], { cwd: here });
  await submit(server, "deaf");
  await expect.poll(() => metrics(worker)).toMatch(/^millrace_worker_tasks 1$/m);
  const ended = worker.stop();
  await expect
    .poll(() => ready(worker), { timeout: 2_500 })
    .toMatchObject({ status: 503, body: { code: "NOT_READY", detail: expect.stringContaining("about to stop") } });
  expect(await isLive(worker)).toBe(true);
  expect((await ended).code).toBe(0);
  await server.stop();
  await redis.stop();
});

test("by default, and with the API, nobody listens anywhere else", async () => {
  const redis = await startOwnRedis();
  const quiet = start(["serve", "--roles", "engine", "--store", redis.url]);
  const [line] = await quiet.says(/.*"started".*/);
  expect(line).not.toContain("http:");
  const fleet = new Fleet(redis.url, 0);
  const server = await fleet.server("api", ["--health-port", "0"]);
  const [told] = await server.program.says(/.*"started".*/);
  expect(told).not.toContain('"health"');
  expect((await fetch(`${server.url}/health/ready`)).status).toBe(200);
  quiet.child.kill("SIGTERM");
  await quiet.ended;
  await server.stop();
  await redis.stop();
});
