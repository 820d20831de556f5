import { setTimeout as sleep } from "node:timers/promises";
import type * as Library from "@platformatic/kafka";
import { kafkaError, told } from "./kafka-errors.ts";
import { type BusMessage, KafkaError, type Subscription } from "./kafka.ts";

type Consumer = Library.Consumer;
export type Stream = Library.MessagesStream<Buffer, Buffer, Buffer, Buffer>;

/** A member that is not heard of for so long has lost its partitions; whoever joins waits for the others for so long. */
export const SESSION_MS = 10_000;
export const REBALANCE_MS = 15_000;
/** One that has not heard of its group for so long may have lost them. */
const SILENT_MS: number = SESSION_MS / 2;
/** How often it is looked whether a group has settled. */
const SETTLE_MS = 10;
/** A group that changes for longer has lost this member without a word: the client has given up. */
const UNSETTLED_MS: number = 2 * REBALANCE_MS;
/** Readers retry for ever; whoever waits for a commit does not. */
const COMMIT_MS = 15_000;
/** To leave a group in order. A broker that does not answer notices by itself. */
const LEAVE_MS = 3_000;
/** How often a reader looks whether its topic is still the same. */
const TOPIC_LOOK_MS = 5_000;
const UNSETTLED = "the group of readers is still changing";
export const CLOSED = "Kafka did not answer before the reader was closed";

export interface ReadingParts {
  readonly open: () => Promise<Stream>;
  /** Whether the topic is the one that it reads; undefined if nobody answers. */
  readonly isThere: () => Promise<boolean | undefined>;
  readonly closed: () => void;
}

/**
 * One member of a group. With every change of the group its stream is opened anew: one that goes on yields what belongs
 * to others by now, and passes over what came back.
 */
export class Reading implements Subscription {
  readonly #consumer: Consumer;
  readonly #parts: ReadingParts;
  /** What was taken last of each partition: what is not committed comes again with every new stream. */
  readonly #taken = new Map<string, bigint>();
  readonly #closing = new AbortController();
  readonly #running: Promise<unknown>;
  #stream: Stream | undefined;
  #failure: unknown;
  #wake: () => void = () => {};
  /** Since when the group has been changing, while brokers answer. */
  #unsettledAtMs: number | undefined;
  #joinedAtMs = Date.now();
  #memberId: string | null = null;
  /** For each partition that is ours, a number drawn when it came: one that was somebody else's meanwhile has another. */
  readonly #holds = new Map<string, number>();
  #lastHold = 0;
  /** Under which of them a message was taken. */
  readonly #takenUnder = new WeakMap<BusMessage, number>();

  constructor(consumer: Consumer, first: Stream, parts: ReadingParts) {
    this.#consumer = consumer;
    this.#parts = parts;
    this.#noteHolds();
    consumer.on("consumer:group:join", () => this.#changeGroup());
    this.#running = Promise.all([this.#run(first), this.#watchTopic()]);
  }

  async ready(waitMs: number): Promise<void> {
    const isAtHand = this.#isMember() && (this.#stream?.readableLength ?? 0) > 0;
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
      const hold = this.#holds.get(place);
      if (hold === undefined || offset <= (this.#taken.get(place) ?? -1n)) continue;
      this.#taken.set(place, offset);
      const bytes = value ?? Buffer.alloc(0);
      const message = { topic, partition, offset, leaderEpoch, key: key?.toString(), value: bytes };
      this.#takenUnder.set(message, hold);
      messages.push(message);
    }
    return messages;
  }

  async commit(messages: readonly BusMessage[]): Promise<readonly BusMessage[]> {
    await this.#settled();
    // What was somebody else's meanwhile comes to whoever has it now.
    const held = messages.filter((message) => this.#isHeld(message));
    const last = new Map(held.map((message) => [placeOf(message), message]));
    const offsets = [...last.values()].map(({ topic, partition, offset, leaderEpoch }) => {
      return { topic, partition, offset: offset + 1n, leaderEpoch };
    });
    if (offsets.length > 0) await told(() => this.#inTime(this.#consumer.commit({ offsets })));
    // The group may have changed under way: the client joins anew then and tries again, whoever has the partition by now.
    return held.filter((message) => this.#isHeld(message));
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
      const isThere = await unless(signal, this.#parts.isThere()).catch(() => undefined);
      // Without a broker no group can settle: to begin anew for that would only keep it changing when there is one again.
      if (isThere === undefined) this.#unsettledAtMs = undefined;
      if (isThere === false) this.#fail(new KafkaError("the topic was removed"));
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
    this.#joinedAtMs = Date.now();
    this.#noteHolds();
    this.#stream?.destroy();
    this.#stream = undefined;
  }

  /** A member hears of every change of its group. One that was thrown out comes back under another name, and held nothing. */
  #noteHolds(): void {
    const { memberId, assignments } = this.#consumer;
    const owned = (assignments ?? []).flatMap(({ topic, partitions }) =>
      partitions.map((partition) => placeOf({ topic, partition })),
    );
    const kept = new Set(memberId === this.#memberId ? owned : []);
    this.#memberId = memberId;
    for (const place of [...this.#holds.keys()].filter((one) => !kept.has(one))) {
      this.#holds.delete(place);
      this.#taken.delete(place);
    }
    for (const place of owned) if (!this.#holds.has(place)) this.#holds.set(place, ++this.#lastHold);
  }

  /** While the group changes nobody knows what is ours. */
  async #settled(): Promise<void> {
    const untilMs = performance.now() + REBALANCE_MS;
    while (!this.#isMember()) {
      if (this.#closing.signal.aborted || performance.now() > untilMs) throw new KafkaError(UNSETTLED);
      await sleep(SETTLE_MS);
    }
  }

  /** Throws if it will never settle again. */
  #isSettled(): boolean {
    if (this.#isMember()) {
      this.#unsettledAtMs = undefined;
      return true;
    }
    this.#unsettledAtMs ??= performance.now();
    if (performance.now() - this.#unsettledAtMs > UNSETTLED_MS) throw new KafkaError(UNSETTLED);
    return false;
  }

  /** One whose process stood still believes that it is, until somebody tells it. */
  #isMember(): boolean {
    const heardAtMs = Math.max(this.#joinedAtMs, this.#consumer.lastHeartbeat?.getTime() ?? 0);
    return this.#consumer.isActive() && Date.now() - heardAtMs < SILENT_MS;
  }

  async #inTime(commit: Promise<void>): Promise<void> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), COMMIT_MS);
    await unless(AbortSignal.any([this.#closing.signal, late.signal]), commit).finally(() => clearTimeout(timer));
  }

  #isHeld(message: BusMessage): boolean {
    return this.#holds.get(placeOf(message)) === this.#takenUnder.get(message);
  }
}

function placeOf({ topic, partition }: Pick<BusMessage, "topic" | "partition">): string {
  return `${topic}:${partition}`;
}

/** By force: what was read ahead and not taken is for the next. Never rejects. */
export async function leaveGroup(consumer: Consumer): Promise<void> {
  const left = new AbortController();
  const leaving = consumer.close(true).catch(() => undefined);
  await Promise.race([leaving, sleep(LEAVE_MS, undefined, { signal: left.signal }).catch(() => undefined)]);
  left.abort();
}

/** Whatever comes of the work, or an error as soon as nobody may wait for it any more. */
export async function unless<Answer>(signal: AbortSignal, work: Promise<Answer>): Promise<Answer> {
  const { promise, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(new KafkaError(CLOSED));
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", end));
}
