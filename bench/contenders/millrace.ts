import { join } from "node:path";
import { pino } from "pino";
import { LOCAL } from "../../src/api/service/caller.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Json } from "../../src/json/json.ts";
import { MillraceProcess } from "../../src/process/process.ts";
import { Client } from "../../src/sdk/client.ts";
import { LocalBackend } from "../../src/sdk/local-backend.ts";
import type { Role } from "../../src/settings/declarations.ts";
import { readSettings } from "../../src/settings/read-settings.ts";
import { storeAddress } from "../../src/settings/store-address.ts";
import type { Handler } from "../../src/worker/handler.ts";
import type { Contender } from "../contender.ts";
import type { Probe } from "../probe.ts";
import type { Output, Shape } from "../shapes.ts";
import { startWorkerProcess } from "./worker-process.ts";

/** The handler that every node names. */
export const HANDLER = "bench.step";
const WORKER = join(import.meta.dirname, "millrace-worker.ts");

export interface MillraceOptions {
  /** As MILLRACE_STORE has it. */
  readonly store: string;
  readonly slots: number;
  /** `inside`: engine, worker and submitter share a process. `apart`: the worker has one of its own. */
  readonly workers: "inside" | "apart";
  /** Of a Redis: whether it syncs every write before it answers. */
  readonly redisDurability?: "strict" | "fast";
  readonly variation?: Variation;
  /** Where the API listens, if it does. */
  readonly port?: number;
}

/** What growth is measured by: each is 0 or 1 unless it is varied. */
export interface Variation {
  readonly partitions?: number;
  /** Processes with an engine, and with a worker, where they have their own. */
  readonly engines?: number;
  readonly workers?: number;
  /** Executions that wait for a signal, and that have ended, before anything is measured. */
  readonly waiting?: number;
  readonly finished?: number;
}

const WAITING: Json = { name: "waiting", nodes: [{ id: "w", handler: "wait", config: { signal: "go" } }] };
const ENDED: Json = { name: "ended", nodes: [{ id: "o", handler: "output", config: { done: true } }] };
/** What one bulk start of these takes. */
const CROWD = 5_000;

/** A shape in Millrace's own format. Every node is given the outputs of its parents. */
export function definitionOf({ name, nodes }: Shape): Json {
  return {
    name,
    nodes: nodes.map(({ id, after }) => ({ id, handler: HANDLER, dependencies: [...after], inputs: true })),
  };
}

export function handlerOf(probe: Probe): Handler {
  return ({ nodeId, inputs }) =>
    probe.step(nodeId, Object.values((inputs ?? {}) as unknown as Record<string, Output>)) as Promise<{ n: number }>;
}

export function startProcess(
  { store, slots, redisDurability = "strict", variation = {}, port }: Omit<MillraceOptions, "workers">,
  roles: readonly Role[],
  handler: Handler,
): Promise<MillraceProcess> {
  const { settings, faults } = readSettings({
    env: {},
    flags: {
      store,
      workerConcurrency: slots,
      redisDurability,
      allowMissingHandlers: true,
      ...(port !== undefined && { port }),
      ...(variation.partitions !== undefined && { partitions: variation.partitions }),
    },
  });
  const address = storeAddress(settings);
  if (faults.length > 0 || "fault" in address) throw new Error([...faults, JSON.stringify(address)].join("\n"));
  return MillraceProcess.start({
    settings,
    address,
    env: {},
    roles,
    user: { handlers: new Map([[HANDLER, handler]]), entries: new Map([[HANDLER, { engine: false }]]) },
    log: pino({ level: "silent" }),
    version: "bench",
    loopback: true,
  });
}

/** Millrace as a process of its own would run it, with `submissions.startAll`, which is the bulk start of the HTTP API. */
export async function startMillrace(
  probe: Probe,
  options: MillraceOptions,
  servers: Contender["servers"],
): Promise<Contender> {
  const inside = options.workers === "inside";
  const running = await startProcess(options, inside ? ["engine", "worker"] : ["engine"], handlerOf(probe));
  const { engines = 1, workers = 1, waiting = 0, finished = 0 } = options.variation ?? {};
  const others = [
    ...Array.from({ length: engines - 1 }, () => ["engine"]),
    ...Array.from({ length: inside ? 0 : workers }, () => ["worker"]),
  ];
  const stops = await Promise.all(others.map((roles) => startWorkerProcess(probe, WORKER, { ...options, roles })));
  const { submissions, store } = running.service;
  const { shape } = probe;
  await submissions.publish({ definition: definitionOf(shape) }, true);
  await crowd(submissions, WAITING, waiting);
  await crowd(submissions, ENDED, finished);
  const client = new Client(new LocalBackend(running.service, async () => {}), nodeHost);
  return {
    servers,
    submit: async (count) => {
      const inputs = Array.from({ length: count }, (): Json => ({}));
      const { items } = await submissions.startAll(LOCAL, shape.name, { inputs });
      const refused = items.find((item) => "error" in item);
      if (refused !== undefined) throw new Error(JSON.stringify(refused));
    },
    runOne: async () => {
      const run = await client.startByName(shape.name);
      await run.result();
    },
    settled: async () => {
      const query = { class: "open" as const, workflow: shape.name, limit: 1 };
      while ((await store.queries.headers(query)).items.length > 0) await nodeHost.sleep(2);
    },
    close: async () => {
      await Promise.all(stops.map((stop) => stop()));
      await running.stop();
    },
  };
}

/** Executions that are there and have nothing to do. */
async function crowd(
  submissions: MillraceProcess["service"]["submissions"],
  definition: Json,
  count: number,
): Promise<void> {
  if (count === 0) return;
  const { name } = await submissions.publish({ definition }, true);
  for (let left = count; left > 0; left -= CROWD) {
    const inputs = Array.from({ length: Math.min(CROWD, left) }, (): Json => ({}));
    await submissions.startAll(LOCAL, name, { inputs });
  }
}
