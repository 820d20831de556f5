import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";

/** Kafka as somebody else's program uses it, with its own client and nothing of ours. */
export class Stranger {
  readonly #common: { clientId: string; bootstrapBrokers: string[] };
  readonly #producer: Producer<string, string, string, string>;
  readonly #consumers: Consumer<string, string, string, string>[] = [];

  constructor(url: string) {
    this.#common = { clientId: "stranger", bootstrapBrokers: [url.replace("kafka://", "")] };
    this.#producer = new Producer({ ...this.#common, serializers: stringSerializers });
  }

  async makeTopic(topic: string, maxMessageBytes: number): Promise<void> {
    const admin = new Admin(this.#common);
    const configs = [{ name: "max.message.bytes", value: String(maxMessageBytes) }];
    await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1, configs });
    await admin.close();
  }

  async removeTopic(topic: string): Promise<void> {
    const admin = new Admin(this.#common);
    await admin.deleteTopics({ topics: [topic] });
    await admin.close();
  }

  async send(topic: string, values: readonly (string | object)[]): Promise<void> {
    const messages = values.map((value) => ({
      topic,
      value: typeof value === "string" ? value : JSON.stringify(value),
    }));
    await this.#producer.send({ messages });
  }

  /** All that is in a topic, and what comes: whoever asks looks again. */
  async read(topic: string): Promise<readonly string[]> {
    const consumer = new Consumer({
      ...this.#common,
      groupId: `stranger-${crypto.randomUUID()}`,
      deserializers: stringDeserializers,
    });
    this.#consumers.push(consumer);
    const values: string[] = [];
    const stream = await consumer.consume({ topics: [topic], mode: "earliest", autocommit: false });
    stream.on("data", ({ value }) => values.push(value));
    return values;
  }

  async close(): Promise<void> {
    await Promise.all(this.#consumers.map((consumer) => consumer.close(true)));
    await this.#producer.close();
  }
}
