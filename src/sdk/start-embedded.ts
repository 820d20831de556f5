import { join } from "node:path";
import { pino } from "pino";
import type { HandlerEntry } from "../definition/handlers.ts";
import { MillraceError } from "../errors/millrace-error.ts";
import { nodeHost } from "../host/node-host.ts";
import { MillraceProcess } from "../process/process.ts";
import type { Role } from "../settings/declarations.ts";
import { readSettings } from "../settings/read-settings.ts";
import type { StoreAddress } from "../settings/store-address.ts";
import type { StoreError } from "../store/store-error.ts";
import { Client } from "./client.ts";
import type { EmbeddedEngine, EmbeddedOptions } from "./embedded.ts";
import { readyHandlers } from "./handlers.ts";
import { LiveWorker } from "./live-worker.ts";
import { LocalBackend } from "./local-backend.ts";
import { PARTS } from "./workflow.ts";

class LocalEngine extends Client implements EmbeddedEngine {
  readonly url: string | undefined;
  readonly lost: Promise<StoreError>;

  constructor(process: MillraceProcess, worker: LiveWorker, close: () => Promise<void>) {
    const backend = new LocalBackend(process.service, close, worker.thrown);
    super(backend, nodeHost, (parts) => worker.meet(parts));
    this.url = process.url;
    this.lost = process.lost;
    // If that fails, whoever closes it is told.
    process.lost.then((reason) => backend.closeBecause(reason)).catch(() => undefined);
  }
}

export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedEngine> {
  const { dataDir = ".millrace", concurrency, workflows = [], handlers: table, port } = options;
  const { env } = process;
  const flags = {
    host: "127.0.0.1",
    ...(concurrency !== undefined && { workerConcurrency: concurrency }),
    ...(port !== undefined && { port }),
  };
  const { settings, faults } = readSettings({ env, flags });
  if (faults.length > 0) throw new TypeError(faults.join("\n"));
  const address: StoreAddress =
    dataDir === false ? { kind: "memory" } : { kind: "sqlite", file: join(dataDir, "millrace.db") };
  const ready = readyHandlers(table);
  const parts = workflows.map((workflow) => workflow[PARTS]);
  const entries = new Map<string, HandlerEntry>();
  const roles: readonly Role[] = port === undefined ? ["engine", "worker"] : ["engine", "worker", "api"];
  const running = await MillraceProcess.start({
    // Functions and built-in handlers have a worker each here: from one queue for all, each would take what only the other has.
    // And what others start by a bus is not for a store of its own.
    settings: { ...settings, singleQueue: undefined, bus: undefined, busQueues: [] },
    address,
    env,
    roles,
    user: { handlers: new Map(), entries },
    log: pino({ level: "silent" }),
    version: "embedded",
    loopback: true,
  }).catch((error: unknown) => {
    const isTaken = (error as NodeJS.ErrnoException | null)?.code === "EADDRINUSE";
    throw isTaken ? new MillraceError("PORT_IN_USE", { port: settings.port }, { cause: error }) : error;
  });
  const worker = new LiveWorker({
    store: running.store,
    host: nodeHost,
    settings: { slots: settings.workerConcurrency, graceMs: settings.workerGrace * 1_000 },
    secret: (name) => env[`MILLRACE_SECRET_${name}`],
    entries,
  });
  worker.add(ready.handlers, [], ready.entries);
  for (const one of parts) worker.meet(one);
  await worker.start();
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await worker.stop();
    await running.stop();
    ready.close();
  };
  return new LocalEngine(running, worker, () => (closing ??= close()));
}
