import type { JsonObject } from "../json/json.ts";
import type { StoreError } from "../store/store-error.ts";
import { httpClient, tokenOf } from "./connect.ts";
import { type Duration, durationMs } from "./duration.ts";
import { type GatewayWorkerOptions, startGatewayWorker } from "./gateway-worker.ts";
import { type Handlers, readyHandlers } from "./handlers.ts";
import type { HttpClient } from "./http-client.ts";
import { checkOptions, type Names } from "./known-options.ts";
import { type Served, servedBy } from "./served.ts";
import type { Workflow } from "./workflow.ts";

export interface WorkerOptions {
  /** A server, over HTTP; by default MILLRACE_URL, or the address of `millrace dev`. */
  readonly url?: string;
  /** A key of the server with the role `worker`; by default MILLRACE_API_KEY. */
  readonly token?: string;
  /** Instead of a server: the store that the engines share, as `postgres://…` or `redis://…`. */
  readonly store?: string;
  /** Instead of either: the Kafka that a server sends tasks to, as `kafka://HOST:PORT,…/PREFIX`. */
  readonly bus?: string;
  /** Workflows whose functions it runs. */
  readonly workflows?: readonly Workflow<never, unknown>[];
  /** Handlers by name. */
  readonly handlers?: Handlers;
  /** How many tasks it runs at a time; 4 by default. */
  readonly concurrency?: number;
  /** Takes tasks of these queues; by default those of its handlers, unless a node names another. */
  readonly queues?: readonly string[];
  /** How long a stop waits for what runs; 30 s by default. */
  readonly grace?: Duration;
  /** What functions log, and the stacks of what they throw, where there is nobody else to keep it: over HTTP. */
  readonly onLog?: (entry: WorkerLog) => void;
}

const WORKER_OPTIONS: Names<WorkerOptions> = {
  url: true,
  token: true,
  store: true,
  bus: true,
  workflows: true,
  handlers: true,
  concurrency: true,
  queues: true,
  grace: true,
  onLog: true,
};

export interface WorkerLog {
  readonly executionId: string;
  readonly node: string;
  readonly attempt: number;
  /** `error`: the message is the stack of what the function threw. */
  readonly level?: "error";
  readonly message: string;
  readonly fields?: JsonObject;
}

/** A worker far from the engines. */
export interface RunningWorker extends AsyncDisposable {
  /** Resolves once it takes tasks. If it could not, it may be called again. */
  start(): Promise<void>;
  /** Takes nothing more, waits for what runs, and gives back the rest. */
  stop(): Promise<void>;
  /** Resolves with the reason if it cannot go on and stops by itself: the store that it shares is not there any more. */
  readonly lost: Promise<StoreError>;
}

/** A worker for the functions of workflows and for handlers by name; it runs until it is stopped. */
export function worker(options: WorkerOptions): RunningWorker {
  checkOptions("worker", WORKER_OPTIONS, options);
  const ready = readyHandlers(options.handlers);
  const served = servedBy(options.workflows ?? [], ready);
  if (served.handlers.size === 0) throw new TypeError("A worker needs workflows or handlers to serve");
  if ([options.bus, options.store, options.url].filter((place) => place !== undefined).length > 1)
    throw new TypeError("A worker has a server, a store or a bus, and no two of them");
  const http = options.store === undefined && options.bus === undefined ? clientOf(options) : undefined;
  const lost = Promise.withResolvers<StoreError>();
  const run = async (): Promise<() => Promise<void>> => {
    if (http !== undefined) return startOver(http, options, served);
    if (options.bus !== undefined) return startOnBus(options.bus, options, served);
    // A worker over HTTP loads neither a store nor what checks definitions.
    const { startStoreWorker } = await import("./store-worker.ts");
    const started = await startStoreWorker({ ...options, store: options.store! }, served, ready);
    const end = (reason: StoreError): Promise<void> => {
      lost.resolve(reason);
      return (stopping ??= stop());
    };
    // If that fails, whoever stops it is told.
    started.lost.then(end).catch(() => undefined);
    return () => started.stop();
  };
  let running: Promise<() => Promise<void>> | undefined;
  const stop = async (): Promise<void> => {
    const end = await running?.catch(() => undefined);
    await end?.();
    await http?.close();
    ready.close();
  };
  let stopping: Promise<void> | undefined;
  return {
    start: async () => {
      const starting = (running ??= run());
      try {
        await starting;
      } catch (error) {
        // What it could not reach may be there the next time.
        if (running === starting) running = undefined;
        throw error;
      }
    },
    stop: () => (stopping ??= stop()),
    lost: lost.promise,
    [Symbol.asyncDispose]: () => (stopping ??= stop()),
  };
}

function clientOf({ url, token }: WorkerOptions): HttpClient {
  return httpClient({ ...(url !== undefined && { url }), ...(token !== undefined && { token }) });
}

async function startOver(http: HttpClient, options: WorkerOptions, { handlers }: Served): Promise<() => Promise<void>> {
  const { queues } = options;
  const { stop } = await startGatewayWorker({
    http,
    token: tokenOf(options),
    handlers,
    queues,
    ...ways(options),
  });
  return stop;
}

async function startOnBus(bus: string, options: WorkerOptions, served: Served): Promise<() => Promise<void>> {
  // Only whoever has a bus loads it.
  const [{ readSettings }, { busAddress }, { startBusWorker }] = await Promise.all([
    import("../settings/read-settings.ts"),
    import("../settings/bus-address.ts"),
    import("../bus/bus-worker.ts"),
  ]);
  const { settings } = readSettings({ env: process.env, flags: { bus } });
  const address = busAddress(settings)!;
  if ("fault" in address) throw new TypeError(address.fault);
  const { stop } = await startBusWorker({
    address,
    partitions: settings.busPartitions,
    handlers: served.handlers,
    queues: options.queues ?? [...new Set([...served.handlers.keys(), ...served.queues])],
    ...ways(options),
  });
  return stop;
}

/** How it works, whatever brings its tasks. */
function ways({
  concurrency = 4,
  grace = "30s",
  onLog,
}: WorkerOptions): Pick<GatewayWorkerOptions, "settings" | "observer"> {
  return {
    settings: { slots: concurrency, graceMs: durationMs(grace, "grace") },
    observer: {
      logged: ({ execution, node, attempt }, entry) => onLog?.({ executionId: execution, node, attempt, ...entry }),
    },
  };
}
