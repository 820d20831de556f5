import { MAX_SECONDS } from "../../definition/fields.ts";
import { type HandlerCatalogue, type HandlerEntry, NO_HANDLERS, type NodeDefaults } from "../../definition/handlers.ts";
import type { Host } from "../../host/host.ts";
import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import type { Registration, Store } from "../../store/contract.ts";
import { HANDLER_KNOWN_MS } from "../limits.ts";

/**
 * A registration with this in front says that a handler was served, not that a process is alive. No process has a colon
 * in its name.
 */
const SEEN = "handler:";
const FRESH_MS = 2_000;
const NOTED_AGAIN_MS = 3_600_000;
/** More handlers than any fleet has. Everybody who looks for processes reads past them, and workers may name what they like. */
const MAX_NOTED = 5_000;
const NOTED_TOGETHER = 100;

export interface KnownEntries {
  readonly entries: ReadonlyMap<string, HandlerEntry>;
  /** Handlers that somebody serves now. */
  readonly alive: ReadonlySet<string>;
  readonly workers: readonly LiveWorker[];
  /** Another number, other entries. */
  readonly revision: number;
}

/** A process that serves tasks, as it registered itself. */
export interface LiveWorker {
  readonly process: string;
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
  readonly told: { readonly [key: string]: Json };
  /** The queues from which it takes nothing until handlers end that were asked to. */
  readonly stuckQueues: readonly string[];
}

/** Whether somebody takes the tasks of a handler from a queue. */
export type QueueService =
  | { readonly kind: "served" | "unserved" | "unknownHandler" }
  /** Those who would are full with handlers that do not stop. */
  | { readonly kind: "stuck"; readonly workers: readonly LiveWorker[] };

/**
 * Which handlers there are: registered in this process, served by a worker that is alive, or named by one in the last
 * seven days, so that a worker that restarts does not make every submit fail.
 */
export class HandlerDirectory {
  readonly #store: Store;
  readonly #host: Host;
  readonly #local: HandlerCatalogue;
  readonly #noted = new Map<string, { readonly atMs: number; readonly text: string }>();
  #known: KnownEntries & { readonly text: string; readonly atMs: number };

  constructor(store: Store, host: Host, local: HandlerCatalogue = NO_HANDLERS) {
    this.#store = store;
    this.#host = host;
    this.#local = local;
    this.#known = { entries: new Map(), alive: new Set(), workers: [], revision: 0, text: "", atMs: -Infinity };
  }

  /** What nodes get that state none. */
  get defaults(): NodeDefaults {
    return this.#local.defaults ?? {};
  }

  async entries(): Promise<KnownEntries> {
    return this.fresh() ?? this.refresh();
  }

  /** What was found a moment ago; undefined if that is too long ago. */
  fresh(): KnownEntries | undefined {
    return this.#host.monotonicMs() - this.#known.atMs > FRESH_MS ? undefined : this.#known;
  }

  /** Looks again. Whether that is news to somebody is told by the revision: others may have looked in between. */
  async refresh(): Promise<KnownEntries> {
    const registrations = await this.#store.records.registered();
    const entries = new Map<string, HandlerEntry>();
    const alive = new Set<string>();
    for (const { process, text } of registrations)
      if (process.startsWith(SEEN)) entries.set(process.slice(SEEN.length), described(parsed(text)));
    const served = new Map<string, HandlerEntry>();
    const workers = liveWorkers(registrations);
    for (const { handlers, told } of workers) {
      const entriesTold = entriesOf(told);
      for (const name of handlers) served.set(name, fuller(served.get(name), entriesTold.get(name) ?? SERVED));
    }
    for (const [name, entry] of served) {
      entries.set(name, entry === SERVED ? (entries.get(name) ?? SERVED) : entry);
      alive.add(name);
    }
    for (const name of this.#local.names()) {
      entries.set(name, this.#local.get(name) ?? SERVED);
      alive.add(name);
    }
    await this.note([...served.keys()], entries);
    const text = JSON.stringify([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
    const changed = text !== this.#known.text;
    const revision = this.#known.revision + (changed ? 1 : 0);
    this.#known = { entries, alive, workers, revision, text, atMs: this.#host.monotonicMs() };
    return this.#known;
  }

  /** Whether somebody takes tasks of this handler from this queue now, as far as is known. */
  async service(queue: string, handler: string): Promise<QueueService> {
    await this.entries();
    const { workers, alive } = this.#known;
    const serving = workers.filter(({ queues, handlers }) => queues.includes(queue) || handlers.includes(queue));
    // Handlers of this very process are served without a registration, from queues that have their names.
    if (serving.length === 0) return { kind: alive.has(queue) ? "served" : "unserved" };
    // One that names no handlers takes whatever is in its queues.
    const knowing = serving.filter(({ handlers }) => handlers.length === 0 || handlers.includes(handler));
    if (knowing.length === 0) return { kind: "unknownHandler" };
    if (knowing.every(({ stuckQueues }) => stuckQueues.includes(queue))) return { kind: "stuck", workers: knowing };
    return { kind: "served" };
  }

  /**
   * Somebody serves these: they stay known for a week. With their time limits, which are written into definitions: the same
   * definition must not be another version while their worker restarts.
   */
  async note(handlers: readonly string[], known?: KnownEntries["entries"]): Promise<void> {
    const nowMs = this.#host.monotonicMs();
    const isOld = (name: string): boolean => nowMs - (this.#noted.get(name)?.atMs ?? -Infinity) >= NOTED_AGAIN_MS;
    // Workers over HTTP name them with every lease.
    if (known === undefined && !handlers.some(isOld)) return;
    const entries = known ?? (await this.entries()).entries;
    const news: { readonly name: string; readonly text: string }[] = [];
    let room = MAX_NOTED - this.#noted.size;
    for (const name of new Set(handlers)) {
      const noted = this.#noted.get(name);
      const text = JSON.stringify({ timeout_seconds: entries.get(name)?.defaultTimeoutSeconds });
      if (noted !== undefined ? !isOld(name) && noted.text === text : room-- <= 0) continue;
      news.push({ name, text });
    }
    // Together, as a store syncs once for all that it is told together: a workflow written with the SDK has a handler for each node.
    for (let from = 0; from < news.length; from += NOTED_TOGETHER) {
      await Promise.all(
        news.slice(from, from + NOTED_TOGETHER).map(async ({ name, text }) => {
          await this.#store.records.register({ process: SEEN + name, role: "worker", text }, HANDLER_KNOWN_MS);
          this.#noted.set(name, { atMs: nowMs, text });
        }),
      );
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
      const { handlers, queues, stuck_queues: stuck } = told;
      return { process, told, handlers: names(handlers), queues: names(queues), stuckQueues: names(stuck) };
    });
}

/** How many workers take tasks from each queue, and how many of them are stuck. */
export function serving(
  registrations: readonly Registration[],
): ReadonlyMap<string, { readonly workers: number; readonly stuck: number }> {
  const served = new Map<string, { workers: number; stuck: number }>();
  for (const { handlers, queues, stuckQueues } of liveWorkers(registrations)) {
    for (const queue of new Set([...queues, ...(queues.length === 0 ? handlers : [])])) {
      const { workers, stuck } = served.get(queue) ?? { workers: 0, stuck: 0 };
      served.set(queue, { workers: workers + 1, stuck: stuck + (stuckQueues.includes(queue) ? 1 : 0) });
    }
  }
  return served;
}

/** A call of a handler that does not stop. */
export interface DeafCall {
  readonly handler: string;
  readonly execution_id: string;
  readonly node_id: string;
}

/** What keeps a worker's slots, as far as it tells. */
export function notStopping({ told }: LiveWorker): readonly DeafCall[] {
  const { not_stopping: calls } = told;
  return Array.isArray(calls)
    ? ((calls as readonly Json[]).filter((call) => isJsonObject(call)) as unknown as readonly DeafCall[])
    : [];
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

function entriesOf({ handlers }: { readonly [key: string]: Json }): ReadonlyMap<string, HandlerEntry> {
  const found = new Map<string, HandlerEntry>();
  const note = (name: Json | undefined, entry: Json): void => {
    if (typeof name === "string" && isJsonObject(entry) && !found.has(name)) found.set(name, described(entry));
  };
  if (isJsonObject(handlers)) for (const [name, entry] of Object.entries(handlers)) note(name, entry);
  else if (Array.isArray(handlers)) for (const item of handlers) if (isJsonObject(item)) note(item["name"], item);
  return found;
}

/** Workers over HTTP say nothing of their handlers, those of an earlier release nothing of time limits. */
function fuller(one: HandlerEntry | undefined, other: HandlerEntry): HandlerEntry {
  if (one === undefined || other.defaultTimeoutSeconds !== undefined) return other;
  return other === SERVED || one.defaultTimeoutSeconds !== undefined ? one : other;
}

function described(entry: JsonObject): HandlerEntry {
  const { config_schema: configSchema, output_schema: outputSchema, timeout_seconds: timeout } = entry;
  const isTimeout = typeof timeout === "number" && timeout > 0 && timeout <= MAX_SECONDS;
  return {
    engine: false,
    ...(configSchema !== undefined && { configSchema }),
    ...(outputSchema !== undefined && { outputSchema }),
    ...(isTimeout && { defaultTimeoutSeconds: timeout }),
  };
}
