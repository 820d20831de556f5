import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { cleanUp, folder, getJson, millrace, postJson, serve } from "./program.ts";

afterAll(cleanUp);

/** `slow` waits until somebody makes the file `go`, `hang` for ever. */
const HANDLERS = `
import { existsSync } from "node:fs";
export const handlers = {
  quick: () => "quick",
  slow: async () => {
    while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
    return "slow";
  },
  hang: () => new Promise(() => undefined),
};
`;

interface Page<Item> {
  readonly items: readonly Item[];
}
interface Node {
  readonly status: string;
  readonly error: { readonly code: string } | null;
}

const project = (): string => folder({ "handlers.mjs": HANDLERS });
const args = ["--handlers", "handlers.mjs"];

async function run(url: string, handler: string): Promise<string> {
  const definition = { name: handler, nodes: [{ id: "n", handler }] };
  const { execution_id: id } = await postJson<{ execution_id: string }>(`${url}/v1/workflow?start=true`, definition);
  return id;
}

const node = (url: string, id: string): Promise<Node> => getJson(`${url}/v1/executions/${id}/nodes/n`);

test("a handler with slots of its own takes no others, and one with a stale timeout ends by it", async () => {
  const here = project();
  const env = {
    WORKER_CONCURRENCY: "1",
    WORKER_CONCURRENCY_SLOW: "2",
    STALE_TIMEOUT_HANG: "0.3",
    RETRY_MAX_RETRIES: "1",
  };
  const server = await serve("sqlite:store.db", args, { cwd: here, env });
  const { url } = server;
  const slow = await Promise.all([run(url, "slow"), run(url, "slow"), run(url, "slow")]);
  const running = async (): Promise<number> => {
    const nodes = await Promise.all(slow.map((id) => node(url, id)));
    return nodes.filter(({ status }) => status === "RUNNING").length;
  };
  await expect.poll(running).toBe(2);
  const quick = await run(url, "quick");
  await expect.poll(async () => (await node(url, quick)).status).toBe("COMPLETED");
  expect(await running()).toBe(2);
  const hang = await run(url, "hang");
  await expect.poll(() => node(url, hang)).toMatchObject({ status: "FAILED", error: { code: "TIMEOUT" } });
  const { items: workers } = await getJson<Page<unknown>>(`${url}/v1/workers`);
  expect(workers).toMatchObject([{ slots: 1, slots_of: { slow: 2 } }]);
  writeFileSync(join(here, "go"), "");
  for (const id of slow) await expect.poll(async () => (await node(url, id)).status).toBe("COMPLETED");
  await server.stop();
});

test("with a single queue all tasks wait in it, whatever their handler", async () => {
  const here = project();
  const env = { WORKER_CONCURRENCY: "1", MILLRACE_SINGLE_QUEUE: "everything" };
  const server = await serve("sqlite:store.db", args, { cwd: here, env });
  const { url } = server;
  const ids = [await run(url, "slow"), await run(url, "quick")];
  const queues = async (): Promise<readonly unknown[]> =>
    (await getJson<Page<{ queued: number; leased: number }>>(`${url}/v1/queues`)).items.filter(
      ({ queued, leased }) => queued + leased > 0,
    );
  await expect.poll(queues).toMatchObject([{ name: "everything", queued: 1, leased: 1 }]);
  writeFileSync(join(here, "go"), "");
  for (const id of ids) await expect.poll(async () => (await node(url, id)).status).toBe("COMPLETED");
  await server.stop();
});

test.each([
  [{ MILLRACE_MOCK: "true" }, [], "MILLRACE_MOCK=true is not possible with MILLRACE_ENV=prod"],
  [{ MILLRACE_ALLOW_MISSING_HANDLERS: "true" }, [], "MILLRACE_ALLOW_MISSING_HANDLERS=true is not possible"],
  [{}, ["--store", "memory:"], "MILLRACE_STORE=memory: is not possible"],
  [{}, ["--host", "0.0.0.0"], "without an API key"],
])("production refuses to start with %j %j", async (env, more, told) => {
  const here = project();
  const ended = await millrace(["serve", "--env", "prod", "--port", "0", ...args, ...more], { cwd: here, env });
  expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(told)]);
});

/** What a server answers that is asked to start something. */
async function refused(url: string): Promise<readonly [status: number, retryAfter: string | null, detail: string]> {
  const response = await fetch(`${url}/v1/workflow?start=true`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "slow", nodes: [{ id: "n", handler: "slow" }] }),
  });
  const { detail = "" } = (await response.json()) as { readonly detail?: string };
  return [response.status, response.headers.get("retry-after"), detail];
}

test.each([
  // Room for what it uses many times over, and young values that do not count for much.
  [{ NODE_OPTIONS: "--max-old-space-size=160 --max-semi-space-size=1", MILLRACE_MAX_MEMORY: "0.1" }, "% of its memory"],
  [{ WORKER_CONCURRENCY: "1", MILLRACE_MAX_QUEUE_AGE: "0.5" }, 'a task waits in queue "slow"'],
])("new work is refused for a while with %j", async (env, why) => {
  const server = await serve("sqlite:store.db", args, {
    cwd: project(),
    env: { ...env, WORKER_GRACEFUL_SHUTDOWN_TIMEOUT: "0.1" },
  });
  const answer = [503, expect.stringMatching(/^\d+$/), expect.stringContaining(why)];
  await expect.poll(() => refused(server.url)).toEqual(answer);
  expect(await getJson(`${server.url}/health/ready`)).toMatchObject({
    parts: { admission: expect.stringContaining(why) },
  });
  await server.stop();
});
