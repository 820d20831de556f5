import { checkBody } from "../api/http/check.ts";
import { readJsonBody } from "../api/http/read-body.ts";
import { type Caller, LOCAL } from "../api/service/caller.ts";
import type { Service } from "../api/service/service.ts";
import type { Json } from "../json/json.ts";
import { carryOut, type CarryOutParts } from "./carry-out.ts";
import type { BusMessage } from "./kafka.ts";
import { type StartMessage, startMessage } from "./messages.ts";

export interface StartsParts extends CarryOutParts {
  readonly service: Pick<Service, "submissions" | "pressure">;
}

/** Executions that are started by messages: one for each, however often the message comes. */
export class Starts {
  readonly #parts: StartsParts;

  constructor(parts: StartsParts) {
    this.#parts = parts;
  }

  async handle(messages: readonly BusMessage[]): Promise<void> {
    const topic = await this.#parts.kafka.topicId(this.#parts.topics.start);
    await Promise.all(messages.map((message) => carryOut(this.#parts, message, () => this.#start(message, topic))));
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
