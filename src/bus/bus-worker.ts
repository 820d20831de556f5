import { hostname } from "node:os";
import { extname } from "node:path";
import type { Host } from "../host/host.ts";
import { nodeHost } from "../host/node-host.ts";
import type { JsonObject } from "../json/json.ts";
import type { BusAddress } from "../settings/bus-address.ts";
import type { Store } from "../store/contract.ts";
import type { Handler } from "../worker/handler.ts";
import { Worker, type WorkerObserver, type WorkerSettings } from "../worker/worker.ts";
import { BusStore } from "./bus-store.ts";
import { LEASE_SECONDS } from "./dispatcher.ts";
import { openKafka } from "./kafka-client.ts";
import { topicsOf } from "./topics.ts";

export interface BusWorkerOptions {
  readonly address: BusAddress;
  /** Of topics that are made here. */
  readonly partitions: number;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly queues: readonly string[];
  readonly ownSlots?: ReadonlyMap<string, number>;
  readonly settings: Partial<WorkerSettings>;
  readonly observer: WorkerObserver;
  /** Notices whether Kafka answers. */
  readonly watch?: (store: Store) => Store;
}

export interface BusWorker {
  readonly worker: Worker;
  readonly stop: () => Promise<void>;
}

/** How long a look for tasks waits. */
const POLL_MS = 2_000;
const ANNOUNCE_MS = 5_000;
const HEARTBEAT_MS = 5_000;

/** A worker that takes its tasks from Kafka and tells their results there: it needs no server, and no store. */
export async function startBusWorker(options: BusWorkerOptions): Promise<BusWorker> {
  const { address, partitions, handlers, queues, ownSlots, settings, observer, watch } = options;
  const worker = `${hostname()}-${process.pid}-${nodeHost.id()}`;
  const { bus, close } = await openBusStore({ address, partitions, worker, host: nodeHost });
  const beats = { address, partitions, worker } as unknown as JsonObject;
  // Built, this file and that one are .js; from the sources both are .ts.
  const module = new URL(`./bus-heartbeats${extname(import.meta.url)}`, import.meta.url).href;
  const running = new Worker({
    store: watch?.(bus.store) ?? bus.store,
    host: nodeHost,
    handlers,
    queues,
    ...(ownSlots !== undefined && { ownSlots }),
    settings: { pollMs: POLL_MS, ...settings, ...leaseOf(settings) },
    leases: { kind: "thread", source: { module, options: beats } },
    observer,
  });
  const ended = new AbortController();
  try {
    // Whoever starts a worker wants to know that there is a bus, and that it may write there.
    await bus.announce([...handlers.keys()], queues);
  } catch (error) {
    await close();
    throw error;
  }
  running.start();
  const announcing = announceAgain(bus, options, ended.signal);
  const stop = async (): Promise<void> => {
    const stopped = bus.stopLeasing();
    await running.stop();
    await stopped;
    ended.abort();
    await announcing;
    await close();
  };
  return { worker: running, stop };
}

/** Servers say how long a task stays with a worker that is silent, whatever it would like. */
function leaseOf({ heartbeatMs = HEARTBEAT_MS }: Partial<WorkerSettings>): Partial<WorkerSettings> {
  const leaseMs = LEASE_SECONDS * 1_000;
  return { leaseMs, heartbeatMs: Math.min(heartbeatMs, leaseMs / 3) };
}

export interface BusStoreParts {
  readonly address: BusAddress;
  readonly partitions: number;
  readonly worker: string;
  readonly host: Host;
}

/** A connection of its own, and what a worker needs of a store over it. */
export async function openBusStore(parts: BusStoreParts): Promise<{ bus: BusStore; close: () => Promise<void> }> {
  const { address, partitions, worker, host } = parts;
  const kafka = await openKafka({ address, partitions, client: worker });
  const { prefix } = address;
  const topics = topicsOf(address);
  const bus = new BusStore({ kafka, topics, prefix, host, worker });
  const close = async (): Promise<void> => {
    await bus.stopLeasing();
    await kafka.close();
  };
  try {
    await kafka.makeTopics([topics.complete, topics.cancel, topics.rejected]);
  } catch (error) {
    await close();
    throw error;
  }
  return { bus, close };
}

/** Servers forget a worker that they do not hear of. */
async function announceAgain(bus: BusStore, { handlers, queues }: BusWorkerOptions, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    await nodeHost.sleep(ANNOUNCE_MS, ended);
    if (!ended.aborted) await bus.announce([...handlers.keys()], queues).catch(() => undefined);
  }
}
