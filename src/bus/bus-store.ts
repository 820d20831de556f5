import type { Host } from "../host/host.ts";
import type {
  Heartbeat,
  HeartbeatOutcome,
  LeasedTask,
  LeaseRequest,
  Settlement,
  SettleOutcome,
  Store,
  Tasks,
} from "../store/contract.ts";
import { type FarTask, FarResults, isFarTask, leasedFarTask } from "../worker/far-tasks.ts";
import { Cancellations } from "./cancellations.ts";
import { type BusMessage, type BusRecord, type Kafka, KafkaError, type Subscription } from "./kafka.ts";
import { reject } from "./rejections.ts";
import type { Topics } from "./topics.ts";

export interface BusStoreOptions {
  readonly kafka: Kafka;
  readonly topics: Topics;
  /** In front of the names of groups. */
  readonly prefix: string;
  readonly host: Host;
  /** What the server calls the worker. */
  readonly worker: string;
}

/** A queue that is read here. */
interface Reader {
  readonly queue: string;
  readonly subscription: Subscription;
}

/**
 * What a worker needs of a store, over Kafka: so the worker that runs beside an engine also runs where there is nothing
 * but a broker, with all its care for time limits and errors.
 *
 * Workers of one queue are a group, so that each task comes to one of them. An offset is committed before its task is
 * begun, not when it is done: then no task is begun twice because its worker died or the group changed, and tasks that
 * take long keep nobody back. That a worker has died is noticed by its silence, as everywhere: it says which tasks it has
 * before it begins them, and every few seconds again.
 */
export class BusStore {
  readonly #options: BusStoreOptions;
  readonly #results = new FarResults();
  readonly #cancellations: Cancellations;
  readonly #readers = new Map<string, Reader>();
  /** Those under way. */
  readonly #leases = new Set<Promise<unknown>>();
  #isClosing = false;

  constructor(options: BusStoreOptions) {
    this.#options = options;
    this.#cancellations = new Cancellations(options);
  }

  /** As the worker takes it. It calls no other role. */
  get store(): Store {
    const tasks: Pick<Tasks, "lease" | "heartbeat" | "settle"> = {
      lease: (request) => {
        const leasing = this.#lease(request);
        const ended = (): void => void this.#leases.delete(leasing);
        this.#leases.add(leasing);
        leasing.then(ended, ended);
        return leasing;
      },
      heartbeat: (beats) => this.#heartbeat(beats),
      settle: (results) => this.#settle(results),
    };
    const { records } = this.#results;
    const capabilities = { volatileTasks: false };
    return { capabilities, tasks, records } as unknown as Store;
  }

  /**
   * Whoever waits for tasks is answered soon, also if no broker answers, and nobody is given any more. Others read the
   * queues from then on, while what was taken here is worked on.
   */
  async stopLeasing(): Promise<void> {
    const { host, kafka } = this.#options;
    this.#isClosing = true;
    const isOver = new AbortController();
    await Promise.race([Promise.allSettled(this.#leases), host.sleep(STOP_MS, isOver.signal)]);
    isOver.abort();
    await kafka.stopReading();
  }

  /** Says that the worker is alive, and what it serves. */
  async announce(handlers: readonly string[], queues: readonly string[]): Promise<void> {
    await this.#tell({ worker_id: this.#options.worker, tokens: [], handlers, queues });
  }

  // ── taking ────────────────────────────────────────────────────────────────────────────────────────────────────

  async #lease({ queues, max, waitMs }: LeaseRequest): Promise<readonly LeasedTask[]> {
    const untilMs = this.#options.host.monotonicMs() + waitMs;
    while (!this.#isClosing) {
      const readers = await this.#readersOf(queues);
      for (const reader of readers) {
        const taken = await this.#take(reader, max);
        if (taken.length > 0) return taken;
      }
      const leftMs = untilMs - this.#options.host.monotonicMs();
      if (leftMs <= 0) break;
      const waits = readers.map(({ subscription }) => subscription.ready(Math.min(leftMs, LOOK_MS)));
      await (waits.length === 0 ? this.#options.host.sleep(leftMs) : Promise.race(waits));
    }
    return [];
  }

  async #readersOf(queues: readonly string[]): Promise<readonly Reader[]> {
    const { kafka, topics, prefix } = this.#options;
    const missing = queues.filter((queue) => !this.#readers.has(queue));
    if (missing.length > 0) await kafka.makeTopics(missing.map(topics.dispatch));
    await Promise.all(
      missing.map(async (queue) => {
        const topic = topics.dispatch(queue);
        const subscription = await kafka.subscribe(topic, `${prefix}.worker.${topic}`);
        // At once: if another queue cannot be read, this one must not be read by a member that nobody asks.
        this.#readers.set(queue, { queue, subscription });
      }),
    );
    return queues.map((queue) => this.#readers.get(queue)!);
  }

  /** If anything goes wrong the queue is read anew, from what was committed: nothing of it was begun. */
  async #take(reader: Reader, max: number): Promise<readonly LeasedTask[]> {
    const { subscription, queue } = reader;
    try {
      const messages = subscription.take(max);
      if (messages.length === 0) return [];
      const tasks = new Map<BusMessage, LeasedTask>();
      for (const message of messages) {
        const task = await this.#read(message);
        if (task !== undefined) tasks.set(message, leasedFarTask(task, queue));
      }
      // In this order: of a task that nobody has heard of, nobody would notice that it was lost.
      if (tasks.size > 0) await this.#beat([...tasks.values()].map(({ token }) => token));
      const ours = await subscription.commit(messages);
      return ours.map((message) => tasks.get(message)).filter((task) => task !== undefined);
    } catch (error) {
      await this.#drop(reader);
      throw error;
    }
  }

  /** Undefined if it is no task. */
  async #read(message: BusMessage): Promise<FarTask | undefined> {
    const { kafka, topics } = this.#options;
    try {
      const task: unknown = JSON.parse(message.value.toString());
      if (isFarTask(task)) return task;
    } catch {
      // Said below.
    }
    const reason = { code: "INVALID_JSON", message: "This is not a task." };
    await reject(kafka, topics.rejected, message, reason);
    return undefined;
  }

  async #drop(reader: Reader): Promise<void> {
    if (this.#readers.get(reader.queue) === reader) this.#readers.delete(reader.queue);
    await reader.subscription.close().catch(() => undefined);
  }

  // ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────

  async #heartbeat(beats: readonly Heartbeat[]): Promise<HeartbeatOutcome> {
    const tokens = beats.map(({ token }) => token);
    await this.#beat(tokens);
    return { lost: [], cancelled: await this.#cancellations.of(tokens) };
  }

  async #beat(tokens: readonly string[]): Promise<void> {
    for (let from = 0; from < tokens.length; from += MOST_TOKENS)
      await this.#tell({ worker_id: this.#options.worker, tokens: tokens.slice(from, from + MOST_TOKENS) });
  }

  async #tell(body: object): Promise<void> {
    const { kafka, topics } = this.#options;
    await kafka.send([{ topic: topics.complete, value: JSON.stringify(body) }]);
  }

  async #settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    const { kafka } = this.#options;
    const records = results.map((result) => this.#recordOf(result));
    try {
      await kafka.send(records);
    } catch (error) {
      if (!(error instanceof KafkaError) || !error.isTooLarge) throw error;
      // Results may be told twice; one that is too large must not keep the others back.
      for (const [i, record] of records.entries()) await this.#sendAlone(results[i]!, record);
    }
    this.#results.forget(results);
    return results.map(() => "settled");
  }

  #recordOf(result: Settlement): BusRecord {
    const { outcome, body, runningMs } = this.#results.read(result);
    const told = {
      ...body,
      ...(outcome === "handedBack" && { hand_back: true }),
      ...(runningMs !== undefined && { running_ms: runningMs }),
    };
    return { topic: this.#options.topics.complete, value: JSON.stringify(told) };
  }

  async #sendAlone({ token }: Settlement, record: BusRecord): Promise<void> {
    try {
      await this.#options.kafka.send([record]);
    } catch (error) {
      if (!(error instanceof KafkaError) || !error.isTooLarge) throw error;
      const message = `The result is larger than the topic takes: ${error.message}`;
      await this.#tell({ token, error: { code: "OUTPUT_TOO_LARGE", message, retryable: false } });
    }
  }
}

/** What the server takes in one message. */
const MOST_TOKENS = 500;
/** How long readers may take to end in order. */
const STOP_MS = 5_000;
/** How often all queues are looked at while one waits. */
const LOOK_MS = 500;
