import { extname } from "node:path";
import { Worker as Thread } from "node:worker_threads";
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

/** What the thread is told: first what is over, then what begins, for a task that was handed back may come again. */
export interface ToThread {
  readonly remove: readonly string[];
  readonly add: readonly BeatenTask[];
  /** Tokens of tasks whose beginning was reported by somebody else. */
  readonly reported: readonly string[];
}

/** What it tells. */
export type FromThread = { readonly lost: readonly string[]; readonly cancelled: readonly string[] };

export interface ThreadData {
  readonly source: HeartbeatSource;
  readonly worker: string;
  readonly settings: { readonly leaseMs: number; readonly heartbeatMs: number; readonly startReportMs: number };
}

export interface HeartbeatThreadOptions extends ThreadData {
  readonly gone: (token: string, why: "lost" | "cancelled") => void;
  /** It has ended by itself; at most once. */
  readonly failed: (reason: string) => void;
}

/** Of tasks that are over, so many are told without waiting for a new one. */
const MOST_UNTOLD = 1000;

/**
 * Keeps leases alive from a thread of its own, whatever the event loop does: a handler that computes for a minute is
 * busy, not dead. It lives and dies with the process, and that is just what a lease is meant to show. What ends a
 * handler that never gives the loop back is the owner's deadline, not a lost lease.
 */
export class HeartbeatThread {
  readonly #thread: Thread;
  #isClosed = false;
  /** Tokens of tasks that are over, which it has not been told yet. */
  #over: string[] = [];

  constructor({ gone, failed, source, worker, settings: all }: HeartbeatThreadOptions) {
    const { leaseMs, heartbeatMs, startReportMs } = all;
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
      for (const token of lost) gone(token, "lost");
      for (const token of cancelled) gone(token, "cancelled");
    });
    this.#thread.on("error", (error) => end(error instanceof Error ? error.message : String(error)));
    this.#thread.on("exit", (code) => end(`it exited with code ${code}`));
    // The process must not stay alive only to say that it is.
    this.#thread.unref();
  }

  /** At once: whoever runs them may not give the loop back. */
  add(tasks: readonly BeatenTask[]): void {
    if (tasks.length === 0) return;
    this.#tell(tasks.map(({ ref, token, entity, partition }) => ({ ref, token, entity, partition })));
  }

  /** It is told with what comes next: a word costs both threads more than a task, and a beat too many is only in vain. */
  remove(token: string): void {
    this.#over.push(token);
    if (this.#over.length >= MOST_UNTOLD) this.#tell([]);
  }

  /** That these have begun need not be told once more. */
  reported(tokens: readonly string[]): void {
    this.#tell([], tokens);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#thread.terminate();
  }

  #tell(add: readonly BeatenTask[], reported: readonly string[] = []): void {
    const message: ToThread = { remove: this.#over, add, reported };
    this.#over = [];
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    if (!this.#isClosed) this.#thread.postMessage(message);
  }
}
