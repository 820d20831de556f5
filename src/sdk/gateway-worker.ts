import { hostname } from "node:os";
import { extname } from "node:path";
import { nodeHost } from "../host/node-host.ts";
import type { Json } from "../json/json.ts";
import type { Store } from "../store/contract.ts";
import type { Handler } from "../worker/handler.ts";
import { Worker, type WorkerObserver, type WorkerSettings } from "../worker/worker.ts";
import { GatewayStore } from "./gateway-store.ts";
import type { HttpClient } from "./http-client.ts";

export interface GatewayWorkerOptions {
  readonly http: HttpClient;
  /** The key that the client has: the thread that keeps the leases has a client of its own. */
  readonly token: string | undefined;
  readonly handlers: ReadonlyMap<string, Handler>;
  /** Takes tasks of these queues; by default those of its handlers. */
  readonly queues?: readonly string[] | undefined;
  readonly ownSlots?: ReadonlyMap<string, number>;
  readonly settings: Partial<WorkerSettings>;
  readonly observer: WorkerObserver;
  /** Notices whether the server answers. */
  readonly watch?: (store: Store) => Store;
}

/** How long a lease over HTTP waits for a task. A connection that has died meanwhile is noticed a few seconds later. */
const POLL_MS = 10_000;

export interface GatewayWorker {
  readonly worker: Worker;
  readonly stop: () => Promise<void>;
}

/** A worker over the HTTP API of a server, without credentials of its store. */
export async function startGatewayWorker(options: GatewayWorkerOptions): Promise<GatewayWorker> {
  const { http, token, handlers, queues, ownSlots, settings, observer, watch } = options;
  const name = `${hostname()}-${process.pid}-${nodeHost.id()}`;
  const by = queues === undefined ? "handlers" : "queues";
  const gateway = new GatewayStore(http, nodeHost, { worker: name, by });
  const beats: Json = { url: http.url, worker: name, ...(token !== undefined && { token }) };
  // Built, this file and that one are .js; from the sources both are .ts.
  const module = new URL(`./gateway-heartbeats${extname(import.meta.url)}`, import.meta.url).href;
  const running = new Worker({
    store: watch?.(gateway.store) ?? gateway.store,
    host: nodeHost,
    handlers,
    queues: queues ?? [...handlers.keys()],
    ...(ownSlots !== undefined && { ownSlots }),
    settings: { pollMs: POLL_MS, ...settings },
    leases: { kind: "thread", source: { module, options: beats } },
    observer,
  });
  // Whoever starts a worker wants to know that there is a server, and that it may work for it.
  await http.json({
    method: "POST",
    path: "/v1/tasks/heartbeat",
    body: { worker_id: name, tokens: [] },
    key: nodeHost.id(),
  });
  running.start();
  const stop = async (): Promise<void> => {
    gateway.stopLeasing();
    await running.stop();
  };
  return { worker: running, stop };
}
