import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startPostgresServer } from "../../scripts/services/postgres.ts";
import { startOwnRedis } from "../../scripts/services/redis.ts";
import { cleanUp, folder, getJson, postJson, serve, start } from "../cli/program.ts";

/**
 * Wide and many: one execution that fans out to thousands of nodes and in again, then thousands of executions at once,
 * then many more that wait for a signal, on two engines and two workers. Prints how long it took and how much memory each
 * process had; fails if anything was not done, or was done under a key that nobody had given.
 *
 *     node test/nemesis/wide.ts --store postgres --width 10000 --executions 5000 --waiting 100000
 */
const { values } = parseArgs({
  options: {
    store: { type: "string", default: "redis" },
    width: { type: "string", default: "10000" },
    executions: { type: "string", default: "5000" },
    waiting: { type: "string", default: "100000" },
  },
});
const width = Number(values.width);
const count = Number(values.executions);
const waiting = Number(values.waiting);

const HANDLERS = `
import { appendFileSync } from "node:fs";
const done = (context) => appendFileSync("ledger", context.idempotencyKey + "\\n");
export const handlers = {
  one: (config, context) => { done(context); return 1; },
  total: ({ values }, context) => { done(context); return values.reduce((sum, value) => sum + value, 0); },
};
`;
const LOOK_MS = 500;
const PATIENCE_MS = 1_200_000;

const here = folder({ "handlers.mjs": HANDLERS, ledger: "" });
const store = values.store === "postgres" ? await startPostgresServer() : await startOwnRedis({ maxmemory: "1gb" });
const failures: string[] = [];
try {
  const server = [await addServer(), await addServer()];
  const workers = [worker(), worker()];
  await Promise.all(workers.map((program) => program.says(/"started"/)));
  await fanOut(server[0]!.url);
  await many(server[1]!.url);
  const programs = [...server.map(({ program }) => program), ...workers];
  const memory = (of: "VmHWM" | "VmRSS"): string => programs.map(({ child }) => memoryOf(child.pid!, of)).join(", ");
  process.stdout.write(`  peak memory of engines and workers: ${memory("VmHWM")}\n`);
  await wait(server[0]!.url, () => memory("VmRSS"));
  process.stdout.write(`  peak memory of engines and workers: ${memory("VmHWM")}\n`);
} finally {
  cleanUp();
  await store.stop();
}
for (const failure of failures) process.stdout.write(`  FAILED ${failure}\n`);
process.exit(failures.length > 0 ? 1 : 0);

function addServer(): ReturnType<typeof serve> {
  return serve(store.url, ["--roles", "api,engine", "--allow-missing-handlers"], { cwd: here });
}

function worker(): ReturnType<typeof start> {
  return start(["worker", "--store", store.url, "--handlers", "handlers.mjs", "--concurrency", "64"], { cwd: here });
}

/** 1 → width → 1. */
async function fanOut(url: string): Promise<void> {
  const middle = Array.from({ length: width }, (_, i) => `m${i}`);
  const definition = {
    name: "wide",
    nodes: [
      { id: "first", handler: "one" },
      ...middle.map((id) => ({ id, handler: "one", dependencies: ["first"] })),
      {
        id: "last",
        handler: "total",
        dependencies: middle,
        config: { values: middle.map((id) => `{{ ${id}.output }}`) },
      },
    ],
  };
  const startedAtMs = performance.now();
  const { execution_id: id } = await postJson<{ execution_id: string }>(`${url}/v1/workflow?start=true`, definition);
  const status = await until(async () => {
    const shown = await getJson<{ status: string }>(`${url}/v1/executions/${id}`);
    return shown.status === "RUNNING" ? undefined : shown.status;
  });
  const output = await getJson<{ last?: number }>(`${url}/v1/executions/${id}/output`);
  const keys = ledger().filter((key) => key.startsWith(id));
  tell(`1 → ${width} → 1`, startedAtMs, keys);
  if (status !== "COMPLETED" || output.last !== width) failures.push(`it is ${status}, ${JSON.stringify(output)}`);
  if (new Set(keys).size !== width + 2) failures.push(`${new Set(keys).size} of ${width + 2} nodes were done`);
}

async function many(url: string): Promise<void> {
  const nodes = [
    { id: "a", handler: "one" },
    { id: "b", handler: "one", dependencies: ["a"] },
    { id: "c", handler: "total", dependencies: ["b"], config: { values: ["{{ a.output }}", "{{ b.output }}"] } },
  ];
  await postJson(`${url}/v1/workflows`, { name: "many", nodes });
  const startedAtMs = performance.now();
  const ids = new Set(await startAll(url, "many", count));
  if (ids.size !== count) failures.push(`${ids.size} of ${count} executions were accepted`);
  await until(async () => {
    const { items } = await getJson<{ items: readonly unknown[] }>(
      `${url}/v1/executions?workflow=many&status=RUNNING&limit=1`,
    );
    return items.length === 0 ? true : undefined;
  });
  const keys = ledger().filter((key) => ids.has(key.split("/")[0]!));
  tell(`${count} executions at once`, startedAtMs, keys);
  if (new Set(keys).size !== 3 * ids.size) failures.push(`${new Set(keys).size} of ${3 * ids.size} nodes were done`);
}

/** What waits costs no process anything for long, and goes on when it is told to. */
async function wait(url: string, memory: () => string): Promise<void> {
  const nodes = [
    { id: "w", handler: "wait", config: { signal: "go" } },
    { id: "a", handler: "one", dependencies: ["w"] },
  ];
  await postJson(`${url}/v1/workflows`, { name: "waiting", nodes });
  const startedAtMs = performance.now();
  const ids: string[] = [];
  const step = Math.max(1_000, Math.round(waiting / 10));
  process.stdout.write(`  memory of engines and workers: ${memory()}\n`);
  while (ids.length < waiting) {
    ids.push(...(await startAll(url, "waiting", Math.min(step, waiting - ids.length))));
    process.stdout.write(`  with ${ids.length} waiting: ${memory()}\n`);
  }
  const seconds = (performance.now() - startedAtMs) / 1_000;
  process.stdout.write(`${values.store}: ${ids.length} wait, started in ${seconds.toFixed(1)} s\n`);
  const woken = ids.filter((_, i) => i % Math.ceil(ids.length / 500) === 0);
  for (const id of woken) await postJson(`${url}/v1/executions/${id}/signal`, { name: "go", data: 1 });
  for (const id of woken) {
    const status = await until(async () => {
      const shown = await getJson<{ status: string }>(`${url}/v1/executions/${id}`);
      return shown.status === "RUNNING" ? undefined : shown.status;
    });
    if (status !== "COMPLETED") failures.push(`${id} is ${status} after its signal`);
  }
  process.stdout.write(`  ${woken.length} of them were woken and have ended; now ${memory()}\n`);
}

/** By thousands; what is refused since there is too much at the moment comes again. */
async function startAll(url: string, workflow: string, number: number): Promise<readonly string[]> {
  const ids: string[] = [];
  while (ids.length < number) {
    type Started = { readonly items: readonly { readonly execution_id?: string }[] };
    const inputs = Array.from({ length: Math.min(1_000, number - ids.length) }, (_, i) => ({ i }));
    const { items } = await postJson<Started>(`${url}/v1/workflows/${workflow}/executions`, { inputs });
    const accepted = items.flatMap(({ execution_id: id }) => id ?? []);
    ids.push(...accepted);
    if (accepted.length < inputs.length) await sleep(LOOK_MS);
  }
  return ids;
}

function ledger(): readonly string[] {
  return readFileSync(join(here, "ledger"), "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

function tell(what: string, startedAtMs: number, keys: readonly string[]): void {
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const twice = keys.length - new Set(keys).size;
  const rate = Math.round(keys.length / seconds);
  process.stdout.write(
    `${values.store}: ${what} in ${seconds.toFixed(1)} s, ${rate} nodes a second, ${twice} done twice\n`,
  );
}

async function until<Found>(look: () => Promise<Found | undefined>): Promise<Found | undefined> {
  const untilMs = performance.now() + PATIENCE_MS;
  while (performance.now() < untilMs) {
    const found = await look();
    if (found !== undefined) return found;
    await sleep(LOOK_MS);
  }
  failures.push(`nothing came of it within ${PATIENCE_MS} ms`);
  return undefined;
}

function memoryOf(pid: number, of: "VmHWM" | "VmRSS"): string {
  const [, kib] = new RegExp(`${of}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return `${Math.round(Number(kib) / 1_024)} MB`;
}
