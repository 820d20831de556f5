import { checkBody } from "../api/http/check.ts";
import { readJsonBody } from "../api/http/read-body.ts";
import { type Caller, LOCAL } from "../api/service/caller.ts";
import type { Gateway, Serves } from "../api/service/gateway.ts";
import type { TaskResult } from "../api/service/task-results.ts";
import type { Json } from "../json/json.ts";
import { carryOut, type CarryOutParts, putAside, untilDone } from "./carry-out.ts";
import { type BusMessage, KafkaError } from "./kafka.ts";
import { type CancelMessage, type ReportMessage, reportMessage } from "./messages.ts";
import { isPassing } from "./rejections.ts";

export interface ReportsParts extends CarryOutParts {
  readonly gateway: Pick<Gateway, "heartbeat" | "post">;
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

/** An output that is nested too deeply fails its node: the message that brings it has to be readable for that. */
const MAX_DEPTH = 1_000;
const CALLER: Caller = { ...LOCAL, by: "bus", secrets: false };
/** In one message, so that any topic takes it. */
const MOST_CANCELLED = 100;
/** As everywhere: a token that is none of ours. */
const INVALID = { code: "TASK_TOKEN_INVALID", message: "The token is none that was given out." };

/** What workers tell of their tasks. A result may come several times: the first one counts, as from any worker. */
export class Reports {
  readonly #parts: ReportsParts;

  constructor(parts: ReportsParts) {
    this.#parts = parts;
  }

  async handle(messages: readonly BusMessage[]): Promise<void> {
    const told: Told[] = [];
    for (const message of messages) {
      await carryOut(this.#parts, message, async () => {
        const report = checkBody<ReportMessage>(reportMessage, readJsonBody(message.value, MAX_DEPTH));
        told.push({ message, report });
      });
    }
    // Before the results: a task that is over has no lease to keep.
    await untilDone(this.#parts, () => this.#beat(told));
    await this.#post(told.filter(({ report }) => "token" in report));
  }

  async #beat(told: readonly Told[]): Promise<void> {
    const { gateway, observer } = this.#parts;
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
    for (const [worker, { tokens, serves }] of held) {
      try {
        over.push(...(await gateway.heartbeat(CALLER, worker, [...tokens], serves)).cancelled);
      } catch (error) {
        // Its next word may be understood: nobody else may have to wait for that.
        if (isPassing(error)) throw error;
        observer.delayed(error);
      }
    }
    await this.#cancel(over);
  }

  /** As well as it can: whoever has such a task tells of it again in a few seconds, and is answered again. */
  async #cancel(over: readonly string[]): Promise<void> {
    const { kafka, topics, observer } = this.#parts;
    try {
      for (let from = 0; from < over.length; from += MOST_CANCELLED) {
        const value: CancelMessage = { tokens: over.slice(from, from + MOST_CANCELLED) };
        await kafka.send([{ topic: topics.cancel, value: JSON.stringify(value) }]);
      }
    } catch (error) {
      observer.delayed(error);
    }
  }

  /** All at once; each by itself if one of them cannot be posted, so that it keeps nobody else back. */
  async #post(told: readonly Told[]): Promise<void> {
    if (told.length === 0) return;
    let isPosted = false;
    await untilDone(this.#parts, async () => {
      try {
        await this.#postTogether(told);
        isPosted = true;
      } catch (error) {
        if (isPassing(error) || error instanceof KafkaError) throw error;
      }
    });
    if (isPosted) return;
    for (const one of told) await carryOut(this.#parts, one.message, () => this.#postTogether([one]));
  }

  async #postTogether(told: readonly Told[]): Promise<void> {
    const results = told.map(({ report }) => resultOf(report));
    const isOurs = await this.#parts.gateway.post(CALLER, results);
    for (const [i, { message }] of told.entries())
      if (isOurs[i] !== true) await putAside(this.#parts, message, INVALID);
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
