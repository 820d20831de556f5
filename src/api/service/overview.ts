import type { Host } from "../../host/host.ts";
import type { Json } from "../../json/json.ts";
import type { Registration, Store } from "../../store/contract.ts";
import { liveWorkers } from "./handler-directory.ts";
import type { PageOf } from "./paging.ts";

/** A part of this process that may not be ready: undefined if it is, else why not. */
export type ReadyCheck = () => Promise<string | undefined> | string | undefined;

export interface Readiness {
  readonly ready: boolean;
  /** By part: "ok", or what is wrong with it. */
  readonly parts: Readonly<Record<string, string>>;
}

export interface Limit {
  readonly name: string;
  readonly kind: "rate";
  readonly limit: number;
  readonly window_seconds: number;
}

const STORE_MS = 2_000;

/** What is alive, what waits, what is limited. */
export class Overview {
  readonly #store: Store;
  readonly #host: Host;
  readonly #checks: ReadonlyMap<string, ReadyCheck>;
  /** Parts that may be in trouble without being in the way. */
  readonly #notes: ReadonlyMap<string, ReadyCheck>;

  constructor(
    store: Store,
    host: Host,
    checks: Readonly<Record<string, ReadyCheck>>,
    notes: Readonly<Record<string, ReadyCheck>> = {},
  ) {
    this.#store = store;
    this.#host = host;
    this.#checks = new Map(Object.entries(checks));
    this.#notes = new Map(Object.entries(notes));
  }

  async workers(): Promise<PageOf<Json>> {
    const registrations = await this.#store.records.registered();
    const items = liveWorkers(registrations).map(({ process, handlers, queues, told }) => ({
      ...told,
      worker_id: process,
      handlers: [...handlers],
      queues: [...queues],
    }));
    return { items: items.sort((a, b) => (a.worker_id < b.worker_id ? -1 : 1)), next_cursor: null };
  }

  async queues(): Promise<PageOf<Json>> {
    const [{ queued }, registrations] = await Promise.all([
      this.#store.queries.counts(),
      this.#store.records.registered(),
    ]);
    const served = serving(registrations);
    const names = new Set([...Object.keys(queued), ...served.keys()]);
    const items = [...names]
      .sort()
      .map((name) => ({ name, queued: queued[name] ?? 0, workers: served.get(name) ?? 0 }));
    return { items, next_cursor: null };
  }

  /** Whether requests can be served, and what is in the way if not. */
  async readiness(): Promise<Readiness> {
    const parts: Record<string, string> = { store: await this.#storeState() };
    for (const [name, check] of this.#checks) parts[name] = (await check()) ?? "ok";
    const ready = Object.values(parts).every((state) => state === "ok");
    for (const [name, note] of this.#notes) parts[name] = (await note()) ?? "ok";
    return { ready, parts };
  }

  async #storeState(): Promise<string> {
    const answered = new AbortController();
    const silence = this.#host.sleep(STORE_MS, answered.signal).then(() => "does not answer");
    try {
      return await Promise.race([this.#store.queries.counts().then(() => "ok"), silence]);
    } catch {
      return "does not answer";
    } finally {
      answered.abort("answered");
    }
  }
}

/** How many workers take tasks from each queue. */
export function serving(registrations: readonly Registration[]): ReadonlyMap<string, number> {
  const served = new Map<string, number>();
  for (const { handlers, queues } of liveWorkers(registrations)) {
    for (const queue of new Set([...queues, ...(queues.length === 0 ? handlers : [])])) {
      served.set(queue, (served.get(queue) ?? 0) + 1);
    }
  }
  return served;
}
