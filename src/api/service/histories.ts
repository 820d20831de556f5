import { cacheMachine } from "../../core/cache/machine.ts";
import { CACHE_KIND } from "../../core/cache/state.ts";
import { entityId, entityKey } from "../../core/entity.ts";
import { explain, type Explanation } from "../../core/execution/explain.ts";
import { standingQuarantine } from "../../core/standing-quarantine.ts";
import { inWords } from "../../core/in-words.ts";
import { BUILTIN_HANDLERS } from "../../definition/builtin-handlers.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Host } from "../../host/host.ts";
import type { JsonObject } from "../../json/json.ts";
import type { JournalRecord, Store, WatchOptions } from "../../store/contract.ts";
import { FOLLOW_MS, MAX_NODES_SHOWN, MAX_PAGED_CHARS, MAX_UNREAD_BYTES } from "../limits.ts";
import { eventsOf, type ShownEvent, showEvent } from "./event-view.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { iso } from "./execution-view.ts";
import { executionKey, isExecutionId } from "./ids.ts";
import { type HandlerDirectory, type LiveWorker, notStopping } from "./handler-directory.ts";
import type { Limits, ShownLimit } from "./limits.ts";
import { Lru } from "./lru.ts";
import { ordinal, type PageOf, type PartRequest, type Paging } from "./paging.ts";
import { readEntity } from "./read-entity.ts";
import { notFound } from "./refusal.ts";

export interface ShownExplanation {
  readonly node_id: string;
  readonly reason: string;
  readonly sentence: string;
  readonly until?: string;
  readonly details: JsonObject;
}

/** What a follower is given: news, and whether the execution is over with them. */
export interface News {
  readonly events: readonly ShownEvent[];
  /** There is more of it than a client can be expected to take at once. */
  readonly isBacklog: boolean;
  readonly isEnd: boolean;
}

/** A history shorter than this is read anew for each page. */
const PAGED_CHARS = 262_144;
/** Events that are made ready at a time, however many there are. */
const STREAM_BATCH = 256;
/** Handlers that do not stop: how many a sentence names, and how many there are beside it. */
const MAX_DEAF_SHOWN = 3;
const MAX_DEAF_DETAILS = 20;
/** What those who hold something are in quarantine for, each looked up once for all nodes that wait for them. */
type Holders = Map<string, Promise<string | undefined>>;
/** Of what no cancel reaches: its events cannot be read. */
const UNREADABLE: ReadonlySet<string> = new Set(["FOLD_FAILED", "FORMAT_TOO_NEW"]);

interface QuarantinedHolder {
  readonly id: string;
  readonly isReadable: boolean;
}
/** Of those who hold what others wait for, so many are looked at: whoever never gives it back is among the first. */
const MAX_HOLDERS_LOOKED = 20;

/** What has happened to executions, and why they are where they are. */
export class Histories {
  readonly #store: Store;
  readonly #host: Host;
  readonly #reader: ExecutionReader;
  readonly #directory: HandlerDirectory;
  readonly #limits: Limits;
  readonly #paging: Paging;
  readonly #paged = new Lru<{
    readonly from: number;
    readonly version: number;
    /** Another execution may have its id later. */
    readonly createdAtMs: number | undefined;
    readonly records: readonly JournalRecord[];
  }>(MAX_PAGED_CHARS);
  /** Reads of the tail that are under way: all who stand at the same place share one. */
  readonly #tails = new Map<string, Promise<readonly JournalRecord[]>>();

  constructor(
    store: Store,
    host: Host,
    reader: ExecutionReader,
    directory: HandlerDirectory,
    limits: Limits,
    paging: Paging,
  ) {
    this.#limits = limits;
    this.#paging = paging;
    this.#store = store;
    this.#host = host;
    this.#reader = reader;
    this.#directory = directory;
  }

  /** Up to `limit` events beyond `after`, and where the next ones begin. */
  async list(
    id: string,
    after: number,
    limit: number,
  ): Promise<{ readonly items: readonly ShownEvent[]; readonly next_cursor: string | null }> {
    const version = await this.version(id);
    const items: ShownEvent[] = [];
    for (const [seq, event] of eventsOf(await this.#records(id, after, version), after)) {
      if (items.length === limit) break;
      items.push(showEvent(seq, event, id));
    }
    const last = items.at(-1)?.seq ?? after;
    return { items, next_cursor: last < version ? String(last) : null };
  }

  /** The records beyond a place. A long history is kept while somebody pages through it. */
  async #records(id: string, after: number, version: number): Promise<readonly JournalRecord[]> {
    const known = this.#paged.get(id);
    if (known !== undefined && known.version === version && known.from <= after) {
      if (known.createdAtMs === (await this.#createdAtMs(id))) return known.records;
    }
    const records = await this.#reader.events(id, after);
    const chars = records.reduce((sum, { text }) => sum + text.length, 0);
    if (chars > PAGED_CHARS) {
      this.#paged.set(id, { from: after, version, createdAtMs: await this.#createdAtMs(id), records }, chars);
    }
    return records;
  }

  async #createdAtMs(id: string): Promise<number | undefined> {
    const entity = executionKey(id);
    return (await this.#store.queries.header(this.#reader.partition(entity), entity))?.createdAtMs;
  }

  /** True if nothing that matters to a follower comes after this event any more, as things stand. */
  async isOver(id: string, after: number): Promise<boolean> {
    await this.version(id);
    const isEnded = await this.#reader.read(id, ({ state }) => state.isEnded);
    if (!isEnded) return false;
    for (const [, { kind }] of eventsOf(await this.#reader.events(id, after), after)) {
      if (kind === "executionEnded" || kind === "generationOpened") return false;
    }
    return true;
  }

  /** Resolves when it may have come to its end since an event, and after a while: then it has to be looked at again. */
  async untilOver(id: string, after: number): Promise<void> {
    await this.#hasNews(id, after, { end: true });
  }

  /** Everything beyond `after` as it happens, until the execution is over or nobody listens any more. */
  async *follow(id: string, after: number, signal: AbortSignal): AsyncGenerator<News, void> {
    let seen = after;
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const records = await this.#tail(id, seen);
      const chars = records.reduce((sum, { text }) => sum + text.length, 0);
      const isBacklog = isFirst || chars > MAX_UNREAD_BYTES / 4;
      let isEnded = false;
      let events: ShownEvent[] = [];
      for (const [seq, event] of eventsOf(records, seen)) {
        if (event.kind === "executionEnded") isEnded = true;
        if (event.kind === "generationOpened") isEnded = false;
        events.push(showEvent(seq, event, id));
        seen = seq;
        if (events.length < STREAM_BATCH) continue;
        yield { events, isBacklog, isEnd: false };
        events = [];
      }
      if (records.length === 0) {
        // Nothing for a while: it may have been purged, or be over since before we began.
        isEnded = await this.#reader.read(id, ({ state }) => state.isEnded && state.version <= seen);
      }
      yield { events, isBacklog, isEnd: isEnded };
      if (isEnded) return;
    }
  }

  async explain(
    id: string,
    node: string | undefined,
    { limit = MAX_NODES_SHOWN, cursor }: PartRequest = {},
  ): Promise<PageOf<ShownExplanation> & { readonly omitted?: number }> {
    const all = await this.#reader.read(id, ({ state }) => {
      if (node !== undefined && state.unitOf(node) === undefined) throw notFound("node", node);
      return explain(state, node, this.#host.wallMs()).map((told) => ({
        told,
        place: ordinal(state.unitOf(told.node)!),
      }));
    });
    const page = await this.#paging.slice(`explain ${id} ${node ?? ""}`, { limit, cursor }, all, ({ place }) => place);
    const holders: Holders = new Map();
    const items = await Promise.all(page.items.map(({ told }) => this.#shown(id, told, holders)));
    const omitted = all.length - items.length;
    return { items, next_cursor: page.next_cursor, ...(omitted > 0 && cursor === undefined && { omitted }) };
  }

  /** The core cannot know whether there is anybody to do the work. */
  async #shown(id: string, explanation: Explanation, known: Holders): Promise<ShownExplanation> {
    if ("cache" in explanation.details) return this.#atCache(id, explanation, known);
    if ("gate" in explanation.details) return this.#atGate(id, explanation, known);
    const { node, reason, sentence, untilMs, details } = explanation;
    const { queue, handler } = details;
    const shown = { node_id: node, reason, details, ...(untilMs !== undefined && { until: iso(untilMs)! }) };
    const isOfTask = reason === "queued" && typeof queue === "string" && typeof handler === "string";
    if (!isOfTask) return { ...shown, sentence };
    const service = await this.#directory.service(queue, handler);
    if (service.kind === "served") return { ...shown, sentence, details: { ...details, workers: true } };
    if (service.kind === "stuck") return { ...shown, ...stuckBehind(node, queue, service.workers, details) };
    const of = queue === handler ? "" : ` from queue "${queue}"`;
    const why =
      service.kind === "unserved"
        ? `no connected worker provides "${handler}"${of}`
        : `of the workers that serve queue "${queue}" none provides "${handler}": they give it back`;
    // By itself a worker has the built-in handlers, and serves the queues that are called as its handlers.
    const brings = BUILTIN_HANDLERS.has(handler) ? "" : " --handlers FILE";
    const how = `${brings}${queue === handler ? "" : ` --queues "${queue}"`}`;
    const told = `${node} is ready, but ${why}. start one: millrace worker${how}`;
    return { ...shown, sentence: told, details: { ...details, workers: false } };
  }

  /** Nor how long the line is in which it stands: that is the gate's to say. */
  async #atGate(
    id: string,
    { node, reason, sentence, details }: Explanation,
    known: Holders,
  ): Promise<ShownExplanation> {
    const { gate, ask } = details as { readonly gate: string; readonly ask: number };
    const place = await this.#limits.place(entityKey("gate", gate), executionKey(id), ask);
    const { review } = details;
    const shown = { node_id: node, reason, details: { gate, ...(review !== undefined && { review }) } };
    if (place === undefined || place.before < 0) return { ...shown, sentence };
    const { limit, before, atMs, waitsForBeginnings, holders } = place;
    const called = limit.key === null ? `"${limit.name}"` : `"${limit.name}" for ${limit.key}`;
    const behind = before === 0 ? "it is next" : `${before} ${before === 1 ? "task" : "tasks"} before it`;
    const soon = atMs === null || limit.kind === "breaker" ? "" : `, about ${inWords(atMs - this.#host.wallMs())}`;
    const why = limit.tripped ? "; somebody has closed it, and has to open it again" : "";
    const full = waitsForBeginnings ? unbegun(limit) : "";
    const quarantined = await this.#quarantined(holders, known);
    const turn = `${behind}${soon}${full}${why}${quarantined.map(keptBy).join("")}`;
    const held =
      limit.budget !== undefined
        ? budgetSentence(called, limit.budget, "review" in details, turn)
        : limit.kind === "breaker"
          ? `is held by breaker ${called}, which has seen too many calls fail${this.#trial(limit)}; ${turn}`
          : limit.window_seconds === undefined
            ? `waits for one of ${limit.limit} places at ${called}, ${limit.in_use} of which are taken; ${turn}`
            : `is held by rate limit ${called} (${rateOf(limit)}); ${turn}`;
    return {
      ...shown,
      sentence: `${node} ${held}`,
      details: {
        ...shown.details,
        limit: limit.name,
        before,
        in_use: limit.in_use,
        waiting: limit.waiting,
        tripped: limit.tripped,
        ...(quarantined.length > 0 && { quarantined: quarantined.map(({ id }) => id) }),
      },
      ...(atMs !== null && { until: iso(atMs)! }),
    };
  }

  /** When a breaker lets the first call try, whoever's it is. */
  #trial({ until, tripped }: ShownLimit): string {
    const waitMs = until === null || tripped ? 0 : Date.parse(until) - this.#host.wallMs();
    return waitMs > 0 ? ` and lets one try in ${inWords(waitMs)}` : "";
  }

  /** Somebody does the same work, or is about to; only the cache knows who. */
  async #atCache(
    id: string,
    { node, reason, sentence, details }: Explanation,
    known: Holders,
  ): Promise<ShownExplanation> {
    const { cache, ask } = details as { readonly cache: string; readonly ask: number };
    const state = await readEntity(this.#store, cacheMachine, entityKey(CACHE_KIND, cache));
    const shown = { node_id: node, reason, details: { cache } };
    const before = state?.line.findIndex((each) => each.execution === executionKey(id) && each.ask === ask) ?? -1;
    const [first] = state?.held.values() ?? [];
    if (before < 0 || first === undefined) return { ...shown, sentence };
    const worker = entityId(first.execution);
    const holders = [...new Set(Array.from(state!.held.values(), ({ execution }) => execution))];
    const quarantined = await this.#quarantined(holders, known);
    const kept = quarantined.map(keptBy).join("");
    const more = quarantined.length > 0 && { quarantined: quarantined.map((one) => one.id) };
    return {
      ...shown,
      sentence: `${node} waits for the result of node ${first.node} of execution ${worker}, which does the same work${kept}`,
      details: { cache, before, execution_id: worker, node_id: first.node, ...more },
    };
  }

  /**
   * Which of these executions are in quarantine. Nobody can say of one that none of its tasks runs any more, so it keeps
   * what it holds, and only a person can help.
   */
  async #quarantined(holders: readonly string[], known: Holders): Promise<readonly QuarantinedHolder[]> {
    const looked = holders.slice(0, MAX_HOLDERS_LOOKED);
    const missing = looked.filter((entity) => !known.has(entity));
    if (missing.length > 0) {
      const loading = this.#store.journal.load(
        missing.map((entity) => ({ partition: this.#reader.partition(entity), entity })),
      );
      for (const [i, entity] of missing.entries()) {
        // Whom nobody can look at is left out: what is waited for is told all the same.
        const code = loading
          .then((loaded) => standingQuarantine(loaded[i]!.records)?.error.code)
          .catch(() => undefined);
        known.set(entity, code);
      }
    }
    const codes = await Promise.all(looked.map((entity) => known.get(entity)!));
    return looked.flatMap((entity, i): QuarantinedHolder[] => {
      const code = codes[i];
      return code === undefined ? [] : [{ id: entityId(entity), isReadable: !UNREADABLE.has(code) }];
    });
  }

  /** The number of its last event. */
  async version(id: string): Promise<number> {
    const entity = executionKey(id);
    const version = isExecutionId(id)
      ? await this.#store.journal.watch(this.#reader.partition(entity), entity, 0, 0)
      : 0;
    if (version === 0) throw notFound("execution", id);
    return version;
  }

  /** The records beyond a version, once there are any; none after a while. */
  #tail(id: string, after: number): Promise<readonly JournalRecord[]> {
    const key = `${id} ${after}`;
    const known = this.#tails.get(key);
    if (known !== undefined) return known;
    const tail = this.#readTail(id, after).finally(() => this.#tails.delete(key));
    this.#tails.set(key, tail);
    return tail;
  }

  async #readTail(id: string, after: number): Promise<readonly JournalRecord[]> {
    return (await this.#hasNews(id, after)) ? this.#reader.events(id, after) : [];
  }

  /** Whether there is anything beyond a version, once there is or after a while. */
  async #hasNews(id: string, after: number, options?: WatchOptions): Promise<boolean> {
    const entity = executionKey(id);
    const startedAtMs = this.#host.monotonicMs();
    const version = await this.#store.journal.watch(this.#reader.partition(entity), entity, after, FOLLOW_MS, options);
    if (version > after) return true;
    // A store that is being closed answers at once.
    if (this.#host.monotonicMs() - startedAtMs < FOLLOW_MS / 2) await this.#host.sleep(FOLLOW_MS / 10);
    return false;
  }
}

/** A place in a history, as a client names it. */
export function seqOf(text: string, field: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  if (field === "cursor") throw new MillraceError("INVALID_CURSOR", {});
  throw new MillraceError("INVALID_QUERY", { field, reason: "must be the number of an event" });
}

/** It waits in a queue whose workers are alive, and none of them will take it. */
function stuckBehind(
  node: string,
  queue: string,
  workers: readonly LiveWorker[],
  details: JsonObject,
): Pick<ShownExplanation, "sentence" | "details"> {
  const calls = workers.flatMap((worker) =>
    notStopping(worker).map((call) => ({ worker_id: worker.process, ...call })),
  );
  const shown = calls
    .slice(0, MAX_DEAF_SHOWN)
    .map(({ handler, node_id: at, execution_id: id }) => `"${handler}" (${at} of ${id})`);
  const who = workers.length === 1 ? "the only worker" : `each of the ${workers.length} workers`;
  const sentence =
    `${node} is ready, but ${who} of queue "${queue}" is full with handlers that do not stop when asked: ` +
    `${shown.join(", ")}${calls.length > shown.length ? " …" : ""}. restart ${workers.length === 1 ? "it" : "them"}, or start another: millrace worker`;
  return { sentence, details: { ...details, workers: true, not_stopping: calls.slice(0, MAX_DEAF_DETAILS) } };
}

function keptBy({ id, isReadable }: QuarantinedHolder): string {
  const isIn = `; execution ${id} is in quarantine and gives back nothing`;
  // A cancel waits like everything else that is sent to it, and let go it would be back at once.
  if (!isReadable) return `${isIn}, nor can this release read it. with one that can: millrace release ${id}`;
  return `${isIn}. let it go on: millrace release ${id}   or end it: millrace cancel ${id}`;
}

/** What keeps a rate from letting anybody through, though there may be enough. */
function unbegun({ in_use: count }: ShownLimit): string {
  const [tasks, have, them] = count === 1 ? ["1 task", "has", "it"] : [`${count} tasks`, "have", "them"];
  return `; ${tasks} that it has let through ${have} not begun: no worker has taken ${them} yet`;
}

function budgetSentence(
  called: string,
  budget: NonNullable<ShownLimit["budget"]>,
  stalled: boolean,
  rest: string,
): string {
  const spent = Object.entries(budget)
    .filter(([, { limit }]) => limit !== null)
    .map(([unit, amount]) => `${round(amount.spent)} of ${round(amount.limit!)} ${unit} spent`)
    .join(", ");
  if (stalled)
    return `is held by budget ${called}: what is left is not enough (${spent}); it goes on when somebody raises it`;
  return `waits until it is known what others use of budget ${called} (${spent}); ${rest}`;
}

/** `50/s`, `60/min`, or `50 in 10 s`. */
function rateOf({ limit, kind, window_seconds: seconds = 1 }: ShownLimit): string {
  const many = `${limit}${kind === "tokens" ? " LLM tokens" : ""}`;
  const unit = RATE_UNITS.get(seconds);
  return unit === undefined ? `${many} in ${seconds} s` : `${many}/${unit}`;
}

const RATE_UNITS: ReadonlyMap<number, string> = new Map([
  [1, "s"],
  [60, "min"],
  [3_600, "h"],
  [86_400, "d"],
]);

function round(amount: number): number {
  return Math.round(amount * 10_000) / 10_000;
}
