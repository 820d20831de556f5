import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, fetch, Pool } from "undici";
import { cpuSecondsOf } from "../accounting.ts";
import { definitionOf } from "../contenders/millrace.ts";
import { inFlight } from "../contenders/in-flight.ts";
import type { Json } from "../../src/json/json.ts";
import type { Mode } from "../plan.ts";
import { fan, shapeNamed } from "../shapes.ts";
import { median, type Spread, spreadOf } from "../statistics.ts";
import { workRemotely } from "./remote-workers.ts";

const CONNECTIONS = 64;
const ROUNDS = 3;
const BULK = 10_000;
/** Of the execution that is read whole; with its first and its last node 2,000. */
const WIDE = 1_998;
/** A server that uses no more than this part of a core for so long has nothing to do. */
const IDLE_PART = 0.1;
const IDLE_LOOK_MS = 300;
/** What a kind of request is held against. */
const BARE: Readonly<Record<string, string>> = {
  "submit + trigger": "bare Fastify, the same bodies",
  "submit + trigger, steps elsewhere": "bare Fastify, the same bodies",
  "read 2,000 nodes": "bare Fastify, the same bytes",
};
const SECONDS: Readonly<Record<Mode, number>> = { quick: 1.5, default: 5, full: 10 };
const LISTENERS: Readonly<Record<Mode, number>> = { quick: 100, default: 1_000, full: 1_000 };
/** Executions whose steps workers elsewhere do. */
const REMOTE: Readonly<Record<Mode, number>> = { quick: 1_000, default: 5_000, full: 10_000 };

/** What one kind of request came to. */
export interface ApiFigure {
  readonly name: string;
  readonly perSecond: Spread;
  readonly serverCpuPer1000: number;
  /** How many times the bare loop's rate, where that does the same. */
  readonly ofBare?: number;
}

interface Server {
  readonly pid: number;
  readonly pool: Pool;
  readonly url: string;
  stop(): Promise<void>;
}

type Call = (server: Server) => Promise<void>;

/** How many requests a second are answered, one kind after the other, the bare server taking turns with ours. */
export async function measureApi(mode: Mode): Promise<readonly ApiFigure[]> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-"));
  const bare = await start("bare-server.ts");
  const ours = await start("millrace-server.ts", join(folder, "millrace.db"));
  const idle = await start("millrace-server.ts", join(folder, "waiting.db"), "elsewhere");
  const remote = await start("millrace-server.ts", join(folder, "remote.db"), "elsewhere");
  try {
    const body = JSON.stringify(definitionOf(shapeNamed("diamond")));
    const [id] = await startAll(ours, body, 1);
    const read = `/v1/executions/${id}`;
    const wide = await runWide(ours);
    await put(bare, "/bytes", await text(ours, wide));
    const kinds: readonly (readonly [string, Server, Call, number])[] = [
      ["bare Fastify, the same bodies", bare, (server) => submitAndTrigger(server, body), 2],
      ["submit + trigger", ours, (server) => submitAndTrigger(server, body), 2],
      ["submit + trigger, steps elsewhere", idle, (server) => submitAndTrigger(server, body), 2],
      ["read an execution", ours, (server) => get(server, read), 1],
      ["bare Fastify, the same bytes", bare, (server) => get(server, "/bytes"), 1],
      ["read 2,000 nodes", ours, (server) => get(server, wide), 1],
      ["list a page of 50", ours, (server) => get(server, "/v1/executions?limit=50"), 1],
      [`bulk start, ${BULK} a request`, ours, async (server) => void (await startAll(server, body, BULK)), BULK],
    ];
    const figures: ApiFigure[] = [];
    const rates = new Map<string, { perSecond: number[]; cpu: number[] }>();
    for (let round = 1; round <= ROUNDS; round++) {
      for (const [name, server, call, counts] of kinds) {
        process.stderr.write(`${name} ${round}\n`);
        await untilIdle(server);
        const width = counts === BULK ? 1 : CONNECTIONS;
        const { perSecond, cpuPer1000 } = await rateOf(server, call, counts, width, SECONDS[mode]);
        const before = rates.get(name) ?? { perSecond: [], cpu: [] };
        rates.set(name, { perSecond: [...before.perSecond, perSecond], cpu: [...before.cpu, cpuPer1000] });
      }
    }
    for (const [name, { perSecond, cpu }] of rates) {
      const spread = spreadOf(perSecond);
      const bareRates = rates.get(BARE[name] ?? "")?.perSecond;
      const ofBare = bareRates === undefined ? {} : { ofBare: spread.median / median(bareRates) };
      figures.push({ name, perSecond: spread, serverCpuPer1000: median(cpu), ...ofBare });
    }
    figures.push(await remoteSteps(remote, body, REMOTE[mode]));
    figures.push(await fanOut(ours, LISTENERS[mode]));
    return figures;
  } finally {
    await Promise.all([bare.stop(), ours.stop(), idle.stop(), remote.stop()]);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function start(file: string, ...args: readonly string[]): Promise<Server> {
  const child: ChildProcess = fork(join(import.meta.dirname, file), [...args], { stdio: "inherit" });
  const [{ url }] = (await once(child, "message")) as [{ readonly url: string }];
  const pool = new Pool(url, { connections: CONNECTIONS });
  return {
    pid: child.pid!,
    pool,
    url,
    stop: async () => {
      await pool.close();
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
    },
  };
}

/** What was started before has ended: the next kind of request is not measured beside it. */
async function untilIdle({ pid }: Server): Promise<void> {
  for (let before = cpuSecondsOf(pid); ;) {
    await sleep(IDLE_LOOK_MS);
    const now = cpuSecondsOf(pid);
    if (now - before < (IDLE_LOOK_MS / 1_000) * IDLE_PART) return;
    before = now;
  }
}

async function rateOf(
  server: Server,
  call: Call,
  counts: number,
  width: number,
  seconds: number,
): Promise<{ readonly perSecond: number; readonly cpuPer1000: number }> {
  const cpu = cpuSecondsOf(server.pid);
  const startedMs = performance.now();
  let done = 0;
  const go = async (): Promise<void> => {
    while (performance.now() - startedMs < seconds * 1_000) {
      await call(server);
      done += counts;
    }
  };
  await Promise.all(Array.from({ length: width }, go));
  const tookSeconds = (performance.now() - startedMs) / 1_000;
  return { perSecond: done / tookSeconds, cpuPer1000: ((cpuSecondsOf(server.pid) - cpu) / done) * 1_000 };
}

async function post({ pool }: Server, path: string, body: string): Promise<Json> {
  const headers = { "content-type": "application/json" };
  const answer = await pool.request({ method: "POST", path, headers, body });
  const given = (await answer.body.json()) as Json;
  if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${JSON.stringify(given)}`);
  return given;
}

async function get({ pool }: Server, path: string): Promise<void> {
  const answer = await pool.request({ method: "GET", path });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode}`);
}

async function text({ pool }: Server, path: string): Promise<string> {
  return (await pool.request({ method: "GET", path })).body.text();
}

async function put({ pool }: Server, path: string, body: string): Promise<void> {
  const answer = await pool.request({ method: "PUT", path, headers: { "content-type": "text/plain" }, body });
  if (answer.statusCode !== 204) throw new Error(`${path}: ${answer.statusCode}`);
}

/** An execution of 2,000 nodes, from its start to its end. Answers where it is read. */
async function runWide(server: Server): Promise<string> {
  const body = JSON.stringify(definitionOf(fan(WIDE)));
  const { execution_id: id } = (await post(server, "/v1/workflow?start=true", body)) as {
    readonly execution_id: string;
  };
  const path = `/v1/executions/${id}`;
  while (!(await text(server, path)).includes('"status":"COMPLETED","')) await sleep(100);
  return path;
}

async function submitAndTrigger(server: Server, body: string): Promise<void> {
  const { execution_id: id } = (await post(server, "/v1/workflow", body)) as { readonly execution_id: string };
  await post(server, `/v1/workflow/trigger/${id}`, "{}");
}

async function startAll(server: Server, body: string, count: number): Promise<readonly string[]> {
  await post(server, "/v1/workflows", body);
  const inputs = Array.from({ length: count }, () => ({}));
  const given = await post(server, "/v1/workflows/diamond/executions", JSON.stringify({ inputs }));
  return (given as unknown as { items: { execution_id: string }[] }).items.map(({ execution_id: id }) => id);
}

/** Workers that have nothing but HTTP: how many steps a second they do, with leases and reports of many. */
async function remoteSteps(server: Server, body: string, executions: number): Promise<ApiFigure> {
  const steps = executions * shapeNamed("diamond").nodes.length;
  const perSecond: number[] = [];
  const cpu: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    process.stderr.write(`steps of workers elsewhere ${round}\n`);
    await startAll(server, body, executions);
    await untilIdle(server);
    const before = cpuSecondsOf(server.pid);
    const startedMs = performance.now();
    await workRemotely(server.pool, steps);
    perSecond.push(steps / ((performance.now() - startedMs) / 1_000));
    cpu.push(((cpuSecondsOf(server.pid) - before) / steps) * 1_000);
  }
  return { name: "steps of workers over HTTP", perSecond: spreadOf(perSecond), serverCpuPer1000: median(cpu) };
}

/** Many listeners of one execution: how many of its events a second reach somebody, from the signal to the last end. */
async function fanOut(server: Server, listeners: number): Promise<ApiFigure> {
  const nodes = [
    { id: "w", handler: "wait", config: { signal: "go" } },
    { id: "o", handler: "output", dependencies: ["w"], config: { done: true } },
  ];
  const definition = JSON.stringify({ name: "listened-to", nodes });
  const agent = new Agent({ connections: listeners });
  const perSecond: number[] = [];
  const cpu: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    process.stderr.write(`fan-out ${round}\n`);
    const given = (await post(server, "/v1/workflow?start=true", definition)) as { readonly execution_id: string };
    const path = `/v1/executions/${given.execution_id}`;
    const streams: AsyncIterable<unknown>[] = [];
    await inFlight(listeners, CONNECTIONS, async () => {
      const headers = { accept: "text/event-stream" };
      streams.push((await fetch(`${server.url}${path}/events`, { headers, dispatcher: agent })).body!);
    });
    const before = cpuSecondsOf(server.pid);
    const startedMs = performance.now();
    await post(server, `${path}/signal`, JSON.stringify({ name: "go" }));
    const heard = await Promise.all(streams.map(countEvents));
    const events = heard.reduce((sum, one) => sum + one, 0);
    perSecond.push(events / ((performance.now() - startedMs) / 1_000));
    cpu.push(((cpuSecondsOf(server.pid) - before) / events) * 1_000);
  }
  await agent.close();
  return { name: `events to ${listeners} listeners`, perSecond: spreadOf(perSecond), serverCpuPer1000: median(cpu) };
}

async function countEvents(stream: AsyncIterable<unknown>): Promise<number> {
  let text = "";
  for await (const chunk of stream) text += Buffer.from(chunk as Uint8Array).toString();
  return text.split("\ndata:").length - 1;
}
