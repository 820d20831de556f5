import { startBusWorker } from "../bus/bus-worker.ts";
import { KafkaError } from "../bus/kafka.ts";
import { nodeHost } from "../host/node-host.ts";
import { FarWorkerHealth } from "../process/far-worker-health.ts";
import { type Log, logDegraded, logSilence, logTask, openLog } from "../process/log.ts";
import { watched } from "../process/watched-store.ts";
import { openBuiltins, ownSlots, queuesOf, workerSettings } from "../process/worker-options.ts";
import { ApiError, ServerUnreachable } from "../sdk/api-error.ts";
import { httpClient } from "../sdk/connect.ts";
import { startGatewayWorker } from "../sdk/gateway-worker.ts";
import { type BusAddress, shownBus } from "../settings/bus-address.ts";
import type { Settings } from "../settings/declarations.ts";
import type { Store } from "../store/contract.ts";
import type { Handler } from "../worker/handler.ts";
import type { Worker, WorkerObserver, WorkerSettings } from "../worker/worker.ts";
import type { Call } from "./call.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import { loadHandlerModules } from "./project/handler-modules.ts";
import { type Started, startFailure } from "./start-process.ts";

/** What carries tasks to a worker that has no store. */
interface Carrier {
  /** What the log calls it. */
  readonly called: string;
  readonly told: Readonly<Record<string, string>>;
  start(options: FarWorkerOptions): Promise<{ readonly worker: Worker; readonly stop: () => Promise<void> }>;
}

interface FarWorkerOptions {
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly queues: readonly string[];
  /** Whether somebody has named queues, and not only handlers. */
  readonly isByQueue: boolean;
  readonly ownSlots: ReadonlyMap<string, number>;
  readonly settings: Partial<WorkerSettings>;
  readonly observer: WorkerObserver;
  readonly watch: (store: Store) => Store;
}

/** A worker that speaks HTTP to a server, and holds no credentials of its store. */
export function startGatewayWorkerProcess(call: Call, settings: Settings): Promise<Started> {
  const { url, apiKey } = settings;
  return startFarWorker(call, settings, {
    called: "the server",
    told: { server: url },
    start: ({ isByQueue, queues, ...options }) =>
      startGatewayWorker({
        ...options,
        http: httpClient({ url, ...(apiKey !== undefined && { token: apiKey }) }),
        token: apiKey,
        queues: isByQueue ? queues : undefined,
      }),
  });
}

/** A worker that takes its tasks from Kafka. */
export function startBusWorkerProcess(call: Call, settings: Settings, address: BusAddress): Promise<Started> {
  return startFarWorker(call, settings, {
    called: "the bus",
    told: { bus: shownBus(address) },
    start: (options) => startBusWorker({ ...options, address, partitions: settings.busPartitions }),
  });
}

/** What it logs is on its own stdout. */
async function startFarWorker(call: Call, settings: Settings, carrier: Carrier): Promise<Started> {
  const log = openLog(settings, 1);
  const user = await loadHandlerModules(settings.handlers, call.terminal.directory).catch((error: unknown) => {
    throw startFailure(error, settings.port);
  });
  const builtins = openBuiltins(settings, nodeHost, false);
  const handlers = new Map([...builtins.handlers, ...user.handlers]);
  const health = await FarWorkerHealth.load(settings, log);
  const isByQueue = settings.queues.length > 0 || settings.singleQueue !== undefined;
  const queues = queuesOf(settings, handlers.keys(), user.queues);
  try {
    const { worker, stop } = await carrier.start({
      handlers,
      queues,
      isByQueue,
      ownSlots: ownSlots(settings, handlers.keys()),
      settings: workerSettings(settings),
      // The client has tried for a while before it gives up on a call.
      watch: (store) => {
        const seen = watched(store, { host: nodeHost, log, called: carrier.called, lastsMs: 0 });
        return health?.watch(seen) ?? seen;
      },
      observer: observerOf(log),
    });
    const end = async (): Promise<void> => {
      health?.drain();
      await stop();
      await builtins.close();
      await health?.close();
      log.info("stopped");
    };
    const healthUrl = await health
      ?.listen(worker, handlers, isByQueue ? queues : [...handlers.keys()])
      .catch(async (error: unknown) => {
        await stop();
        throw startFailure(error, settings.port, call.command, "health-port");
      });
    log.info({ roles: ["worker"], ...carrier.told, ...(healthUrl !== undefined && { health: healthUrl }) }, "started");
    return { log, process: { stop: end } };
  } catch (error) {
    await builtins.close();
    throw refused(error);
  }
}

function observerOf(log: Log): WorkerObserver {
  return {
    // Nobody else keeps it.
    logged: (task, entry) => logTask(log, "warn", task, entry),
    unknownHandler: ({ execution, node, handler }, queue) =>
      log.warn({ execution_id: execution, node_id: node, handler, queue }, "gave back a task of an unknown handler"),
    degraded: (deaf, task, hasEnded) => logDegraded(log, deaf, task, hasEnded),
    heartbeatThreadLost: (reason) => log.error({ reason }, "the thread that kept the leases has ended"),
    heartbeatThreadSilent: (isSilent) => logSilence(log, isSilent),
  };
}

/** What the user can mend, with a hint; anything else as it is. */
function refused(error: unknown): unknown {
  if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
    const hint = "the key must have the role worker: MILLRACE_API_KEY";
    return new Failure(EXIT.notAllowed, error.message, { hint });
  }
  if (error instanceof ServerUnreachable) {
    const hint = "start one: millrace serve   or name it: --url http://…";
    return new Failure(EXIT.unreachable, error.message, { hint });
  }
  return error instanceof KafkaError ? startFailure(error, 0) : error;
}
