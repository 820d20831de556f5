import { afterAll, beforeAll, expect, test } from "vitest";
import { cleanUp, folder, getJson, millrace, postJson, type Program, serve, type Serving, start } from "./program.ts";

const KEY = "worker-key";
const HANDLERS = `export const handlers = {
  "who": async (config, call) => {
    call.log("here", { key: config.key ?? null });
    if (config.ms < 0) {
      void Promise.reject(new Error("nobody waits for this"));
      throw new TypeError("less than nothing");
    }
    await new Promise((resolve) => setTimeout(resolve, config.ms));
    return process.env.WHO;
  },
};
`;

interface Shown {
  readonly status: string;
  readonly nodes: Readonly<Record<string, object>>;
}

const here = folder({ "handlers.mjs": HANDLERS });
let server: Serving;
beforeAll(async () => {
  const env = { MILLRACE_API_KEYS: `worker:${KEY},admin:boss`, MILLRACE_SECRET_TOKEN: "s3cr3t" };
  server = await serve("memory:", [], { env });
});
afterAll(async () => {
  await server.stop();
  cleanUp();
});

const auth = { authorization: "Bearer boss" };

async function worker(who: string, more: readonly string[] = []): Promise<Program> {
  const args = ["worker", "--url", server.url, "--key", KEY, "--handlers", "handlers.mjs", ...more];
  const program = start(args, { cwd: here, env: { WHO: who } });
  await program.says(/"started"/);
  return program;
}

test("a worker over HTTP tells its health where it is told to, and is not ready without its server", async () => {
  const own = await serve("memory:");
  const args = ["worker", "--url", own.url, "--handlers", "handlers.mjs", "--health-port", "0"];
  const program = start(args, { cwd: here, env: { WHO: "told" } });
  const [, health] = await program.says(/"health":"(http:[^"]+)"/);
  const ready = async () => (await fetch(`${health}/health/ready`)).status;
  expect(await getJson(`${health}/health/ready`)).toEqual({ status: "ok", parts: { worker: "ok", handlers: "ok" } });
  const definition = { name: "told", nodes: [{ id: "a", handler: "who", config: { ms: 0 } }] };
  await postJson(`${own.url}/v1/workflow?start=true&allow_missing_handlers=true`, definition);
  const metrics = async () => (await fetch(`${health}/metrics`)).text();
  await expect.poll(metrics).toMatch(/^millrace_tasks_settled_total\{result="completed",outcome="settled"\} 1$/m);
  expect(await metrics()).toMatch(/^millrace_worker_slots 4$/m);
  await own.kill();
  await expect.poll(ready, { timeout: 60_000 }).toBe(503);
  expect((await fetch(`${health}/health/live`)).status).toBe(200);
  program.child.kill("SIGTERM");
  expect((await program.ended).code).toBe(0);
});

async function run(ms: number, more: object = {}): Promise<string> {
  const definition = {
    name: "gateway",
    nodes: [{ id: "a", handler: "who", config: { ms, ...more }, retry: { max_attempts: 1 } }],
  };
  const url = `${server.url}/v1/workflow?start=true&allow_missing_handlers=true`;
  return (await postJson<{ execution_id: string }>(url, definition, auth)).execution_id;
}

const shown = (id: string): Promise<Shown> => getJson(`${server.url}/v1/executions/${id}`, auth);

test("a worker over HTTP does what the server hands out, and gives back what it cannot finish", async () => {
  const first = await worker("first", ["--grace", "0"]);
  const quick = await run(1);
  await expect.poll(async () => (await shown(quick)).status).toBe("COMPLETED");
  expect((await shown(quick)).nodes["a"]).toMatchObject({ output: "first" });
  const { items } = await getJson<{ items: { queues: string[]; via: string }[] }>(`${server.url}/v1/workers`, auth);
  expect(items).toContainEqual(expect.objectContaining({ via: "gateway" }));

  const long = await run(600_000);
  await first.says(/"here"[^]*"here"/);
  first.child.kill("SIGTERM");
  const over = await first.ended;
  expect([over.code, over.stderr]).toEqual([0, ""]);
  const { nodes } = await shown(long);
  expect(nodes["a"]).toMatchObject({ status: "QUEUED", attempt: 1 });
  const { items: events } = await getJson<{ items: { type: string; data: object }[] }>(
    `${server.url}/v1/executions/${long}/events`,
    auth,
  );
  // Given back, not lost: a lease that runs out would have cost fifteen seconds and counted.
  const lost = events.filter(({ type }) => type === "delivery_lost");
  expect(lost.length).toBeGreaterThan(0);
  expect(lost.every(({ data }) => (data as { handed_back: boolean }).handed_back)).toBe(true);
});

test("a worker over HTTP keeps the secrets that it is sent out of its log", async () => {
  const program = await worker("discreet", ["--grace", "0"]);
  await run(1, { key: "Bearer {{ secrets.TOKEN }}" });
  await program.says(/"key":"Bearer \*\*\*"/);
  program.child.kill("SIGTERM");
  expect((await program.ended).stdout).not.toContain("s3cr3t");
});

test("a worker over HTTP has in its own log where a handler threw what, and what nobody waited for", async () => {
  const program = await worker("thrower");
  const id = await run(-1);
  await expect.poll(async () => (await shown(id)).status).toBe("FAILED");
  await program.says(
    /"level":"warn".*"node_id":"a".*"stack":"TypeError: less than nothing\\n {4}at who .*"a handler threw"/,
  );
  await program.says(/"stack":"Error: nobody waits for this\\n {4}at .*"unhandled rejection"/);
  program.child.kill("SIGTERM");
  expect((await program.ended).code).toBe(0);
});

test("a worker over HTTP says what is wrong with its key, and with an address where nobody is", async () => {
  const args = ["worker", "--handlers", "handlers.mjs"];
  const wrong = await millrace([...args, "--url", server.url, "--key", "nope"], { cwd: here });
  expect([wrong.code, wrong.stderr]).toEqual([5, expect.stringContaining("UNAUTHENTICATED")]);
  const nobody = await millrace([...args, "--url", "http://127.0.0.1:47999"], { cwd: here });
  expect([nobody.code, nobody.stderr]).toEqual([6, expect.stringContaining("nobody listens there")]);
});
