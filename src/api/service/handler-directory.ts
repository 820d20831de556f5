import { type HandlerCatalogue, type HandlerEntry, NO_HANDLERS, type NodeDefaults } from "../../definition/handlers.ts";
import type { Host } from "../../host/host.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { Registration, Store } from "../../store/contract.ts";
import { HANDLER_KNOWN_MS } from "../limits.ts";

/**
 * A registration with this in front says that a handler was served, not that a process is alive. No process has a colon
 * in its name.
 */
const SEEN = "handler:";
const FRESH_MS = 2_000;
const NOTED_AGAIN_MS = 3_600_000;

export interface KnownEntries {
  readonly entries: ReadonlyMap<string, HandlerEntry>;
  /** Handlers that somebody serves now. */
  readonly alive: ReadonlySet<string>;
  /** Queues that somebody takes tasks from now. */
  readonly queues: ReadonlySet<string>;
  /** Another number, other entries. */
  readonly revision: number;
}

/** A process that serves tasks, as it registered itself. */
export interface LiveWorker {
  readonly process: string;
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
  readonly told: { readonly [key: string]: Json };
}

/**
 * Which handlers there are: registered in this process, served by a worker that is alive, or named by one in the last
 * seven days, so that a worker that restarts does not make every submit fail.
 */
export class HandlerDirectory {
  readonly #store: Store;
  readonly #host: Host;
  readonly #local: HandlerCatalogue;
  readonly #noted = new Map<string, number>();
  #known: KnownEntries & { readonly text: string; readonly atMs: number };

  constructor(store: Store, host: Host, local: HandlerCatalogue = NO_HANDLERS) {
    this.#store = store;
    this.#host = host;
    this.#local = local;
    this.#known = { entries: new Map(), alive: new Set(), queues: new Set(), revision: 0, text: "", atMs: -Infinity };
  }

  /** What nodes get that state none. */
  get defaults(): NodeDefaults {
    return this.#local.defaults ?? {};
  }

  async entries(): Promise<KnownEntries> {
    if (this.#host.monotonicMs() - this.#known.atMs > FRESH_MS) await this.refresh();
    return this.#known;
  }

  /** Looks again; tells whether anything is different. */
  async refresh(): Promise<boolean> {
    const registrations = await this.#store.records.registered();
    const entries = new Map<string, HandlerEntry>();
    const alive = new Set<string>();
    for (const { process } of registrations)
      if (process.startsWith(SEEN)) entries.set(process.slice(SEEN.length), SERVED);
    const served = new Set<string>();
    const queues = new Set<string>();
    for (const { handlers, told, queues: taken } of liveWorkers(registrations)) {
      for (const queue of taken) queues.add(queue);
      for (const name of handlers) {
        entries.set(name, entryOf(told, name));
        alive.add(name);
        served.add(name);
      }
    }
    for (const name of this.#local.names()) {
      entries.set(name, this.#local.get(name) ?? SERVED);
      alive.add(name);
    }
    await this.note([...served]);
    const text = JSON.stringify([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
    const changed = text !== this.#known.text;
    const revision = this.#known.revision + (changed ? 1 : 0);
    this.#known = { entries, alive, queues, revision, text, atMs: this.#host.monotonicMs() };
    return changed;
  }

  /** Whether somebody takes tasks from this queue now, as far as is known. */
  async serves(queue: string): Promise<boolean> {
    await this.entries();
    return this.#known.queues.has(queue) || this.#known.alive.has(queue);
  }

  /** Somebody serves these: they stay known for a week. */
  async note(handlers: readonly string[]): Promise<void> {
    const nowMs = this.#host.monotonicMs();
    for (const name of handlers) {
      if (nowMs - (this.#noted.get(name) ?? -Infinity) < NOTED_AGAIN_MS) continue;
      this.#noted.set(name, nowMs);
      await this.#store.records.register({ process: SEEN + name, role: "worker", text: "{}" }, HANDLER_KNOWN_MS);
    }
  }
}

const SERVED: HandlerEntry = { engine: false };

/** Who of the registered is a worker, and alive. */
export function liveWorkers(registrations: readonly Registration[]): readonly LiveWorker[] {
  return registrations
    .filter(({ process, role }) => role === "worker" && !process.includes(":"))
    .map(({ process, text }) => {
      const told = parsed(text);
      return { process, told, handlers: names(told["handlers"]), queues: names(told["queues"]) };
    });
}

function parsed(text: string): { readonly [key: string]: Json } {
  try {
    const value = JSON.parse(text) as Json;
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** A list of names, or of objects with a name, or an object by name. */
function names(value: Json | undefined): readonly string[] {
  if (isJsonObject(value)) return Object.keys(value);
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: Json) => {
    if (typeof item === "string") return [item];
    return isJsonObject(item) && typeof item["name"] === "string" ? [item["name"]] : [];
  });
}

function entryOf(told: { readonly [key: string]: Json }, name: string): HandlerEntry {
  const { handlers } = told;
  const list: readonly Json[] = Array.isArray(handlers) ? handlers : [];
  const entry = isJsonObject(handlers)
    ? handlers[name]
    : list.find((item) => isJsonObject(item) && item["name"] === name);
  if (!isJsonObject(entry)) return SERVED;
  const { config_schema: configSchema, output_schema: outputSchema } = entry;
  return {
    engine: false,
    ...(configSchema !== undefined && { configSchema }),
    ...(outputSchema !== undefined && { outputSchema }),
  };
}
