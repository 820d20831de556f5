import { type BusMessage, type BusRecord, type Kafka, KafkaError, type Subscription } from "../../src/bus/kafka.ts";

/** Kafka as far as the bus needs it, in memory: one partition a topic, and one reader. What fails is up to the test. */
export class MemoryKafka implements Kafka {
  readonly sent: BusRecord[] = [];
  readonly committed: BusMessage[] = [];
  readonly made: string[] = [];
  open = 0;
  /** Asked before each call: to throw here is to fail it. */
  fault: (
    call: "answers" | "makeTopics" | "send" | "subscribe" | "follow" | "commit" | "topicId",
    topic: string,
  ) => void | Promise<void> = () => {};
  /** What the topics take; a message that is larger is refused. */
  maxBytes = Infinity;
  readonly #waiting = new Map<string, BusMessage[]>();
  #ended = Promise.withResolvers<never>();

  constructor() {
    this.#ended.promise.catch(() => undefined);
  }

  /** Puts messages into a topic. */
  put(topic: string, ...values: readonly (string | object)[]): readonly BusMessage[] {
    const messages = values.map((value, i): BusMessage => {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      const offset = BigInt((this.#waiting.get(topic)?.length ?? 0) + i);
      return { topic, partition: 0, offset, leaderEpoch: 0, key: undefined, value: Buffer.from(text) };
    });
    this.#waiting.set(topic, [...(this.#waiting.get(topic) ?? []), ...messages]);
    return messages;
  }

  sentTo(topic: string): readonly unknown[] {
    return this.sent.filter((record) => record.topic === topic).map(({ value }) => JSON.parse(value) as unknown);
  }

  async makeTopics(topics: readonly string[]): Promise<void> {
    for (const topic of topics) await this.fault("makeTopics", topic);
    this.made.push(...topics);
  }

  async answers(): Promise<void> {
    await this.fault("answers", "");
  }

  async topicId(topic: string): Promise<string> {
    await this.fault("topicId", topic);
    return `id-of-${topic}`;
  }

  async send(records: readonly BusRecord[]): Promise<void> {
    for (const { topic } of records) await this.fault("send", topic);
    if (records.some(({ value, key = "" }) => value.length + key.length > this.maxBytes))
      throw new KafkaError("too large", { isTooLarge: true });
    this.sent.push(...records);
  }

  async subscribe(topic: string): Promise<Subscription> {
    return this.#subscription(topic, "subscribe");
  }

  async follow(topic: string): Promise<Subscription> {
    return this.#subscription(topic, "follow");
  }

  async stopReading(): Promise<void> {
    this.#ended.reject(new KafkaError("closed"));
  }

  async close(): Promise<void> {
    await this.stopReading();
  }

  async #subscription(topic: string, call: "subscribe" | "follow"): Promise<Subscription> {
    await Promise.race([this.fault(call, topic), this.#ended.promise]);
    this.open++;
    return {
      ready: async () => {},
      take: (max) => (this.#waiting.get(topic) ?? []).splice(0, max),
      commit: async (messages) => {
        await Promise.race([this.fault("commit", topic), this.#ended.promise]);
        this.committed.push(...messages);
        return messages;
      },
      close: async () => {
        this.open--;
      },
    };
  }
}
