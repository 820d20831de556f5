import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis } from "../../scripts/services/redis.ts";
import type { Service } from "../../scripts/services/service.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import {
  cleanUp,
  folder,
  getJson,
  millrace,
  postJson,
  type Program,
  serve,
  type Serving,
  start,
} from "../cli/program.ts";
import { postgresService } from "../support/services.ts";

/** `hold` waits until somebody makes the file `go`; `count` says how often it ran, over all processes. */
const HANDLERS = `
import { appendFileSync, existsSync } from "node:fs";
export const handlers = {
  echo: async (config, ctx) => {
    ctx.log("echoed");
    return config;
  },
  hold: async (config) => {
    appendFileSync("ran", config.name + "\\n");
    while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
    return config.name;
  },
};
`;
const here = folder({ "handlers.mjs": HANDLERS });
const database = `recover_${nodeHost.id().replaceAll("-", "_").toLowerCase()}`;
let redis: Service;
let postgres: Service;
let archive: string;

beforeAll(async () => {
  [redis, postgres] = await Promise.all([startRedis({ shared: false }), postgresService()]);
  await sql(postgres.url, `create database ${database}`);
  const url = new URL(postgres.url);
  url.pathname = `/${database}`;
  archive = url.href;
});
afterAll(async () => {
  cleanUp();
  await sql(postgres.url, `drop database if exists ${database} with (force)`);
  await Promise.all([redis.stop(), postgres.stop()]);
});

async function sql<Row>(url: string, text: string): Promise<Row[]> {
  const client = new Client({ connectionString: url, options: "-c search_path=millrace_archive" });
  await client.connect();
  try {
    return (await client.query(text)).rows as Row[];
  } finally {
    await client.end();
  }
}

const env = {
  ORCHESTRATOR_CHECKPOINT_INTERVAL: "0.05",
  MILLRACE_PARTITIONS: "4",
  // Nobody waits for what is held.
  WORKER_GRACEFUL_SHUTDOWN_TIMEOUT: "0.1",
};
const server = (): Promise<Serving> =>
  serve(redis.url, ["--roles", "api,engine", "--archive", archive], { cwd: here, env });
const worker = (): Program => start(["worker", "--store", redis.url, "--handlers", "handlers.mjs"], { cwd: here, env });

interface Shown {
  readonly status: string;
  readonly output: unknown;
  readonly generation: number;
}
interface Event {
  readonly type: string;
  readonly node_id?: string;
  readonly attempt?: number;
}

const child = { name: "child", nodes: [{ id: "h", handler: "hold", config: { name: "{{ input.name }}" } }] };
const LONG = "y".repeat(70_000);
const workflows = {
  done: { name: "done", nodes: [{ id: "a", handler: "echo", config: { x: 1 } }] },
  held: {
    name: "held",
    nodes: [
      { id: "a", handler: "echo", config: { text: "x".repeat(70_000) } },
      // What it is given is too large for the task itself.
      {
        id: "h",
        handler: "hold",
        dependencies: ["a"],
        config: { name: "held", text: "{{ a.output.text }}", more: LONG },
      },
      { id: "z", handler: "echo", dependencies: ["h"], config: { got: "{{ h.output }}" } },
    ],
  },
  calling: {
    name: "calling",
    nodes: [{ id: "c", handler: "workflow", config: { name: "child", input: { name: "called" } } }],
  },
  waiting: { name: "waiting", nodes: [{ id: "w", handler: "wait", config: { signal: "ready" } }] },
  reviewed: { name: "reviewed", nodes: [{ id: "r", handler: "review", config: { title: "Well?" } }] },
} as const;

test("a Redis that has lost everything stops all by name, and is rebuilt from what was shipped", async () => {
  const first = await server();
  const firstWorker = worker();
  await firstWorker.says(/"started"/);
  const url = `/v1/workflow?allow_missing_handlers=true`;
  const { execution_id: untriggered } = await postJson<{ execution_id: string }>(`${first.url}${url}`, child);
  const ids = new Map<string, string>();
  const key = { "idempotency-key": "the same" };
  for (const [name, definition] of Object.entries(workflows)) {
    const answer = await fetch(`${first.url}${url}&start=true`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(name === "done" && key) },
      body: JSON.stringify(definition),
    });
    ids.set(name, ((await answer.json()) as { execution_id: string }).execution_id);
  }
  const shown = (at: Serving, name: string): Promise<Shown> => getJson(`${at.url}/v1/executions/${ids.get(name)}`);
  const nodes = (at: Serving, name: string, status: string): Promise<{ items: unknown[] }> =>
    getJson(`${at.url}/v1/executions/${ids.get(name)}/nodes?status=${status}`);
  await expect.poll(async () => (await shown(first, "done")).status).toBe("COMPLETED");
  const timeout = { timeout: 20_000 };
  await expect.poll(async () => (await nodes(first, "held", "RUNNING")).items.length, timeout).toBe(1);
  for (const name of ["calling", "waiting", "reviewed"]) {
    await expect.poll(async () => (await nodes(first, name, "WAITING")).items.length, timeout).toBe(1);
  }
  // What nobody has heard of yet cannot come back; so all has to be there before it is lost.
  const isShipped = async (): Promise<boolean> => {
    const metrics = await (await fetch(`${first.url}/metrics`)).text();
    const [open] = await sql<{ count: string }>(archive, `select count(*) from headers where class = 'open'`);
    const logs = await sql(archive, `select from records where scope = 'execution/${ids.get("done")}'`);
    return /millrace_archive_behind 0\n/.test(metrics) && open!.count === "6" && logs.length > 0;
  };
  await expect.poll(isShipped, { timeout: 30_000 }).toBe(true);

  const client = await createClient({ url: redis.url }).connect();
  await client.flushAll();
  for (const program of [first.program, firstWorker]) {
    const { code, stderr } = await program.ended;
    expect([code, stderr]).toEqual([6, expect.stringContaining("STORE_LOST")]);
    expect(stderr).toContain("hint: if the data cannot be had back, an archive rebuilds it: millrace recover");
  }
  const options = { cwd: here, env };
  for (const roles of ["api,engine,worker", "worker"]) {
    const args = ["serve", "--roles", roles, "--port", "0", "--store", redis.url, "--archive", archive];
    const { code, stderr } = await millrace(args, options);
    expect([code, stderr]).toEqual([6, expect.stringContaining("STORE_LOST")]);
  }
  const added = await millrace(["keys", "add", "--role", "admin", "--store", redis.url], {
    ...options,
    env: { ...env, MILLRACE_ARCHIVE: archive },
  });
  expect([added.code, added.stdout, added.stderr]).toEqual([6, "", expect.stringContaining("STORE_LOST")]);
  // One that knows of no archive makes no store either: it waits until there is one.
  const secondWorker = worker();
  await secondWorker.says(/there is no store yet/);
  expect(await client.exists("millrace:store")).toBe(0);
  client.destroy();

  const recovered = await millrace(["recover", "--from", archive, "--store", redis.url, "--json"], options);
  expect(recovered.stderr).toBe("");
  // With the child, and the execution that was submitted with it and never triggered.
  expect(JSON.parse(recovered.stdout)).toMatchObject({ executions: 6, tasks: 2, calls: 1, unreadable: [], names: 6 });
  const again = await millrace(["recover", "--from", archive, "--store", redis.url], options);
  expect([again.code, again.stderr]).toEqual([5, expect.stringContaining("not lost")]);
  const forced = await millrace(["recover", "--force", "--from", archive, "--store", redis.url], options);
  expect([forced.code, forced.stdout]).toEqual([
    0,
    expect.stringContaining("none that was added to the store is back"),
  ]);

  const second = await server();
  await secondWorker.says(/"started"/);
  writeFileSync(join(here, "go"), "");
  await postJson(`${second.url}/v1/executions/${ids.get("waiting")}/signal`, { name: "ready", data: 7 });
  const reviews = await getJson<{ items: { id: string }[] }>(`${second.url}/v1/reviews`);
  expect(reviews.items).toHaveLength(1);
  await postJson(`${second.url}/v1/reviews/${encodeURIComponent(reviews.items[0]!.id)}`, { decision: "approve" });
  for (const name of ids.keys()) {
    await expect.poll(async () => (await shown(second, name)).status, { timeout: 60_000 }).toBe("COMPLETED");
  }
  expect((await shown(second, "done")).output).toEqual({ a: { x: 1 } });
  // Of one that only the archive has, also what its handler logged.
  const { items: lines } = await getJson<{ items: { message: string }[] }>(
    `${second.url}/v1/executions/${ids.get("done")}/logs`,
  );
  expect(lines.map(({ message }) => message)).toEqual(["echoed"]);
  expect((await shown(second, "held")).output).toEqual({ z: { got: "held" } });
  expect((await shown(second, "calling")).output).toEqual({ c: { h: "called" } });
  expect((await shown(second, "waiting")).output).toEqual({ w: 7 });

  const listed = await getJson<{ items: { execution_id: string }[] }>(`${second.url}/v1/executions`);
  expect(listed.items).toHaveLength(7);
  for (const { execution_id: id } of listed.items) {
    const { items } = await getJson<{ items: Event[] }>(`${second.url}/v1/executions/${id}/events?limit=500`);
    const dispatched = items.filter(({ type }) => type === "task_dispatched");
    const attempts = dispatched.map(({ node_id: node, attempt }) => `${node} ${attempt}`);
    expect(new Set(attempts).size).toBe(attempts.length);
    expect(items.filter(({ type }) => type === "execution_ended").length).toBe(id === untriggered ? 0 : 1);
  }
  // The same key is the same execution, and a name has the number it had.
  const repeated = await fetch(`${second.url}${url}&start=true`, {
    method: "POST",
    headers: { "content-type": "application/json", ...key },
    body: JSON.stringify(workflows.done),
  });
  expect(await repeated.json()).toMatchObject({ execution_id: ids.get("done"), version: 1 });
  expect(await getJson(`${second.url}/v1/workflows/held`)).toMatchObject({ version: 1 });
  await second.stop();
});
