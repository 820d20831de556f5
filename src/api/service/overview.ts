import type { Host } from "../../host/host.ts";
import type { Store } from "../../store/contract.ts";
import { liveWorkers, notStopping, serving } from "./handler-directory.ts";
import type { PageOf } from "./paging.ts";
import type { Pressure } from "./pressure.ts";
import { answers, type Readiness, readinessOf, type ReadyChecks } from "./readiness.ts";

export interface Limit {
  readonly name: string;
  readonly kind: "rate";
  readonly limit: number;
  readonly window_seconds: number;
}

export interface ShownQueue {
  readonly name: string;
  readonly queued: number;
  readonly oldest_seconds: number | null;
  readonly leased: number;
  readonly workers: number;
  readonly stuck_workers: number;
}

export interface ShownWorker {
  readonly worker_id: string;
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
}

const MAX_SHOWN = 5;

/** What is alive, what waits, what is limited. */
export class Overview {
  readonly #store: Store;
  readonly #host: Host;
  /** Parts that may be in trouble without being in the way. */
  readonly #notes: ReadyChecks;

  constructor(store: Store, host: Host, pressure: Pressure, notes: ReadyChecks = {}) {
    this.#store = store;
    this.#host = host;
    const own: ReadyChecks = {
      engines: () => this.#engines(),
      queues: () => this.#unserved(),
      workers: () => this.#stuck(),
      admission: async () => (await pressure.closed())?.sentence,
    };
    this.#notes = { ...own, ...notes };
  }

  async workers(): Promise<PageOf<ShownWorker>> {
    const registrations = await this.#store.records.registered();
    const items = liveWorkers(registrations).map(({ process, handlers, queues, told }) => ({
      ...told,
      worker_id: process,
      handlers: [...handlers],
      queues: [...queues],
    }));
    return { items: items.sort((a, b) => (a.worker_id < b.worker_id ? -1 : 1)), next_cursor: null };
  }

  async queues(): Promise<PageOf<ShownQueue>> {
    const [counts, registrations] = await Promise.all([this.#store.queries.counts(), this.#store.records.registered()]);
    const { queued, leasedOf, oldestAtMs, storeTimeMs } = counts;
    const served = serving(registrations);
    const names = new Set([...Object.keys(queued), ...Object.keys(leasedOf ?? {}), ...served.keys()]);
    const items = [...names].sort().map((name) => {
      const atMs = oldestAtMs?.[name];
      return {
        name,
        queued: queued[name] ?? 0,
        oldest_seconds: atMs === undefined ? null : Math.max(0, storeTimeMs - atMs) / 1_000,
        leased: leasedOf?.[name] ?? 0,
        workers: served.get(name)?.workers ?? 0,
        stuck_workers: served.get(name)?.stuck ?? 0,
      };
    });
    return { items, next_cursor: null };
  }

  /** Whether requests can be served, and what is in the way if not. */
  readiness(): Promise<Readiness> {
    return readinessOf({ store: answers(this.#host, () => this.#store.queries.counts()) }, this.#notes);
  }

  /** Requests are taken, and answered with NO_OWNER. */
  async #engines(): Promise<string | undefined> {
    const registrations = await this.#store.records.registered();
    return registrations.some(({ role }) => role === "engine") ? undefined : "none is alive, so nothing is decided";
  }

  async #unserved(): Promise<string | undefined> {
    const { items } = await this.queues();
    const unserved = items.filter(({ queued, workers }) => queued > 0 && workers === 0);
    if (unserved.length === 0) return undefined;
    const shown = unserved.slice(0, MAX_SHOWN).map(({ name, queued }) => `"${name}" (${queued} waiting)`);
    return `nobody serves ${shown.join(", ")}${unserved.length > MAX_SHOWN ? " …" : ""}`;
  }

  /** Handlers that were asked to stop keep slots. Where they keep all there are, what waits there waits for them. */
  async #stuck(): Promise<string | undefined> {
    const degraded = liveWorkers(await this.#store.records.registered()).filter(
      ({ told }) => told["degraded"] === true,
    );
    if (degraded.length === 0) return undefined;
    const shown = degraded.slice(0, MAX_SHOWN).map((worker) => {
      // Whoever asks for health need not be allowed to see executions.
      const handlers = new Set(notStopping(worker).map(({ handler }) => `"${handler}"`));
      const isStuck = worker.stuckQueues.length > 0;
      return `${[...handlers].join(", ")} in ${worker.process}${isStuck ? ", which takes nothing more until one of them ends" : ""}`;
    });
    return `handlers do not stop when asked: ${shown.join("; ")}${degraded.length > MAX_SHOWN ? " …" : ""}`;
  }
}
