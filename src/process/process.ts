import { hostname } from "node:os";
import { extname } from "node:path";
import type { HealthServer } from "../api/http/health-server.ts";
import type { Route } from "../api/http/route.ts";
import type { ApiServer } from "../api/http/server.ts";
import type { Metrics } from "../api/metrics/metrics.ts";
import { Service } from "../api/service/service.ts";
import { MACHINES } from "../core/machines.ts";
import { Engine } from "../engine/engine.ts";
import type { Host } from "../host/host.ts";
import { nodeHost } from "../host/node-host.ts";
import type { JsonObject } from "../json/json.ts";
import type { Builtins } from "../handlers/builtins.ts";
import { busAddress } from "../settings/bus-address.ts";
import type { Role, Settings } from "../settings/declarations.ts";
import { shownAddress, type StoreAddress } from "../settings/store-address.ts";
import { nodeDefaults } from "./node-defaults.ts";
import type { Archive } from "../store/archive.ts";
import { withArchive } from "../store/cold-reads.ts";
import type { Store } from "../store/contract.ts";
import type { StoreError } from "../store/store-error.ts";
import type { Handler } from "../worker/handler.ts";
import { type LeaseKeeping, Worker } from "../worker/worker.ts";
import type { UserHandlers } from "./user-handlers.ts";
import { queuesFault, topicsOf } from "../bus/topics.ts";
import type { BusMembership } from "./bus-membership.ts";
import { archiveNotes, foreignStore, openArchive, shippingOf } from "./archive.ts";
import { briefError, type Log, logDegraded, logSilence, logTask } from "./log.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { type Api, loadApi, loadHealth, loadMeasuring } from "./load-api.ts";
import type { ShownLine } from "./log-routes.ts";
import { joinStore } from "./join-store.ts";
import { logged } from "./logged-store.ts";
import { isOwnStore, storeSettings } from "./open-store.ts";
import { healthOf, loadOf } from "./own-health.ts";
import { ownMemory } from "./own-memory.ts";
import { checkStoreSafety } from "./store-safety.ts";
import { WorkerRegistration } from "./registration.ts";
import { TraceExport, traceTarget } from "./trace-export.ts";
import { traced } from "./traced-store.ts";
import { logNames, TaskLogs } from "./task-logs.ts";
import { watched } from "./watched-store.ts";
import { openBuiltins, ownSlots, queuesOf, workerSettings } from "./worker-options.ts";

export interface ProcessOptions {
  readonly settings: Settings;
  readonly address: StoreAddress;
  /** For the secrets of handlers: `MILLRACE_SECRET_<NAME>`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly roles: readonly Role[];
  readonly user: UserHandlers;
  readonly log: Log;
  readonly version: string;
  /** Whether workflows may call this machine. */
  readonly loopback: boolean;
  /** Whether a process that serves no API tells its health, if the settings say where. */
  readonly tellsHealth?: boolean;
  readonly pages?: (service: Service, logs: ReadLines) => readonly Route[];
  readonly host?: Host;
}

/** What the handlers of an execution have logged. */
export type ReadLines = (execution: string) => Promise<readonly ShownLine[]>;

/** How long the last results may take to be committed when a process stops. */
const SETTLE_MS = 2_000;
/** Connections break, and are there again at once; a store that is away for longer is somebody's business. */
const OUTAGE_MS = 1_000;
/** Handlers that do not stop: how many of them others are told by name. */
const MAX_NOT_STOPPING = 10;

/** One process: a store, and whatever of engine, worker and API it was asked to be. */
export class MillraceProcess {
  readonly store: Store;
  readonly service: Service;
  /** Where the API listens, if it does. */
  readonly url: string | undefined;
  /** Resolves when the store is not there any more: all that is left is to stop. */
  readonly lost: Promise<StoreError>;
  readonly #parts: Parts;
  #stopping: Promise<void> | undefined;

  private constructor(parts: Parts, lost: Promise<StoreError>, url: string | undefined) {
    this.#parts = parts;
    this.store = parts.store;
    this.service = parts.service;
    this.lost = lost;
    this.url = url;
  }

  /** Whatever cannot be started is an error; what was started until then is stopped again. */
  static async start(options: ProcessOptions): Promise<MillraceProcess> {
    const { settings, address, log, host = nodeHost } = options;
    await checkStoreSafety(address, settings);
    checkBus(options);
    const api = options.roles.includes("api") ? await loadApi() : undefined;
    const tellsHealth = api === undefined && options.tellsHealth === true && settings.healthPort !== undefined;
    const health = tellsHealth ? await loadHealth() : undefined;
    const measuring = api === undefined && health === undefined ? undefined : await loadMeasuring();
    const archive = await openArchive(settings, host);
    const opened = await joinStore({ settings, address, roles: options.roles, archive, host, log }).catch(
      async (error: unknown) => {
        await archive?.close();
        throw error;
      },
    );
    // What every process would measure alike, such as lengths of queues, only servers report: one that is none needs no store to report.
    const metrics = measuring === undefined ? undefined : new measuring.Metrics(api === undefined ? undefined : opened);
    const isOwn = isOwnStore(address);
    const seen = isOwn ? opened : watched(opened, { host, log, called: "the store", lastsMs: OUTAGE_MS });
    const shown = logged(measuring === undefined ? seen : measuring.measured(seen, metrics!), log);
    const traces = tracesOf(options, host, () => service.traces);
    const store = traces === undefined ? shown : traced(shown, (execution) => traces.add(execution));
    const behind: Behind = archive === undefined ? {} : { archive };
    const service = serviceOf(options, store, host, behind);
    const rest = { options, host, store, service, isOwn, handlers: new Map(), queues: [] };
    const parts: Parts = Object.assign(behind, rest);
    if (traces !== undefined) parts.traces = traces;
    const foreign = Promise.withResolvers<StoreError>();
    parts.loseToArchive = () => foreign.resolve(foreignStore());
    const lost = Promise.race(opened.lost === undefined ? [foreign.promise] : [opened.lost, foreign.promise]);
    parts.metrics = metrics;
    if (health !== undefined) parts.leases = new LeaseWatch(host);
    void lost.then(({ code, message }) => log.fatal({ code }, message));
    try {
      if (archive !== undefined && api !== undefined) {
        metrics?.watchArchive(async () => (await archive.progress()).reduce((sum, one) => sum + one.behind, 0));
      }
      if (api !== undefined) parts.server = serverOf(parts, api, metrics!);
      // After all that takes the event loop: time begins for an engine when it hears from its store.
      startEngine(parts);
      await startWorker(parts);
      parts.service.start();
      const url = await parts.server?.listen();
      parts.url = url;
      await joinBus(parts);
      if (health !== undefined) parts.health = healthOf(parts, health, metrics!);
      const healthUrl = await parts.health?.listen();
      const told = { ...(url !== undefined && { url }), ...(healthUrl !== undefined && { health: healthUrl }) };
      log.info({ roles: options.roles, store: shownAddress(address), ...told }, "started");
      return new MillraceProcess(parts, lost, url);
    } catch (error) {
      await stopParts(parts);
      throw error;
    }
  }

  /** The user's handlers have changed: the worker serves them as they are now. */
  async refreshHandlers(): Promise<void> {
    serveHandlers(this.#parts);
    await this.#parts.registration?.tell();
  }

  /** How many handlers run here: a stop waits for them. */
  get handlersAtWork(): number {
    return this.#parts.worker?.load ?? 0;
  }

  /** Not ready first; takes nothing new; finishes or hands back; gives back what it owns; closes. */
  stop(): Promise<void> {
    this.#stopping ??= stopParts(this.#parts);
    return this.#stopping;
  }
}

interface Parts {
  readonly options: ProcessOptions;
  readonly host: Host;
  readonly store: Store;
  readonly service: Service;
  /** Nobody else can do what is left undone here. */
  readonly isOwn: boolean;
  /** The archive turned out to be that of another store. */
  loseToArchive?: () => void;
  metrics?: Metrics | undefined;
  readonly archive?: Archive;
  engine?: Engine;
  worker?: Worker;
  /** What the worker serves; it looks into both whenever it needs to. */
  readonly handlers: Map<string, Handler>;
  readonly queues: string[];
  logs?: TaskLogs;
  registration?: WorkerRegistration;
  builtins?: Builtins;
  server?: ApiServer;
  health?: HealthServer;
  /** Whether the worker can take tasks. */
  leases?: LeaseWatch;
  traces?: TraceExport;
  bus?: BusMembership;
  /** Where it listens, once it does. */
  url?: string | undefined;
}

/** What comes later than the service and is asked by it. */
interface Behind {
  readonly archive?: Archive;
  engine?: Engine;
  bus?: BusMembership;
}

function serviceOf({ user, env, settings }: ProcessOptions, store: Store, host: Host, behind: Behind): Service {
  const handlers = {
    get: (name: string) => user.entries.get(name),
    names: () => user.entries.keys(),
    allowMissing: settings.allowMissingHandlers,
    defaults: nodeDefaults(settings),
  };
  const { archive } = behind;
  const secret = secretsOf(env);
  const { maxQueueAge, maxStoreFill: fill, maxMemory } = settings;
  const highWater = { queueAgeMs: maxQueueAge * 1_000, fill, memory: maxMemory };
  const isStrict = settings.environment === "prod";
  const notes = {
    ...(archive !== undefined && archiveNotes(archive, behind, host)),
    ...(settings.bus !== undefined && { bus: () => behind.bus?.trouble }),
  };
  const rest = { host, handlers, isStrict, secret, highWater, memory: ownMemory, notes };
  return new Service({ store: archive === undefined ? store : withArchive(store, archive), ...rest });
}

/** Whoever commits the end of an execution tells of it, so that it is told once. */
function tracesOf(
  { settings, roles, log, version }: ProcessOptions,
  host: Host,
  traces: () => Service["traces"],
): TraceExport | undefined {
  const target = roles.includes("engine") ? traceTarget(settings) : undefined;
  if (target === undefined) return undefined;
  return new TraceExport({ target, host, log, version, spans: (execution) => traces().spans(execution) });
}

/** `{{ secrets.NAME }}` is `MILLRACE_SECRET_NAME` of this process. */
function secretsOf(env: ProcessOptions["env"]): (name: string) => string | undefined {
  return (name) => env[`MILLRACE_SECRET_${name}`];
}

function startEngine(parts: Parts): void {
  const { options, store, host, archive } = parts;
  const { log, settings, address } = options;
  if (!options.roles.includes("engine")) return;
  parts.engine = new Engine({
    store,
    host,
    machines: MACHINES,
    ...(archive !== undefined && { archive, notes: logNames }),
    settings: {
      retentionMs: Math.round(settings.retentionDays * 86_400_000),
      keepEnded: settings.retentionCount === 0 ? null : settings.retentionCount,
      shipping: shippingOf(settings, address),
    },
    observer: {
      madeRoom: (partition, count) => {
        parts.metrics?.removedEarly.inc(count);
        log.warn({ partition, count }, "the store fills up: what has ended is removed before its time");
      },
      archiveChanged: (trouble) =>
        trouble === undefined ? log.info("the archive answers") : log.error({ trouble }, "nothing can be archived"),
      archiveForeign: () => parts.loseToArchive?.(),
      archiveReplaced: (entity, version) =>
        log.error({ entity, version }, "the archive had another history of it, which is replaced by the store's"),
      recalled: (entity) => log.info({ entity }, "brought back from the archive"),
      quarantined: (entity, error) => log.error({ entity, error: briefError(error) }, "quarantined"),
      repaired: (entity, count) => log.warn({ entity, count }, "repaired a wait that nothing would have ended"),
      // Partitions change hands whenever an engine comes or goes: nobody has to look at that.
      steppedDown: (partition, why) =>
        log[why === "stopped" || why === "balanced" ? "info" : "warn"]({ partition, why }, "stepped down"),
      storeWentBack: (partition, acknowledged, found) =>
        log.error({ partition, acknowledged, found }, "the store has lost commits that it had acknowledged"),
    },
  });
  const { engine } = parts;
  parts.metrics?.watchEngine(() => engine.partitionsHeld);
  engine.start();
}

async function startWorker(parts: Parts): Promise<void> {
  const { options, store, host } = parts;
  const { settings, env, log } = options;
  if (!options.roles.includes("worker")) return;
  parts.builtins = openBuiltins(settings, host, options.loopback);
  serveHandlers(parts);
  const { handlers, queues } = parts;
  const logs = new TaskLogs(store, host);
  parts.logs = logs;
  const worker = new Worker({
    store: parts.leases?.watch(store) ?? store,
    host,
    handlers,
    queues,
    secret: secretsOf(env),
    leases: leasesOf(options, store),
    ownSlots: ownSlots(settings, handlers.keys()),
    settings: workerSettings(settings),
    observer: {
      logged: (task, entry) => {
        // The log of the execution has it.
        logTask(log, "debug", task, entry);
        logs.observer.logged(task, entry);
      },
      settled: (task, outcome) => logs.observer.settled(task, outcome),
      degraded: (deaf, task, hasEnded) => {
        logDegraded(log, deaf, task, hasEnded);
        // Others are asked why nothing goes on here.
        void parts.registration?.tell().catch(() => undefined);
      },
      unknownHandler: ({ execution, node, handler }, queue) =>
        log.warn({ execution_id: execution, node_id: node, handler, queue }, "gave back a task of an unknown handler"),
      heartbeatThreadLost: (reason) => log.error({ reason }, "the thread that kept the leases has ended"),
      heartbeatThreadSilent: (isSilent) => logSilence(log, isSilent),
    },
  });
  worker.start();
  parts.worker = worker;
  parts.metrics?.watchWorker(() => loadOf(worker, settings, handlers.keys()));
  const times = {
    heartbeatMs: settings.workerHeartbeatInterval * 1_000,
    aliveMs: settings.workerHeartbeatTimeout * 1_000,
  };
  parts.registration = new WorkerRegistration(store, host, worker.name, () => told(parts), times);
  await parts.registration.start();
}

function serveHandlers({ options, builtins, handlers, queues }: Parts): void {
  const { user, settings } = options;
  for (const [name, handler] of [...(builtins?.handlers ?? []), ...user.handlers]) handlers.set(name, handler);
  queues.splice(0, queues.length, ...queuesOf(settings, handlers.keys(), user.queues));
}

/** What others may know of the worker. */
function told({ options, worker, handlers: served, queues }: Parts): JsonObject {
  const { user, settings, version } = options;
  const handlers = [...served.keys()].map((name): JsonObject => {
    const { configSchema, outputSchema, defaultTimeoutSeconds } = user.entries.get(name) ?? {};
    return {
      name,
      ...(configSchema !== undefined && { config_schema: configSchema }),
      ...(outputSchema !== undefined && { output_schema: outputSchema }),
      ...(defaultTimeoutSeconds !== undefined && { timeout_seconds: defaultTimeoutSeconds }),
    };
  });
  const own = ownSlots(settings, served.keys());
  return {
    handlers,
    queues: [...queues],
    slots: settings.workerConcurrency,
    ...(own.size > 0 && { slots_of: Object.fromEntries(own) }),
    running: worker?.load ?? 0,
    degraded: worker?.degraded ?? false,
    ...(worker?.degraded === true && stuckOf(worker)),
    version,
    host: hostname(),
    pid: process.pid,
  };
}

/** What keeps its slots: nobody else can tell why tasks wait for a worker that is alive. */
function stuckOf({ notStopping, stuckQueues }: Worker): JsonObject {
  const shown = notStopping.slice(0, MAX_NOT_STOPPING).map(({ handler, execution, node, attempt }) => {
    return { handler, execution_id: execution, node_id: node, attempt };
  });
  return { slots_kept: notStopping.length, not_stopping: shown, stuck_queues: [...stuckQueues] };
}

/** In a store that others share, a handler that keeps the event loop busy must not lose its task to them. */
function leasesOf({ address, settings }: ProcessOptions, { capabilities }: Store): LeaseKeeping {
  if (isOwnStore(address)) return { kind: "process" };
  // As it is after a trip to another thread: without what is undefined.
  const { incarnation } = capabilities;
  const options = JSON.parse(JSON.stringify({ address, incarnation, settings: storeSettings(settings) })) as JsonObject;
  // Built, this file and that one are .js; from the sources both are .ts.
  const module = new URL(`./heartbeats${extname(import.meta.url)}`, import.meta.url).href;
  return { kind: "thread", source: { module, options } };
}

function serverOf({ options, service }: Parts, api: Api, metrics: Metrics): ApiServer {
  const { settings, log } = options;
  const perMinute = settings.ingressPerMinute;
  return new api.ApiServer({
    service,
    metrics,
    host: settings.host,
    port: settings.port,
    keys: settings.apiKeys.join(","),
    ingress: perMinute === 0 ? null : { limit: perMinute, windowSeconds: 60 },
    version: options.version,
    pages: [...api.logRoutes(service), ...(options.pages?.(service, (id) => api.linesOf(service, id)) ?? [])],
    log: ({ incident, route, error }) => log.error({ incident, route, error: briefError(error) }, "incident"),
  });
}

/** Said before anything begins. */
function checkBus({ settings, address, roles }: ProcessOptions): void {
  if (settings.bus === undefined || settings.busQueues.length === 0) return;
  if (!roles.includes("api")) return;
  const bus = busAddress(settings)!;
  const fault = "fault" in bus ? undefined : queuesFault(topicsOf(bus), settings.busQueues);
  if (fault !== undefined) throw new TypeError(`MILLRACE_BUS_QUEUES cannot be sent: ${fault}`);
  if (!isOwnStore(address)) return;
  throw new TypeError(
    "MILLRACE_BUS_QUEUES needs a store on Postgres or Redis: on SQLite and memory tasks live in the process, and after a restart all that are in Kafka would be sent again.",
  );
}

/** Servers are on it: whoever serves no API has no part in starts, and workers have their own command for it. */
async function joinBus(parts: Parts): Promise<void> {
  const { options, service, host } = parts;
  const { settings, roles, log } = options;
  const address = busAddress(settings);
  if (address === undefined || !roles.includes("api")) return;
  if ("fault" in address) throw new TypeError(address.fault);
  // Nobody loads it who has no bus.
  const { BusMembership } = await import("./bus-membership.ts");
  const { metrics } = parts;
  parts.bus = new BusMembership({ address, settings, service, host, log, metrics });
  await parts.bus.join();
}

async function stopParts(parts: Parts): Promise<void> {
  const { server, service, worker, logs, registration, engine, builtins, store, options } = parts;
  options.log.info("stopping");
  server?.drain();
  parts.health?.drain();
  // While the rest comes to its end, the other engines take over; without others it goes on until nobody needs it.
  const handedOver = parts.isOwn ? undefined : engine?.leave();
  // Whoever spreads requests over several of us has the time to notice.
  const isShared = server !== undefined && parts.url !== undefined && !parts.isOwn;
  const drained = isShared ? parts.host.sleep(options.settings.drainSeconds * 1_000) : undefined;
  await parts.bus?.stop();
  await registration?.stop();
  await worker?.stop();
  await logs?.close();
  await builtins?.close();
  await drained;
  await server?.close();
  service.stop();
  if (parts.isOwn && engine !== undefined) await settled(parts);
  await handedOver;
  await engine?.stop();
  await parts.traces?.close();
  await parts.health?.close();
  await store.close();
  await parts.archive?.close();
  options.log.info("stopped");
}

/** In a store of our own, what the worker has just reported would be done again if it were not committed now. */
async function settled({ store, host }: Parts): Promise<void> {
  const untilMs = host.monotonicMs() + SETTLE_MS;
  while (host.monotonicMs() < untilMs) {
    const counts = await store.queries.counts().catch(() => undefined);
    // Nothing comes to its end in a store that does not answer.
    if (counts === undefined || counts.inbox === 0) return;
    await host.sleep(10);
  }
}
