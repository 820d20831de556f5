import { Deadlines } from "../../inbox/deadlines.ts";
import type { Store } from "../../store/contract.ts";
import { ArchiveAway, StoreError } from "../../store/store-error.ts";
import { Refusal } from "./refusal.ts";

/** Longer than any wait that is asked of a store. */
const LONGEST_MS = 45_000;
const CALL_MS = 10_000;
/** Calls that may wait for something to happen. */
const WAITING: ReadonlySet<string> = new Set(["watch", "lease", "replies", "read"]);

/**
 * The same store, whose trouble is told from ours: a call that fails or is not answered becomes STORE_UNAVAILABLE, or
 * STORE_FULL if that is why, so that everything else that goes wrong is a bug.
 */
export function guarded(store: Store): Store {
  return {
    capabilities: store.capabilities,
    partitions: store.partitions,
    inbox: guardRole(store.inbox),
    journal: guardRole(store.journal),
    tasks: guardRole(store.tasks),
    records: guardRole(store.records),
    queries: guardRole(store.queries),
    close: () => store.close(),
  };
}

/** Whatever the store waits with keeps the process alive; this need not. */
const deadlines = new Deadlines(
  () => performance.now(),
  (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref()),
);

function guardRole<Role extends object>(role: Role): Role {
  const wrapped = new Map<string | symbol, unknown>();
  return new Proxy(role, {
    get: (target, name) => {
      let call = wrapped.get(name);
      if (call === undefined) {
        const method = Reflect.get(target, name) as unknown;
        if (typeof method !== "function") return method;
        const limitMs = WAITING.has(String(name)) ? LONGEST_MS : CALL_MS;
        call = (...args: unknown[]) => within(limitMs, () => Reflect.apply(method, target, args) as Promise<unknown>);
        wrapped.set(name, call);
      }
      return call;
    },
  });
}

/** What is told of a store that failed. */
export function storeTrouble(cause: unknown): Refusal {
  const isFull = (cause instanceof StoreError || cause instanceof Refusal) && cause.code === "STORE_FULL";
  const known = cause instanceof ArchiveAway ? { detail: cause.message } : {};
  return new Refusal(isFull ? "STORE_FULL" : "STORE_UNAVAILABLE", {}, { retryAfterSeconds: 1, ...known }, { cause });
}

function within<Result>(limitMs: number, call: () => Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      deadlines.delete(deadline);
      reject(storeTrouble(cause));
    };
    const deadline = deadlines.add(limitMs, () => fail(new Error(`no answer within ${limitMs} ms`)));
    const answered = (result: Result): void => {
      deadlines.delete(deadline);
      resolve(result);
    };
    try {
      call().then(answered, fail);
    } catch (cause) {
      fail(cause);
    }
  });
}
