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
}

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
  { store, slots, redisDurability = "strict" }: Omit<MillraceOptions, "workers">,
  roles: readonly Role[],
  handler: Handler,
): Promise<MillraceProcess> {
  const { settings, faults } = readSettings({
    env: {},
    flags: { store, workerConcurrency: slots, redisDurability, allowMissingHandlers: true },
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
  const worker = inside ? undefined : await startWorkerProcess(probe, WORKER, { ...options });
  const { submissions, store } = running.service;
  const { shape } = probe;
  await submissions.publish({ definition: definitionOf(shape) }, true);
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
      while ((await store.queries.headers({ class: "open", limit: 1 })).items.length > 0) await nodeHost.sleep(2);
    },
    close: async () => {
      await worker?.();
      await running.stop();
    },
  };
}
