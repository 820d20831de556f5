import type { TaskText } from "../core/execution/prepare.ts";
import type { Message, TaskCompleted, TaskFailed } from "../core/message.ts";
import type { Value } from "../core/value.ts";
import type { Host } from "../host/host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type {
  Heartbeat,
  HeartbeatOutcome,
  LeasedTask,
  LeaseRequest,
  Records,
  Settlement,
  SettleOutcome,
  Store,
  Tasks,
} from "../store/contract.ts";
import type { HttpClient } from "./http-client.ts";

/** A task as the gateway of a server hands it out. */
interface GatewayTask {
  readonly task_id: string;
  readonly token: string;
  readonly execution_id: string;
  readonly node_id: string;
  readonly handler: string;
  readonly attempt: number;
  readonly generation: number;
  readonly config: Json;
  readonly idempotency_key: string;
  readonly timeout_seconds: number;
  readonly item?: number;
  readonly iteration?: number;
  readonly inputs?: Json;
  readonly secrets?: readonly string[];
}

export interface GatewayOptions {
  /** What the server calls the worker. */
  readonly worker: string;
  /** Whether it takes the tasks of handlers, or of queues, whatever their handler is. */
  readonly by: "handlers" | "queues";
}

/** More than a worker can have under way. */
const MAX_OUTPUTS = 10_000;
/** The longest that a lease may wait, by the server. */
const MAX_WAIT_MS = 30_000;
/** How much later than that its answer may come. */
const LATE_MS = 5_000;
/** What the server takes in one request: tasks of a lease, beats, results. */
const MAX_AT_ONCE = 1_000;

/**
 * What a worker needs of a store, over the HTTP API of a server: so the worker that runs beside an engine also runs far
 * from one, with all its care for leases, time limits and errors. The server fills in secrets and large values.
 */
export class GatewayStore {
  readonly #http: HttpClient;
  readonly #host: Host;
  readonly #options: GatewayOptions;
  readonly #closing = new AbortController();
  /**
   * Large outputs on their way, by their hashes: the worker stores them before it names them, and there is nowhere to
   * store them. Equal ones are one, which stays until each of its results was told.
   */
  readonly #outputs = new Map<string, { readonly text: string; untold: number }>();

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
    const records: Pick<Records, "put" | "get"> = {
      put: async (stored) => {
        for (const { hash, text } of stored) {
          const untold = (this.#outputs.get(hash)?.untold ?? 0) + 1;
          // Put at the end: the oldest are the first that have to go.
          this.#outputs.delete(hash);
          this.#outputs.set(hash, { text, untold });
        }
        // Of a task that was lost meanwhile nobody asks for it any more.
        for (const hash of this.#outputs.keys()) if (this.#outputs.size > MAX_OUTPUTS) this.#outputs.delete(hash);
        return "stored";
      },
      get: async (keys) => keys.map(() => null),
    };
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
      const { tasks } = await this.#http.json<{ readonly tasks: readonly GatewayTask[] }>({
        method: "POST",
        path: "/v1/tasks/lease",
        body,
        key,
        signal,
        answerMs: body.wait_ms + LATE_MS,
      });
      return tasks.map(leasedTask);
    } catch (error) {
      if (signal.aborted) return [];
      throw error;
    }
  }

  async #settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    const outcomes = new Map<string, SettleOutcome>(results.map(({ token }) => [token, "settled"]));
    const completed: JsonObject[] = [];
    const failed: JsonObject[] = [];
    const handedBack: JsonObject[] = [];
    for (const { token, outcome, text } of results) {
      const { body } = JSON.parse(text) as Message;
      if (outcome === "completed") completed.push(this.#completion(token, body as TaskCompleted));
      else if (outcome === "failed") failed.push(failure(token, body as TaskFailed));
      else handedBack.push({ token });
    }
    for (const [path, list] of [
      ["/v1/tasks/complete", completed],
      ["/v1/tasks/fail", failed],
      ["/v1/tasks/hand-back", handedBack],
    ] as const) {
      for (const part of inParts(list)) {
        for (const { token, code } of await this.#report(path, part))
          if (code === "STALE_ATTEMPT") outcomes.set(token, "stale");
      }
    }
    // Not before: the worker tries again what could not be told.
    for (const { text } of results) this.#forgetOutput((JSON.parse(text) as Message).body);
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

  #completion(token: string, body: TaskCompleted): JsonObject {
    return { token, output: this.#json(body.output), ...reported(body) };
  }

  #json(value: Value): Json {
    if ("json" in value) return value.json;
    return JSON.parse(this.#outputs.get(value.blob.hash)!.text) as Json;
  }

  #forgetOutput(body: Message["body"]): void {
    if (body.kind !== "taskCompleted" || !("blob" in body.output)) return;
    const { hash } = body.output.blob;
    const output = this.#outputs.get(hash);
    if (output !== undefined && --output.untold === 0) this.#outputs.delete(hash);
  }
}

/** What is told beside a result, whatever it is. */
function reported({ usage, closeForMs }: TaskCompleted | TaskFailed): JsonObject {
  return {
    ...(usage !== undefined && { usage }),
    ...(closeForMs !== undefined && { close_limit_seconds: closeForMs / 1_000 }),
  };
}

function failure(token: string, body: TaskFailed): JsonObject {
  const { error, retryAfterMs } = body;
  const { code, message, retryable, details } = error;
  return {
    token,
    error: {
      code,
      message,
      retryable,
      ...(details !== undefined && { details }),
      ...(retryAfterMs !== undefined && { retry_after_seconds: retryAfterMs / 1_000 }),
    },
    ...reported(body),
  };
}

function leasedTask(task: GatewayTask): LeasedTask {
  const { token, execution_id: execution, node_id: node, handler, attempt, generation, config, inputs } = task;
  const text: TaskText = {
    token,
    execution,
    node,
    handler,
    attempt,
    generation,
    delivery: 1,
    idempotencyKey: task.idempotency_key,
    timeoutMs: task.timeout_seconds * 1_000,
    config,
    holes: [],
    ...(inputs !== undefined && { inputs }),
    ...(task.item !== undefined && { item: task.item }),
    ...(task.iteration !== undefined && { iteration: task.iteration }),
  };
  const entity = `execution/${execution}`;
  const dispatch = task.task_id;
  const { secrets } = task;
  return {
    token,
    ref: token,
    dispatch,
    entity,
    partition: 0,
    queue: handler,
    priority: 0,
    text: JSON.stringify(text),
    ...(secrets !== undefined && { secrets }),
  };
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
