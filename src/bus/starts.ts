import { checkBody } from "../api/http/check.ts";
import { readJsonBody } from "../api/http/read-body.ts";
import { type Caller, LOCAL } from "../api/service/caller.ts";
import type { Service } from "../api/service/service.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { BusMessage, Kafka } from "./kafka.ts";
import { type StartMessage, startMessage } from "./messages.ts";
import { reject, rejectionOf } from "./rejections.ts";
import type { Topics } from "./topics.ts";

export interface StartsParts {
  readonly kafka: Kafka;
  readonly topics: Topics;
  readonly service: Pick<Service, "submissions" | "pressure">;
  readonly host: Host;
  readonly stopping: AbortSignal;
  readonly observer: StartsObserver;
}

export interface StartsObserver {
  rejected(message: BusMessage, code: string, reason: string): void;
  /** Nothing is wrong with it, and it cannot be carried out now. */
  delayed(error: unknown): void;
}

const AGAIN_MS = 1_000;

/** Executions that are started by messages: one for each, however often the message comes. */
export class Starts {
  readonly #parts: StartsParts;

  constructor(parts: StartsParts) {
    this.#parts = parts;
  }

  async handle(messages: readonly BusMessage[]): Promise<void> {
    const topic = await this.#parts.kafka.topicId(this.#parts.topics.start);
    await Promise.all(messages.map((message) => this.#handle(message, topic)));
  }

  /** Rejects only if it was told to stop: the message comes again then. */
  async #handle(message: BusMessage, topic: string): Promise<void> {
    const { kafka, topics, host, stopping, observer } = this.#parts;
    for (;;) {
      try {
        return await this.#start(message, topic);
      } catch (error) {
        const reason = rejectionOf(error);
        if (reason !== undefined) {
          await reject(kafka, topics.rejected, message, reason);
          return observer.rejected(message, reason.code, reason.message);
        }
        observer.delayed(error);
      }
      await host.sleep(AGAIN_MS, stopping);
      stopping.throwIfAborted();
    }
  }

  async #start({ value, partition, offset }: BusMessage, topic: string): Promise<void> {
    const { service } = this.#parts;
    const body: StartMessage = checkBody(startMessage, readJsonBody(value));
    const { workflow, version, labels, input_params: input, idempotency_key: given } = body;
    // New work waits in Kafka while there is too much of it here.
    await service.pressure.check();
    const key = given ?? `bus:${topic}:${partition}:${offset}`;
    const caller: Caller = { ...LOCAL, by: "bus", key };
    await service.submissions.start(caller, workflow, { input: (input ?? {}) as Json, version, labels });
  }
}
