import type { Host } from "../host/host.ts";
import type { Store } from "../store/contract.ts";
import { StoreError, type StoreErrorCode } from "../store/store-error.ts";
import { brief, type Log } from "./log.ts";

interface Watching {
  readonly host: Pick<Host, "monotonicMs">;
  readonly log: Pick<Log, "error" | "warn">;
  /** What does not answer: the store, or the server that stands for it. */
  readonly called: string;
  /** What passes sooner is not worth a line: it is tried again, and nobody has noticed. */
  readonly lastsMs: number;
}

/**
 * The same store. That it does not answer any more, and that it is back, stands in the log: whoever calls it tries again and
 * says nothing, so that a worker without tasks and one without a store would look the same.
 */
export function watched(store: Store, watching: Watching): Store {
  const outage = new Outage(watching);
  // Each of engine, API and worker calls one of these again and again.
  const seen = {
    partitions: watchedRole(store.partitions, outage),
    inbox: watchedRole(store.inbox, outage),
    tasks: watchedRole(store.tasks, outage),
  };
  return {
    capabilities: store.capabilities,
    ...seen,
    journal: store.journal,
    records: store.records,
    queries: store.queries,
    close: () => store.close(),
  };
}

function watchedRole<Role extends object | undefined>(role: Role, outage: Outage): Role {
  // What stands for a store over HTTP has only what a worker calls.
  if (role === undefined) return role;
  const calls = new Map<string | symbol, unknown>();
  return new Proxy(role, {
    get: (target, name) => {
      let call = calls.get(name);
      if (call !== undefined) return call;
      const method = Reflect.get(target, name) as unknown;
      if (typeof method !== "function") return method;
      call = async (...args: unknown[]) => {
        try {
          const answer: unknown = await Reflect.apply(method, target, args);
          outage.end();
          return answer;
        } catch (error) {
          outage.note(error);
          throw error;
        }
      };
      calls.set(name, call);
      return call;
    },
  });
}

const TOLD_ELSEWHERE: ReadonlySet<StoreErrorCode> = new Set(["STORE_FULL", "STORE_LOST"]);

/** From the first call that fails to the first that does not. */
class Outage {
  readonly #watching: Watching;
  #sinceMs: number | undefined;
  #isTold = false;

  constructor(watching: Watching) {
    this.#watching = watching;
  }

  note(error: unknown): void {
    // A store that is full, or lost, answers, and is told of elsewhere.
    if (error instanceof StoreError && TOLD_ELSEWHERE.has(error.code)) return;
    const { host, log, called, lastsMs } = this.#watching;
    this.#sinceMs ??= host.monotonicMs();
    if (this.#isTold || host.monotonicMs() - this.#sinceMs < lastsMs) return;
    this.#isTold = true;
    const trouble = brief(error instanceof Error ? error.message : String(error));
    log.error({ trouble }, `${called} cannot be used; trying again until it can`);
  }

  end(): void {
    if (this.#sinceMs === undefined) return;
    const { host, log, called } = this.#watching;
    const seconds = Math.round((host.monotonicMs() - this.#sinceMs) / 100) / 10;
    if (this.#isTold) log.warn({ seconds }, `${called} can be used again`);
    this.#sinceMs = undefined;
    this.#isTold = false;
  }
}
