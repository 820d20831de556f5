import { setTimeout as sleep } from "node:timers/promises";
import type * as Library from "@platformatic/kafka";
import type { BusAddress } from "../settings/bus-address.ts";
import { isOf, isOfUnknownTopic, told } from "./kafka-errors.ts";
import { type BusRecord, type Kafka, KafkaError, type Subscription } from "./kafka.ts";
import { CLOSED, leaveGroup, Reading, REBALANCE_MS, SESSION_MS, type Stream, unless } from "./reading.ts";

export interface KafkaOptions {
  readonly address: BusAddress;
  /** What brokers call this client. */
  readonly client: string;
  /** Of topics that are made here. */
  readonly partitions: number;
}

const PACKAGE = "@platformatic/kafka";
/** Of a topic that is made here: what a server may hand out, and a worker may give back, is larger than Kafka's own limit. */
const MAX_MESSAGE_BYTES = 20 * 1_048_576;
/** What one request carries, unless a single message is larger: brokers limit all that is written together. */
const REQUEST_BYTES = 524_288;
const HEARTBEAT_MS = 1_000;
const CONNECT_MS = 5_000;
const REQUEST_MS = 10_000;
/** Not fewer than two: the client takes that for "for ever". */
const RETRIES = 2;
const RETRY_MS = 500;
const OUTAGE_RETRY_MS = 2_000;
/** Of the question whether a broker answers, each time that it is asked. */
const ANSWER_MS = 2_000;
const ANSWER_TRIES = 3;
const ANSWER_RETRY_MS = 250;
/** How long a broker waits for something to give. */
const FETCH_WAIT_MS = 1_000;
/** What the client reads ahead, in bytes; of a large message always one. And nothing more while some of it is left. */
const FETCH_BYTES = 1_048_576;
const READ_AHEAD = 1;

/** Connects; rejects with a `KafkaError` if nobody answers. The client's package is loaded only here. */
export async function openKafka({ address, client, partitions }: KafkaOptions): Promise<Kafka> {
  const library = await load();
  const { brokers, tls, user } = address;
  const common = {
    clientId: client,
    bootstrapBrokers: [...brokers],
    connectTimeout: CONNECT_MS,
    requestTimeout: REQUEST_MS,
    timeout: REQUEST_MS,
    retries: RETRIES,
    retryDelay: RETRY_MS,
    ...(tls && { tls: {}, tlsServerName: true }),
    ...(user !== undefined && {
      sasl: { mechanism: "PLAIN" as const, username: user.name, password: user.password },
    }),
  };
  const kafka = new Client(library, common, partitions);
  try {
    await told(() => kafka.connect());
    return kafka;
  } catch (error) {
    await kafka.close().catch(() => undefined);
    throw error;
  }
}

async function load(): Promise<typeof Library> {
  try {
    return await import("@platformatic/kafka");
  } catch (error) {
    const isMissing = (error as { code?: unknown }).code === "ERR_MODULE_NOT_FOUND";
    if (!isMissing) throw error;
    const fix = `npm install ${PACKAGE}`;
    throw new KafkaError(`its client is a package of its own, ${PACKAGE}, which is not installed`, {
      cause: error,
      fix,
    });
  }
}

class Client implements Kafka {
  readonly #library: typeof Library;
  readonly #common: Library.BaseOptions;
  readonly #partitions: number;
  readonly #admin: Library.Admin;
  /** With connections of its own, so that it does not wait behind what others have asked. */
  readonly #asker: Library.Admin;
  readonly #producer: Library.Producer<string, string, string, string>;
  readonly #stopping = new AbortController();
  /** How to end each reader, from when it is first heard of. */
  readonly #readers = new Set<() => Promise<void>>();

  constructor(library: typeof Library, common: Library.BaseOptions, partitions: number) {
    this.#library = library;
    this.#common = common;
    this.#partitions = partitions;
    this.#admin = new library.Admin(common);
    // Without tries of its own: those of one question and of what it asks first would be multiplied.
    this.#asker = new library.Admin({ ...common, connectTimeout: ANSWER_MS, requestTimeout: ANSWER_MS, retries: 0 });
    const { stringSerializers: serializers } = library;
    this.#producer = new library.Producer({ ...common, serializers, idempotent: true, acks: -1 });
    for (const one of [this.#admin, this.#asker, this.#producer]) silence(one);
  }

  /** Once: whoever starts wants to know. */
  async connect(): Promise<void> {
    const admin = new this.#library.Admin({ ...this.#common, retries: 0 });
    silence(admin);
    try {
      await admin.metadata({ topics: [] });
    } finally {
      await admin.close();
    }
  }

  async answers(): Promise<void> {
    // Of no topic: the smallest question that only a broker can answer.
    await this.#ask([]);
  }

  /** Not from memory, and within a few seconds, whatever the brokers do. */
  async #ask(topics: string[]): Promise<Library.ClusterMetadata> {
    for (let tries = 1; ; tries++) {
      try {
        return await told(() => inTime(this.#asker.metadata({ topics, forceUpdate: true })));
      } catch (error) {
        if (tries === ANSWER_TRIES || isOfUnknownTopic(error) || this.#stopping.signal.aborted) throw error;
        await sleep(ANSWER_RETRY_MS);
      }
    }
  }

  async makeTopics(topics: readonly string[]): Promise<void> {
    await told(async () => {
      const there = new Set(await this.#admin.listTopics());
      const configs = [{ name: "max.message.bytes", value: String(MAX_MESSAGE_BYTES) }];
      // One by one: somebody else may just be making one of them.
      for (const topic of topics.filter((name) => !there.has(name))) {
        try {
          await this.#admin.createTopics({ topics: [topic], partitions: this.#partitions, replicas: -1, configs });
        } catch (error) {
          if (!isOf(error, "TOPIC_ALREADY_EXISTS")) throw error;
        }
      }
    });
  }

  async topicId(topic: string): Promise<string> {
    // What the client remembers may be of one that was removed: its starts would be taken for those of the old one.
    const { topics } = await told(() => this.#admin.metadata({ topics: [topic], forceUpdate: true }));
    return topics.get(topic)!.id;
  }

  async send(records: readonly BusRecord[]): Promise<void> {
    for (const messages of inRequests(records)) {
      await told(() => this.#producer.send({ messages: [...messages] }));
    }
  }

  subscribe(topic: string, group: string): Promise<Subscription> {
    return this.#read(topic, group, "committed");
  }

  follow(topic: string): Promise<Subscription> {
    // A group of its own, which leaves nothing behind: nothing is committed in it.
    return this.#read(topic, `${topic}.${crypto.randomUUID()}`, "latest");
  }

  async stopReading(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#readers].map((end) => end()));
  }

  async close(): Promise<void> {
    await this.stopReading();
    await Promise.all([this.#producer.close(), this.#admin.close(), this.#asker.close()]);
  }

  async #read(topic: string, group: string, mode: "committed" | "latest"): Promise<Subscription> {
    if (this.#stopping.signal.aborted) throw new KafkaError(CLOSED);
    const id = await this.topicId(topic);
    const consumer = new this.#library.Consumer({
      ...this.#common,
      groupId: group,
      // It goes on by itself after an outage, however long.
      retries: true,
      retryDelay: OUTAGE_RETRY_MS,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
    });
    silence(consumer);
    // Kept over streams that come and go, so that the group need not change for them.
    consumer.topics.track(topic);
    const open = (): Promise<Stream> =>
      consumer.consume({
        topics: [topic],
        mode,
        fallbackMode: mode === "latest" ? "latest" : "earliest",
        autocommit: false,
        highWaterMark: READ_AHEAD,
        maxWaitTime: FETCH_WAIT_MS,
        maxBytes: FETCH_BYTES,
      });
    const leave = (): Promise<void> => leaveGroup(consumer);
    this.#readers.add(leave);
    try {
      const first = await told(() => unless(this.#stopping.signal, open()));
      const isThere = (): Promise<boolean | undefined> => this.#isThere(topic, id);
      const closed = (): boolean => this.#readers.delete(end);
      const subscription = new Reading(consumer, first, { open, isThere, closed });
      const end = (): Promise<void> => subscription.close();
      this.#readers.add(end);
      return subscription;
    } catch (error) {
      await leave();
      throw error;
    } finally {
      this.#readers.delete(leave);
    }
  }

  /** Whoever does not answer says nothing about it. */
  async #isThere(topic: string, id: string): Promise<boolean | undefined> {
    try {
      // Soon: a group that cannot settle meanwhile is waited for only as long as it is known that nobody answers.
      return (await this.#ask([topic])).topics.get(topic)?.id === id;
    } catch (error) {
      return isOfUnknownTopic(error) ? false : undefined;
    }
  }
}

/** A record that is larger than a request goes alone. */
function* inRequests(records: readonly BusRecord[]): Iterable<readonly BusRecord[]> {
  let part: BusRecord[] = [];
  let bytes = 0;
  for (const record of records) {
    const size = Buffer.byteLength(record.value);
    if (part.length > 0 && bytes + size > REQUEST_BYTES) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(record);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

/** Of brokers that take a question and do nothing. */
async function inTime<Answer>(asked: Promise<Answer>): Promise<Answer> {
  const timer = new AbortController();
  const late = sleep(ANSWER_MS, undefined, { signal: timer.signal }).then(() => {
    throw new KafkaError("no broker has answered");
  });
  late.catch(() => {});
  try {
    return await Promise.race([asked, late]);
  } finally {
    timer.abort();
  }
}

/** An event of this name that nobody hears ends the process; calls tell the same to whoever made them. */
function silence(client: { on(event: "error", listener: () => void): unknown }): void {
  client.on("error", () => {});
}
