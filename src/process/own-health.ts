import type { HealthServer } from "../api/http/health-server.ts";
import type { Metrics, WorkerLoad } from "../api/metrics/metrics.ts";
import { answers, readinessOf, type ReadyCheck, type ReadyChecks } from "../api/service/readiness.ts";
import type { Service } from "../api/service/service.ts";
import type { Engine } from "../engine/engine.ts";
import type { Host } from "../host/host.ts";
import type { Settings } from "../settings/declarations.ts";
import type { Archive } from "../store/archive.ts";
import type { Store } from "../store/contract.ts";
import type { Worker } from "../worker/worker.ts";
import { archiveNotes } from "./archive.ts";
import type { LeaseWatch } from "./lease-watch.ts";
import type { Health } from "./load-api.ts";
import { briefError, type Log } from "./log.ts";
import { ownSlots } from "./worker-options.ts";

interface HealthParts {
  readonly options: { readonly settings: Settings; readonly log: Log };
  readonly host: Host;
  readonly service: Service;
  readonly archive?: Archive;
  readonly engine?: Engine;
  readonly worker?: Worker;
  readonly queues: readonly string[];
  readonly leases?: LeaseWatch;
}

/** For a process that serves no API: how it is itself, and not how the fleet is. */
export function healthOf(parts: HealthParts, health: Health, metrics: Metrics): HealthServer {
  const { options, host, service, engine, worker, archive } = parts;
  const { settings, log } = options;
  const { store } = service;
  const checks: ReadyChecks = {
    store: answers(host, () => store.records.registered()),
    ...(engine !== undefined && { engine: engineCheck(engine) }),
    ...(worker !== undefined && { worker: workerCheck(worker, parts.queues, parts.leases) }),
  };
  const notes: ReadyChecks = {
    ...(worker !== undefined && { handlers: () => notStopping(worker) }),
    ...(archive !== undefined && engine !== undefined && archiveNotes(archive, { engine }, host)),
  };
  return healthServer(health, { settings, host, log, metrics, checks, notes, store });
}

interface Told {
  readonly settings: Settings;
  readonly host: Host;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Without these it is not ready. */
  readonly checks: ReadyChecks;
  readonly notes: ReadyChecks;
  /** Where further keys are. */
  readonly store?: Store;
}

export function healthServer({ HealthServer, Keys }: Health, told: Told): HealthServer {
  const { settings, host, log, metrics, checks, notes, store } = told;
  return new HealthServer({
    host,
    metrics,
    readiness: () => readinessOf(checks, notes),
    keys: new Keys(settings.apiKeys.join(","), store),
    address: settings.host,
    port: settings.healthPort ?? 0,
    log: ({ incident, route, error }) => log.error({ incident, route, error: briefError(error) }, "incident"),
  });
}

/** Whether the engine does its work. What nobody has given it yet it stands by for: that is well too. */
function engineCheck(engine: Pick<Engine, "isCurrent">): ReadyCheck {
  return () => (engine.isCurrent ? undefined : "has had no answer from its store for longer than its leases last");
}

/** Whether the worker takes tasks, or would. */
export function workerCheck(
  worker: Pick<Worker, "stuckQueues" | "notStopping">,
  queues: readonly string[],
  leases: Pick<LeaseWatch, "trouble"> | undefined,
): ReadyCheck {
  return () => stuck(worker, queues) ?? leases?.trouble;
}

export function loadOf(worker: Worker, settings: Settings, handlers: Iterable<string>): WorkerLoad {
  const own = ownSlots(settings, handlers).values();
  const slots = own.reduce((sum, size) => sum + size, settings.workerConcurrency);
  return { tasks: worker.load, slots, kept: worker.notStopping.length };
}

function stuck(worker: Pick<Worker, "stuckQueues" | "notStopping">, queues: readonly string[]): string | undefined {
  const among = new Set(worker.stuckQueues);
  if (among.size === 0 || queues.some((queue) => !among.has(queue))) return undefined;
  return `takes nothing more, since its handlers ${notStopping(worker) ?? ""}`;
}

/** With the slots that are left it goes on. */
export function notStopping(worker: Pick<Worker, "notStopping">): string | undefined {
  const handlers = new Set(worker.notStopping.map(({ handler }) => `"${handler}"`));
  return handlers.size === 0 ? undefined : `do not stop when asked: ${[...handlers].join(", ")}`;
}
