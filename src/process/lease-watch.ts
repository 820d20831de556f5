import type { Host } from "../host/host.ts";
import type { Store, Tasks } from "../store/contract.ts";

/** Connections break, and are there again at once. */
const LASTS_MS = 1_000;

/** Knows since when a worker cannot take tasks: a store may answer whoever reads, and refuse whoever takes. */
export class LeaseWatch {
  readonly #host: Pick<Host, "monotonicMs">;
  #failingSinceMs: number | undefined;

  constructor(host: Pick<Host, "monotonicMs">) {
    this.#host = host;
  }

  /** The same store, for the worker. */
  watch(store: Store): Store {
    const { capabilities, partitions, inbox, journal, tasks, records, queries } = store;
    const close = (): Promise<void> => store.close();
    return { capabilities, partitions, inbox, journal, tasks: this.#watched(tasks), records, queries, close };
  }

  get trouble(): string | undefined {
    if (this.#failingSinceMs === undefined) return undefined;
    const failingMs = this.#host.monotonicMs() - this.#failingSinceMs;
    return failingMs < LASTS_MS ? undefined : `has not been able to take tasks for ${Math.round(failingMs / 1_000)} s`;
  }

  #watched(tasks: Tasks): Tasks {
    return {
      lease: async (request) => {
        try {
          const leased = await tasks.lease(request);
          this.#failingSinceMs = undefined;
          return leased;
        } catch (error) {
          this.#failingSinceMs ??= this.#host.monotonicMs();
          throw error;
        }
      },
      heartbeat: (...args) => tasks.heartbeat(...args),
      settle: (results) => tasks.settle(results),
      lapse: (limit) => tasks.lapse(limit),
      restore: (given) => tasks.restore(given),
    };
  }
}
