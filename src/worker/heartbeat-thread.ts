import { extname } from "node:path";
import { Worker as Thread } from "node:worker_threads";
import { SlotMap } from "../core/slot-map.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { LeasedTask, Tasks } from "../store/contract.ts";

/**
 * How a thread gets to the store by itself: a module with a function `openHeartbeats(options)`, which connects. A
 * connection cannot be handed to a thread, and must not be shared: a large value on its way would hold up the beats.
 */
export interface HeartbeatSource {
  /** As for `import()`: the URL of a file, or the name of a package. */
  readonly module: string;
  readonly options: Json;
}

/** What such a module exports. */
export interface HeartbeatModule {
  readonly openHeartbeats: (options: Json) => Promise<Heartbeats>;
}

export type Heartbeats = Pick<Tasks, "heartbeat">;

export type BeatenTask = Pick<LeasedTask, "ref" | "token" | "entity" | "partition">;

/** A task of a lot: the number of the lot, and its token. */
export type InLot = readonly [lot: number, token: string];

/** What the thread is told: first what is over, then what begins, for a task that was handed back may come again. */
export interface ToThread {
  /** Lots of which every task is over. */
  readonly ended: readonly number[];
  /** Tasks that are over, of lots that are not. */
  readonly remove: readonly InLot[];
  readonly add: NewLot | null;
  /** Tasks whose beginning was reported by somebody else. */
  readonly reported: readonly InLot[];
}

/**
 * Tasks that were taken together. They are one text, which the thread reads if some are still there when it beats: most
 * are over by then, and to copy each of them into the thread cost a sixth of what a worker does.
 */
export interface NewLot {
  readonly number: number;
  /** As JSON: all tasks. */
  readonly tasks: string;
}

interface Lot {
  readonly number: number;
  /** How many of its tasks are not over. */
  open: number;
  /** Tokens of those that are, as far as the thread was not told. */
  over: string[];
}

/** What it tells, at least once in each interval between beats; nothing while it cannot reach the store. */
export type FromThread = { readonly lost: readonly string[]; readonly cancelled: readonly string[] };

export interface ThreadData {
  readonly source: HeartbeatSource;
  readonly worker: string;
  readonly settings: { readonly leaseMs: number; readonly heartbeatMs: number; readonly startReportMs: number };
}

export interface HeartbeatThreadOptions extends ThreadData {
  readonly host: Host;
  readonly gone: (token: string, why: "lost" | "cancelled") => void;
  /** It has ended by itself; at most once. */
  readonly failed: (reason: string) => void;
}

/** Beats that may be missing: the lease lasts for three. */
const SILENT_BEATS = 2;
/** Of what is over, so much is told without waiting for a new task. */
const MOST_UNTOLD = 1000;
/** So many lots are given time to end as a whole. */
const RECENT_LOTS = 8;

/**
 * Keeps leases alive from a thread of its own, whatever the event loop does: a handler that computes for a minute is
 * busy, not dead. It lives and dies with the process, and that is just what a lease is meant to show. What ends a
 * handler that never gives the loop back is the owner's deadline, not a lost lease.
 */
export class HeartbeatThread {
  readonly #thread: Thread;
  readonly #host: Host;
  readonly #silentMs: number;
  #isClosed = false;
  /** When it last told something, or was started. */
  #heardAtMs: number;
  #lastLot = 0;
  /** By the tokens of tasks that are not over. */
  readonly #lots = new SlotMap<string, Lot>();
  /** Those that are over, of which it has not been told yet. */
  #ended: number[] = [];
  /** Those that are not, with tasks that are; and how many these are. */
  readonly #begun = new Set<Lot>();
  #untold = 0;

  constructor({ gone, failed, host, source, worker, settings: all }: HeartbeatThreadOptions) {
    const { leaseMs, heartbeatMs, startReportMs } = all;
    this.#host = host;
    this.#silentMs = heartbeatMs * SILENT_BEATS;
    this.#heardAtMs = host.monotonicMs();
    const workerData: ThreadData = { source, worker, settings: { leaseMs, heartbeatMs, startReportMs } };
    // Built, this file and the thread's are .js; from the sources both are .ts.
    const main = new URL(`./heartbeat-thread-main${extname(import.meta.url)}`, import.meta.url);
    this.#thread = new Thread(main, { workerData, execArgv: [], name: "heartbeats" });
    const end = (reason: string): void => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      failed(reason);
    };
    this.#thread.on("message", ({ lost, cancelled }: FromThread) => {
      this.#heardAtMs = host.monotonicMs();
      for (const token of lost) gone(token, "lost");
      for (const token of cancelled) gone(token, "cancelled");
    });
    this.#thread.on("error", (error) => end(error instanceof Error ? error.message : String(error)));
    this.#thread.on("exit", (code) => end(`it exited with code ${code}`));
    // The process must not stay alive only to say that it is.
    this.#thread.unref();
  }

  /**
   * Whether its beats have not arrived for so long that somebody else should beat: the store may refuse its connections, which are new,
   * and not those of the rest of the process.
   */
  get isSilent(): boolean {
    return this.#host.monotonicMs() - this.#heardAtMs > this.#silentMs;
  }

  /** At once: whoever runs them may not give the loop back. */
  add(tasks: readonly BeatenTask[]): void {
    if (tasks.length === 0) return;
    const lot: Lot = { number: ++this.#lastLot, open: tasks.length, over: [] };
    for (const { token } of tasks) {
      this.remove(token);
      this.#lots.set(token, lot);
    }
    const beaten = tasks.map(({ ref, token, entity, partition }) => ({ ref, token, entity, partition }));
    this.#tell({ add: { number: lot.number, tasks: JSON.stringify(beaten) } });
  }

  /** It is told with what comes next: a word costs both threads more than a task, and a beat too many is only in vain. */
  remove(token: string): void {
    const lot = this.#lots.get(token);
    if (lot === undefined) return;
    this.#lots.delete(token);
    lot.open--;
    lot.over.push(token);
    this.#untold++;
    if (lot.open === 0) {
      this.#ended.push(lot.number);
      this.#untold -= lot.over.length;
      this.#begun.delete(lot);
    } else if (lot.over.length === 1) this.#begun.add(lot);
    if (this.#untold + this.#ended.length >= MOST_UNTOLD) this.#tell({});
  }

  /** That these have begun need not be told once more. */
  reported(tokens: readonly string[]): void {
    this.#tell({ reported: tokens.flatMap((token) => inLot(this.#lots.get(token), token)) });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#thread.terminate();
  }

  #tell({ add = null, reported = [] }: Partial<ToThread>): void {
    const message: ToThread = { ended: this.#ended, remove: this.#overByThemselves(), add, reported };
    this.#ended = [];
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    if (!this.#isClosed) this.#thread.postMessage(message);
  }

  /** Of recent lots nothing, while it is not too much: what is left of them is mostly over soon. */
  #overByThemselves(): readonly InLot[] {
    const before = this.#untold >= MOST_UNTOLD ? Infinity : this.#lastLot - RECENT_LOTS;
    const over: InLot[] = [];
    for (const lot of this.#begun) {
      if (lot.number > before) continue;
      for (const token of lot.over) over.push([lot.number, token]);
      lot.over = [];
      this.#begun.delete(lot);
    }
    this.#untold -= over.length;
    return over;
  }
}

function inLot(lot: Lot | undefined, token: string): readonly InLot[] {
  return lot === undefined ? [] : [[lot.number, token]];
}
