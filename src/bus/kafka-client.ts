import { setTimeout as sleep } from "node:timers/promises";
import type * as Library from "@platformatic/kafka";
import type { BusAddress } from "../settings/bus-address.ts";
import { type BusMessage, type BusRecord, type Kafka, KafkaError, type Subscription } from "./kafka.ts";

export interface KafkaOptions {
  readonly address: BusAddress;
  /** What brokers call this client. */
  readonly client: string;
  /** Of topics that are made here. */
  readonly partitions: number;
}

type Consumer = Library.Consumer;
type Stream = Library.MessagesStream<Buffer, Buffer, Buffer, Buffer>;

const PACKAGE = "@platformatic/kafka";
/** Of a topic that is made here: what a server may hand out, and a worker may give back, is larger than Kafka's own limit. */
const MAX_MESSAGE_BYTES = 20 * 1_048_576;
/** What one request carries, unless a single message is larger: brokers limit all that is written together. */
const REQUEST_BYTES = 524_288;
/** A member that is not heard of for so long has lost its partitions; whoever joins waits for the others for so long. */
const SESSION_MS = 10_000;
const REBALANCE_MS = 15_000;
const HEARTBEAT_MS = 1_000;
const CONNECT_MS = 5_000;
const REQUEST_MS = 10_000;
/** Not fewer than two: the client takes that for "for ever". */
const RETRIES = 2;
const RETRY_MS = 500;
const OUTAGE_RETRY_MS = 2_000;
/** How long a broker waits for something to give. */
const FETCH_WAIT_MS = 1_000;
/** What the client reads ahead; of a large message always one. */
const READ_AHEAD = 100;
const FETCH_BYTES = 1_048_576;
/** How often it is looked whether a group has settled. */
const SETTLE_MS = 10;
/** A group that changes for longer has lost this member without a word: the client has given up. */
const UNSETTLED_MS = 2 * REBALANCE_MS;
/** Readers retry for ever; whoever waits for a commit does not. */
const COMMIT_MS = 15_000;
/** To leave a group in order. A broker that does not answer notices by itself. */
const LEAVE_MS = 3_000;
/** How often a reader looks whether its topic is still the same. */
const TOPIC_LOOK_MS = 5_000;

const CLOSED = "Kafka did not answer before the reader was closed";
const UNSETTLED = "the group of readers is still changing";

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
  readonly #producer: Library.Producer<string, string, string, string>;
  readonly #stopping = new AbortController();
  /** How to end each reader, from when it is first heard of. */
  readonly #readers = new Set<() => Promise<void>>();

  constructor(library: typeof Library, common: Library.BaseOptions, partitions: number) {
    this.#library = library;
    this.#common = common;
    this.#partitions = partitions;
    this.#admin = new library.Admin(common);
    const { stringSerializers: serializers } = library;
    this.#producer = new library.Producer({ ...common, serializers, idempotent: true, acks: -1 });
    for (const one of [this.#admin, this.#producer]) silence(one);
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
    await Promise.all([this.#producer.close(), this.#admin.close()]);
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
      const isThere = (): Promise<boolean> => this.#isThere(topic, id);
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

  async #isThere(topic: string, id: string): Promise<boolean> {
    try {
      return (await this.topicId(topic)) === id;
    } catch (error) {
      // Whoever does not answer says nothing about it.
      return !isOf(error, "UNKNOWN_TOPIC_OR_PARTITION");
    }
  }
}

interface ReadingParts {
  readonly open: () => Promise<Stream>;
  /** Whether the topic is the one that it reads. */
  readonly isThere: () => Promise<boolean>;
  readonly closed: () => void;
}

/**
 * One member of a group. With every change of the group its stream is opened anew: one that goes on yields what belongs
 * to others by now, and passes over what came back.
 */
class Reading implements Subscription {
  readonly #consumer: Consumer;
  readonly #parts: ReadingParts;
  /** What was taken last of each partition: what is not committed comes again with every new stream. */
  readonly #taken = new Map<string, bigint>();
  readonly #closing = new AbortController();
  readonly #running: Promise<unknown>;
  #stream: Stream | undefined;
  #failure: unknown;
  #wake: () => void = () => {};
  /** Since when the group has been changing. */
  #unsettledAtMs: number | undefined;

  constructor(consumer: Consumer, first: Stream, parts: ReadingParts) {
    this.#consumer = consumer;
    this.#parts = parts;
    consumer.on("consumer:group:join", () => this.#changeGroup());
    this.#running = Promise.all([this.#run(first), this.#watchTopic()]);
  }

  async ready(waitMs: number): Promise<void> {
    const isAtHand = this.#consumer.isActive() && (this.#stream?.readableLength ?? 0) > 0;
    if (this.#failure !== undefined || isAtHand) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, waitMs);
    await promise;
    clearTimeout(timer);
  }

  take(max: number): readonly BusMessage[] {
    if (this.#failure !== undefined) throw kafkaError(this.#failure);
    // What is at hand may belong to somebody else by now: whoever took it could only put it back.
    if (!this.#isSettled()) return [];
    const messages: BusMessage[] = [];
    while (messages.length < max) {
      const read = this.#stream?.read() as Library.Message | null | undefined;
      if (read === null || read === undefined) break;
      const { topic, partition, offset, leaderEpoch, key, value } = read;
      const place = placeOf(read);
      if (!this.#owns(read) || offset <= (this.#taken.get(place) ?? -1n)) continue;
      this.#taken.set(place, offset);
      messages.push({ topic, partition, offset, leaderEpoch, key: key?.toString(), value: value ?? Buffer.alloc(0) });
    }
    return messages;
  }

  async commit(messages: readonly BusMessage[]): Promise<readonly BusMessage[]> {
    await this.#settled();
    const owned = messages.filter((message) => this.#owns(message));
    const last = new Map(owned.map((message) => [placeOf(message), message]));
    const offsets = [...last.values()].map(({ topic, partition, offset, leaderEpoch }) => {
      return { topic, partition, offset: offset + 1n, leaderEpoch };
    });
    if (offsets.length > 0) await told(() => this.#inTime(this.#consumer.commit({ offsets })));
    // The group may have changed under way, and the client tries again then, whoever has the partition by now.
    return owned.filter((message) => this.#owns(message));
  }

  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) this.#parts.closed();
    this.#closing.abort();
    await leaveGroup(this.#consumer);
    this.#stream?.destroy();
    await this.#running;
  }

  /** Keeps a stream open. What goes wrong with it is told to whoever takes. */
  async #run(first: Stream): Promise<void> {
    try {
      const { signal } = this.#closing;
      for (let stream = first; ; stream = await unless(signal, this.#parts.open()))
        await unless(signal, this.#pass(stream));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Of a topic that was removed the client asks for ever, also when there is a new one of that name. */
  async #watchTopic(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#failure === undefined) {
      await sleep(TOPIC_LOOK_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      if (!(await this.#parts.isThere())) this.#fail(new KafkaError("the topic was removed"));
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#stream?.destroy();
    this.#wake();
  }

  /** Until it is closed by us, or by an error, with which it rejects. */
  #pass(stream: Stream): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#stream = stream;
    // Reading begins with whoever listens.
    stream.on("readable", () => this.#wake());
    stream.on("error", reject);
    stream.on("close", resolve);
    this.#wake();
    return promise;
  }

  #changeGroup(): void {
    const owned = new Set(this.#owned());
    for (const place of this.#taken.keys()) if (!owned.has(place)) this.#taken.delete(place);
    this.#stream?.destroy();
    this.#stream = undefined;
  }

  /** While the group changes nobody knows what is ours. */
  async #settled(): Promise<void> {
    const untilMs = performance.now() + REBALANCE_MS;
    while (!this.#consumer.isActive()) {
      if (this.#closing.signal.aborted || performance.now() > untilMs) throw new KafkaError(UNSETTLED);
      await sleep(SETTLE_MS);
    }
  }

  /** Throws if it will never settle again. */
  #isSettled(): boolean {
    if (this.#consumer.isActive()) {
      this.#unsettledAtMs = undefined;
      return true;
    }
    this.#unsettledAtMs ??= performance.now();
    if (performance.now() - this.#unsettledAtMs > UNSETTLED_MS) throw new KafkaError(UNSETTLED);
    return false;
  }

  async #inTime(commit: Promise<void>): Promise<void> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), COMMIT_MS);
    await unless(AbortSignal.any([this.#closing.signal, late.signal]), commit).finally(() => clearTimeout(timer));
  }

  #owned(): readonly string[] {
    const assigned = this.#consumer.assignments ?? [];
    return assigned.flatMap(({ topic, partitions }) => partitions.map((partition) => placeOf({ topic, partition })));
  }

  #owns({ topic, partition }: Pick<BusMessage, "topic" | "partition">): boolean {
    const assigned = this.#consumer.assignments ?? [];
    return assigned.some((one) => one.topic === topic && one.partitions.includes(partition));
  }
}

function placeOf({ topic, partition }: Pick<BusMessage, "topic" | "partition">): string {
  return `${topic}:${partition}`;
}

/** By force: what was read ahead and not taken is for the next. Never rejects. */
async function leaveGroup(consumer: Consumer): Promise<void> {
  const left = new AbortController();
  const leaving = consumer.close(true).catch(() => undefined);
  await Promise.race([leaving, sleep(LEAVE_MS, undefined, { signal: left.signal }).catch(() => undefined)]);
  left.abort();
}

/** Whatever comes of the work, or an error as soon as nobody may wait for it any more. */
async function unless<Answer>(signal: AbortSignal, work: Promise<Answer>): Promise<Answer> {
  const { promise, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(new KafkaError(CLOSED));
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", end));
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

/** An event of this name that nobody hears ends the process; calls tell the same to whoever made them. */
function silence(client: { on(event: "error", listener: () => void): unknown }): void {
  client.on("error", () => {});
}

async function told<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    throw kafkaError(error);
  }
}

const TOO_LARGE = ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"];

function kafkaError(error: unknown): KafkaError {
  if (error instanceof KafkaError) return error;
  const isTooLarge = TOO_LARGE.some((id) => isOf(error, id));
  const said = [...causesOf(error)].map((one) => one.message).filter((text) => text !== "");
  return new KafkaError([...new Set(said)].join(" ") || "Kafka does not answer", { cause: error, isTooLarge });
}

function isOf(error: unknown, apiId: string): boolean {
  return [...causesOf(error)].some((one) => (one as { apiId?: unknown }).apiId === apiId);
}

/** An error, and those that it was made of. */
function* causesOf(error: unknown): Iterable<Error> {
  if (!(error instanceof Error)) return;
  yield error;
  for (const one of (error as { errors?: readonly unknown[] }).errors ?? []) yield* causesOf(one);
  yield* causesOf(error.cause);
}
