import type { TaskText } from "../core/execution/prepare.ts";
import { taskMessage } from "../core/message.ts";
import { checkJson } from "../json/check-json.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { Heartbeat, LeasedTask } from "../store/contract.ts";
import { Concealment } from "./concealment.ts";
import type { HandlerCall } from "./handler.ts";
import { UsageMeter } from "./usage.ts";

/** Config and inputs as the handler gets them. */
export interface Given {
  readonly config: Json;
  readonly inputs: Json | undefined;
}

export interface LogEntry {
  /** `error`: not said by the handler, but where it threw what. */
  readonly level?: "error";
  readonly message: string;
  readonly fields?: JsonObject;
}

const MAX_LOG_CHARS = 16_000;

/** One task in one slot of a worker. */
export class Delivery {
  /** The last lease of it. */
  leased: LeasedTask;
  readonly startedAtMs: number;
  /** Where it stands among those that run; -1 if it does not. */
  place = -1;
  readonly concealment = new Concealment();
  readonly usage = new UsageMeter();
  /** For how long whoever it called has no more to give, as far as it has heard. */
  closeForMs = 0;
  /** Its handler was called: what that is given may have had to be fetched first. */
  hasBegun = false;
  /** Its start was reported; one report is enough. */
  reported = false;
  /** Nothing more will be said of it. If its handler still runs, it only keeps the slot. */
  settled = false;
  /** Why nobody waits for its result any more. */
  gone: "lost" | "cancelled" | null = null;
  readonly abort = new AbortController();

  constructor(leased: LeasedTask, startedAtMs: number) {
    this.leased = leased;
    if (leased.secrets !== undefined) for (const secret of leased.secrets) this.concealment.add(secret);
    this.startedAtMs = startedAtMs;
  }

  /** Without a getter: each object that is written with one has a hidden class of its own, which keeps it alive. */
  call(task: TaskText, given: Given, log: (task: TaskText, entry: LogEntry) => void): HandlerCall {
    return {
      executionId: task.execution,
      nodeId: task.node,
      attempt: task.attempt,
      generation: task.generation,
      config: given.config,
      inputs: given.inputs,
      idempotencyKey: task.idempotencyKey,
      token: task.token,
      timeoutMs: task.timeoutMs,
      signal: this.abort.signal,
      addUsage: (usage) => this.usage.add(usage),
      closeLimit: (forMs) => this.#closeLimit(forMs),
      conceal: (text) => this.concealment.add(text),
      log: (message, fields) => log(task, this.#logEntry(message, fields)),
    };
  }

  /** What is no time is left out, as with what was used. */
  #closeLimit(forMs: unknown): void {
    if (typeof forMs === "number" && Number.isFinite(forMs)) this.closeForMs = Math.max(this.closeForMs, forMs);
  }

  /** Fields that no log can carry are left out: what the handler had to say is worth more. */
  #logEntry(message: unknown, fields: JsonObject | undefined): LogEntry {
    const text = this.concealment.text(String(message)).toWellFormed().slice(0, MAX_LOG_CHARS);
    if (fields === undefined || checkJson(fields) !== undefined) return { message: text };
    const shown = this.concealment.json(fields) as JsonObject;
    return JSON.stringify(shown).length > MAX_LOG_CHARS ? { message: text } : { message: text, fields: shown };
  }
}

/** What a heartbeat says of a task, with the report that its handler is running if that was not told yet. */
export function heartbeatOf(
  task: Pick<LeasedTask, "ref" | "token" | "entity" | "partition">,
  worker: string,
  unreportedMs: number | undefined,
): Heartbeat {
  const { ref, token, partition } = task;
  if (unreportedMs === undefined) return { ref, token };
  const body = { kind: "taskStarted" as const, token, runningMs: Math.round(unreportedMs) };
  return { ref, token, started: { partition, text: taskMessage(task, worker, body) } };
}
