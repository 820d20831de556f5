import type { Host } from "../host/host.ts";
import type { JsonObject } from "../json/json.ts";
import type {
  Heartbeat,
  HeartbeatOutcome,
  LeasedTask,
  LeaseRequest,
  Settlement,
  SettleOutcome,
  Store,
  Tasks,
} from "../store/contract.ts";
import { type FarTask, FarResults, leasedFarTask } from "../worker/far-tasks.ts";
import type { HttpClient } from "./http-client.ts";

export interface GatewayOptions {
  /** What the server calls the worker. */
  readonly worker: string;
  /** Whether it takes the tasks of handlers, or of queues, whatever their handler is. */
  readonly by: "handlers" | "queues";
}

/** The longest that a lease may wait, by the server. */
const MAX_WAIT_MS = 30_000;
/** How much later than that its answer may come. */
const LATE_MS = 5_000;
/** What the server takes in one request: tasks of a lease, beats, results. */
const MAX_AT_ONCE = 1_000;
/** Where each kind of result is told. */
const PATHS = [
  ["/v1/tasks/complete", "completed"],
  ["/v1/tasks/fail", "failed"],
  ["/v1/tasks/hand-back", "handedBack"],
] as const;

/**
 * What a worker needs of a store, over the HTTP API of a server: so the worker that runs beside an engine also runs far
 * from one, with all its care for leases, time limits and errors. The server fills in secrets and large values.
 */
export class GatewayStore {
  readonly #http: HttpClient;
  readonly #host: Host;
  readonly #options: GatewayOptions;
  readonly #closing = new AbortController();
  readonly #results = new FarResults();

  constructor(http: HttpClient, host: Host, options: GatewayOptions) {
    this.#http = http;
    this.#host = host;
    this.#options = options;
  }

  /** As the worker takes it. It calls no other role. */
  get store(): Store {
    const tasks: Pick<Tasks, "lease" | "heartbeat" | "settle"> = {
      lease: (request) => this.#lease(request),
      heartbeat: (beats, leaseMs) => beat(this.#http, this.#options.worker, beats, leaseMs),
      settle: (results) => this.#settle(results),
    };
    const { records } = this.#results;
    // Tasks wait on the server: what a poll is given has to be given back before its worker ends.
    const capabilities = { volatileTasks: false };
    return { capabilities, tasks, records } as unknown as Store;
  }

  /** Nobody waits for tasks any more; what the server was about to hand out it keeps. */
  stopLeasing(): void {
    this.#closing.abort();
  }

  async #lease({ queues, max, leaseMs, waitMs }: LeaseRequest): Promise<readonly LeasedTask[]> {
    const body = {
      worker_id: this.#options.worker,
      [this.#options.by]: queues,
      max: Math.min(MAX_AT_ONCE, max),
      wait_ms: Math.min(MAX_WAIT_MS, waitMs),
      lease_seconds: leaseMs / 1_000,
    };
    const { signal } = this.#closing;
    if (signal.aborted) return [];
    try {
      // With a key, so that an answer that was lost on the way is given again instead of other tasks.
      const key = this.#host.id() + this.#host.id();
      const { tasks } = await this.#http.json<{ readonly tasks: readonly FarTask[] }>({
        method: "POST",
        path: "/v1/tasks/lease",
        body,
        key,
        signal,
        answerMs: body.wait_ms + LATE_MS,
      });
      return tasks.map((task) => leasedFarTask(task, task.handler));
    } catch (error) {
      if (signal.aborted) return [];
      throw error;
    }
  }

  async #settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    const outcomes = new Map<string, SettleOutcome>(results.map(({ token }) => [token, "settled"]));
    const bodies = Map.groupBy(
      results.map((result) => this.#results.read(result)),
      ({ outcome }) => outcome,
    );
    for (const [path, outcome] of PATHS) {
      for (const part of inParts((bodies.get(outcome) ?? []).map(({ body }) => body))) {
        for (const { token, code } of await this.#report(path, part))
          if (code === "STALE_ATTEMPT") outcomes.set(token, "stale");
      }
    }
    this.#results.forget(results);
    return results.map(({ token }) => outcomes.get(token)!);
  }

  async #report(
    path: string,
    results: readonly JsonObject[],
  ): Promise<readonly { readonly token: string; readonly code?: string }[]> {
    const key = this.#host.id() + this.#host.id();
    const answer = await this.#http.json<{
      readonly results: readonly { readonly token: string; readonly code?: string }[];
    }>({
      method: "POST",
      path,
      body: { results },
      key,
    });
    const undecided = answer.results.some(({ code }) => code === "NO_OWNER" || code === "STORE_UNAVAILABLE");
    // The worker tries again for as long as it may have the task.
    if (undecided) throw new Error("the server could not decide on a result in time");
    return answer.results;
  }
}

/** Keeps tasks, and tells which of them count no more. */
export async function beat(
  http: HttpClient,
  worker: string,
  beats: readonly Heartbeat[],
  leaseMs: number,
): Promise<HeartbeatOutcome> {
  const cancelled: string[] = [];
  for (const part of inParts(beats)) {
    const answer = await http.json<{ readonly cancelled: readonly string[] }>({
      method: "POST",
      path: "/v1/tasks/heartbeat",
      body: { worker_id: worker, tokens: part.map(({ token }) => token) },
      // One that gets no answer must not keep the next one back for so long that the leases run out.
      answerMs: Math.min(LATE_MS, leaseMs / 4),
    });
    cancelled.push(...answer.cancelled);
  }
  return { lost: [], cancelled };
}

function* inParts<Item>(items: readonly Item[]): Iterable<readonly Item[]> {
  for (let from = 0; from < items.length; from += MAX_AT_ONCE) yield items.slice(from, from + MAX_AT_ONCE);
}
