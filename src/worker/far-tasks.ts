import type { TaskText } from "../core/execution/prepare.ts";
import type { Message, TaskCompleted, TaskFailed } from "../core/message.ts";
import type { Value } from "../core/value.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { LeasedTask, Records, Settlement } from "../store/contract.ts";

/** What a server takes of what is told beside a result. */
const MAX_SECONDS = 31_536_000;
const MAX_CODE_CHARS = 128;

/** A task as a server hands it out to workers elsewhere, whatever carries it. */
export interface FarTask {
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
  /** The secrets that stand in its config, so that whoever works on it can keep them out of its logs. */
  readonly secrets?: readonly string[];
}

const TEXTS = ["task_id", "token", "execution_id", "node_id", "handler", "idempotency_key"] as const;
const NUMBERS = ["attempt", "generation", "timeout_seconds"] as const;

/** Whether it has all that a task must have: where anybody may write, anything may come. */
export function isFarTask(given: unknown): given is FarTask {
  if (typeof given !== "object" || given === null) return false;
  const task = given as Partial<Record<keyof FarTask, unknown>>;
  const isNumber = (value: unknown): boolean => typeof value === "number" && value >= 0;
  return (
    TEXTS.every((name) => typeof task[name] === "string") &&
    NUMBERS.every((name) => isNumber(task[name])) &&
    "config" in task &&
    [task.item, task.iteration].every((value) => value === undefined || isNumber(value)) &&
    (task.secrets === undefined ||
      (Array.isArray(task.secrets) && task.secrets.every((one) => typeof one === "string")))
  );
}

/** A result as a server takes it from them. */
export interface FarResult {
  readonly outcome: Settlement["outcome"];
  readonly body: JsonObject;
  /** For how long it ran. */
  readonly runningMs?: number;
}

/** More than a worker can have under way. */
const MAX_OUTPUTS = 10_000;

/** As the worker takes it from a store. The server has filled in secrets and large values. */
export function leasedFarTask(task: FarTask, queue: string): LeasedTask {
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
  const { secrets } = task;
  return {
    token,
    ref: token,
    dispatch: task.task_id,
    entity: `execution/${execution}`,
    partition: 0,
    queue,
    priority: 0,
    text: JSON.stringify(text),
    ...(secrets !== undefined && { secrets }),
  };
}

/**
 * Results on their way to a server. Large outputs are kept by their hashes: the worker stores them before it names them,
 * and there is nowhere to store them. Equal ones are one, which stays until each of its results was told.
 */
export class FarResults {
  readonly #outputs = new Map<string, { readonly text: string; untold: number }>();

  /** What a worker needs of this role. */
  get records(): Pick<Records, "put" | "get"> {
    return {
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
  }

  read({ token, outcome, text }: Settlement): FarResult {
    const { body } = JSON.parse(text) as Message;
    if (outcome === "handedBack") return { outcome, body: { token } };
    const told = body as TaskCompleted | TaskFailed;
    const result = "output" in told ? { output: this.#json(told.output) } : failure(told);
    return { outcome, body: { token, ...result, ...beside(told) }, runningMs: told.runningMs };
  }

  /** They were told. Not before: the worker tries again what could not be. */
  forget(results: readonly Settlement[]): void {
    for (const { text } of results) {
      const { body } = JSON.parse(text) as Message;
      if (body.kind !== "taskCompleted" || !("blob" in body.output)) continue;
      const { hash } = body.output.blob;
      const output = this.#outputs.get(hash);
      if (output !== undefined && --output.untold === 0) this.#outputs.delete(hash);
    }
  }

  #json(value: Value): Json {
    if ("json" in value) return value.json;
    return JSON.parse(this.#outputs.get(value.blob.hash)!.text) as Json;
  }
}

/** What is told beside a result, whatever it is. */
function beside({ usage, closeForMs }: TaskCompleted | TaskFailed): JsonObject {
  return {
    ...(usage !== undefined && { usage }),
    ...(closeForMs !== undefined && { close_limit_seconds: secondsOf(closeForMs) }),
  };
}

function failure({ error, retryAfterMs }: TaskFailed): JsonObject {
  const { code, message, retryable, details } = error;
  return {
    error: {
      code: code === "" ? "HANDLER_ERROR" : code.slice(0, MAX_CODE_CHARS).toWellFormed(),
      message,
      retryable,
      ...(details !== undefined && { details }),
      ...(retryAfterMs !== undefined && { retry_after_seconds: secondsOf(retryAfterMs) }),
    },
  };
}

/** What a service or a handler says may be any number; a server takes up to a year, and would else refuse the result with it. */
function secondsOf(ms: number): number {
  return Math.min(Math.max(0, ms / 1_000), MAX_SECONDS);
}
