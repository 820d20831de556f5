import { checkBody } from "../api/http/check.ts";
import { readJsonBody } from "../api/http/read-body.ts";
import { type Caller, LOCAL } from "../api/service/caller.ts";
import type { Gateway, Serves } from "../api/service/gateway.ts";
import type { TaskResult } from "../api/service/task-results.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { BusMessage, Kafka } from "./kafka.ts";
import { type CancelMessage, type ReportMessage, reportMessage } from "./messages.ts";
import { reject, rejectionOf } from "./rejections.ts";
import type { StartsObserver } from "./starts.ts";
import type { Topics } from "./topics.ts";

export interface ReportsParts {
  readonly kafka: Kafka;
  readonly topics: Topics;
  readonly gateway: Pick<Gateway, "heartbeat" | "settle">;
  readonly host: Host;
  readonly stopping: AbortSignal;
  readonly observer: StartsObserver;
}

interface Told {
  readonly message: BusMessage;
  readonly report: ReportMessage;
}

/** What one worker says of itself. */
interface Held {
  readonly tokens: Set<string>;
  serves?: Serves;
}

const AGAIN_MS = 1_000;
/** An output that is nested too deeply fails its node: the message that brings it has to be readable for that. */
const MAX_DEPTH = 1_000;
const CALLER: Caller = { ...LOCAL, by: "bus", secrets: false };
/** Nobody could decide: the same is told again. */
const UNDECIDED: ReadonlySet<string | undefined> = new Set(["NO_OWNER", "STORE_UNAVAILABLE"]);

/** What workers tell of their tasks. A result may come several times: the first one counts, as from any worker. */
export class Reports {
  readonly #parts: ReportsParts;

  constructor(parts: ReportsParts) {
    this.#parts = parts;
  }

  async handle(messages: readonly BusMessage[]): Promise<void> {
    const told: Told[] = [];
    for (const message of messages) {
      const report = await this.#read(message);
      if (report !== undefined) told.push({ message, report });
    }
    // Before the results: a task that is over has no lease to keep.
    await this.#untilDone(() => this.#beat(told));
    let open = told.filter(({ report }) => "token" in report);
    await this.#untilDone(async () => {
      open = await this.#settle(open);
      if (open.length > 0) throw new Error(`nobody could decide on ${open.length} results in time`);
    });
  }

  /** Undefined if it is not to be understood. */
  async #read(message: BusMessage): Promise<ReportMessage | undefined> {
    try {
      return checkBody<ReportMessage>(reportMessage, readJsonBody(message.value, MAX_DEPTH));
    } catch (error) {
      const reason = rejectionOf(error) ?? { code: "INTERNAL", message: String(error) };
      await this.#reject(message, reason.code, reason.message);
      return undefined;
    }
  }

  async #reject(message: BusMessage, code: string, reason: string): Promise<void> {
    const { kafka, topics, observer } = this.#parts;
    await reject(kafka, topics.rejected, message, { code, message: reason });
    observer.rejected(message, code, reason);
  }

  async #beat(told: readonly Told[]): Promise<void> {
    const { gateway, kafka, topics } = this.#parts;
    const held = new Map<string, Held>();
    for (const { report } of told) {
      if (!("tokens" in report)) continue;
      const { worker_id, tokens, handlers, queues } = report;
      const one = held.get(worker_id) ?? { tokens: new Set() };
      for (const token of tokens) one.tokens.add(token);
      if (handlers !== undefined || queues !== undefined)
        one.serves = { handlers: handlers ?? [], queues: queues ?? handlers ?? [] };
      held.set(worker_id, one);
    }
    const over: string[] = [];
    for (const [worker, { tokens, serves }] of held)
      over.push(...(await gateway.heartbeat(CALLER, worker, [...tokens], serves)).cancelled);
    if (over.length === 0) return;
    const value: CancelMessage = { tokens: over };
    await kafka.send([{ topic: topics.cancel, value: JSON.stringify(value) }]);
  }

  /** Answers those of which nobody knows yet what became of them. */
  async #settle(told: readonly Told[]): Promise<Told[]> {
    if (told.length === 0) return [];
    const settled = await this.#parts.gateway.settle(
      CALLER,
      told.map(({ report }) => resultOf(report)),
    );
    const open: Told[] = [];
    for (const [i, { code }] of settled.entries()) {
      const one = told[i]!;
      if (UNDECIDED.has(code)) open.push(one);
      if (code === "TASK_TOKEN_INVALID") await this.#reject(one.message, code, "The token is none that was given out.");
    }
    return open;
  }

  /** Rejects only if it was told to stop: the messages come again then. */
  async #untilDone(work: () => Promise<void>): Promise<void> {
    const { host, stopping, observer } = this.#parts;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        observer.delayed(error);
      }
      await host.sleep(AGAIN_MS, stopping);
      stopping.throwIfAborted();
    }
  }
}

function resultOf(report: ReportMessage): TaskResult {
  if ("tokens" in report) throw new Error("a heartbeat is no result");
  if ("hand_back" in report) return { token: report.token, handedBack: true };
  const { token, usage, close_limit_seconds, running_ms } = report;
  const told = {
    token,
    close_limit_seconds,
    running_ms,
    ...(usage !== undefined && { usage: usage as Json }),
  };
  if ("output" in report) return { ...told, output: report.output as Json };
  const { details, ...error } = report.error;
  return { ...told, error: { ...error, ...(details !== undefined && { details: details as Json }) } };
}
