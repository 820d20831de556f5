import type { Service } from "../api/service/service.ts";
import type { Host } from "../host/host.ts";
import type { CarryOutObserver } from "./carry-out.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { BusMessage, Kafka } from "./kafka.ts";
import { unless } from "./reading.ts";
import { Reports } from "./reports.ts";
import { Room } from "./room.ts";
import { serveTopic } from "./serve-topic.ts";
import { Starts } from "./starts.ts";
import type { Topics } from "./topics.ts";

export interface BusOptions {
  readonly kafka: Kafka;
  readonly topics: Topics;
  /** In front of the names of groups. */
  readonly prefix: string;
  readonly service: Service;
  readonly host: Host;
  /** Whose tasks are sent. */
  readonly queues: readonly string[];
  readonly window: number;
  readonly observer: BusObserver;
}

export interface BusObserver {
  /** Everything works again if there is none. */
  changed(trouble: string | undefined): void;
  rejected(message: BusMessage, code: string, reason: string): void;
}

/** How long what is under way may take when it is stopped. */
const STOP_MS = 5_000;
/** How often it is looked whether a broker answers. */
const LOOK_MS = 2_000;
/** What a trouble is about that is not of one topic. */
const BROKERS = "brokers";

/**
 * The server's side of the bus: starts and results come from Kafka, tasks of some queues go there. It owns nothing and
 * decides nothing: to the engine it is one more client, and one more worker.
 */
export class Bus {
  readonly #options: BusOptions;
  readonly #stopping = new AbortController();
  /** By what it is about. */
  readonly #troubles = new Map<string, string>();
  #work: Promise<unknown> = Promise.resolve();

  constructor(options: BusOptions) {
    this.#options = options;
  }

  /** Why something cannot be read, written or carried out now; undefined if everything can. */
  get trouble(): string | undefined {
    const [first] = this.#troubles;
    return first === undefined ? undefined : `${first[0]}: ${first[1]}`;
  }

  /** Rejects if Kafka is not there: whoever asks for a bus wants to know. */
  async start(): Promise<void> {
    const { kafka, topics, queues, prefix, service, host, window } = this.#options;
    const { start, complete, cancel, rejected, dispatch } = topics;
    await kafka.makeTopics([start, complete, cancel, rejected, ...queues.map(dispatch)]);
    const stopping = this.#stopping.signal;
    const group = `${prefix}.server`;
    const common = { kafka, topics, host, stopping };
    const serve = (topic: string, handle: (messages: readonly BusMessage[]) => Promise<void>): Promise<void> =>
      serveTopic({ ...common, topic, group: `${group}.${topic}`, handle, trouble: this.#troubleOf(topic) });
    const starts = new Starts({ ...common, service, observer: this.#observerOf(start) });
    const reports = new Reports({ ...common, gateway: service.gateway, observer: this.#observerOf(complete) });
    const room = new Room({ queries: service.store.queries, host, window });
    const dispatchers = queues.map((queue) => {
      const trouble = this.#troubleOf(dispatch(queue));
      return new Dispatcher({ ...common, gateway: service.gateway, room, queue, trouble });
    });
    await Promise.all(dispatchers.map((dispatcher) => dispatcher.announce()));
    this.#work = Promise.all([
      serve(start, (messages) => starts.handle(messages)),
      serve(complete, (messages) => reports.handle(messages)),
      ...dispatchers.map((dispatcher) => dispatcher.run()),
      this.#watchBrokers(),
    ]);
  }

  /** Takes and sends nothing more; what is under way is brought to its end, or comes again to another server. */
  async stop(): Promise<void> {
    const { kafka, host } = this.#options;
    this.#stopping.abort();
    const isOver = new AbortController();
    const work = this.#work.finally(() => isOver.abort());
    // Without a broker it would never end.
    await Promise.race([work, host.sleep(STOP_MS, isOver.signal)]);
    await kafka.close();
    await work;
  }

  /** Readers go on by themselves after an outage and say nothing of it, and whoever has nothing to send would not notice. */
  async #watchBrokers(): Promise<void> {
    const { kafka, host } = this.#options;
    const stopping = this.#stopping.signal;
    const trouble = this.#troubleOf(BROKERS);
    while (!stopping.aborted) {
      await host.sleep(LOOK_MS, stopping);
      if (stopping.aborted) return;
      try {
        await unless(stopping, kafka.answers());
        trouble(undefined);
      } catch (error) {
        if (!stopping.aborted) trouble(error);
      }
    }
  }

  #observerOf(topic: string): CarryOutObserver {
    const trouble = this.#troubleOf(topic);
    return { delayed: trouble, rejected: (...told) => this.#options.observer.rejected(...told) };
  }

  /** Said once for each topic and for the brokers, and once when it is over. */
  #troubleOf(what: string): (error: unknown) => void {
    return (error) => {
      const before = this.trouble;
      if (error === undefined) this.#troubles.delete(what);
      else this.#troubles.set(what, error instanceof Error ? error.message : "unknown");
      const { trouble } = this;
      if ((trouble === undefined) !== (before === undefined)) this.#options.observer.changed(trouble);
    };
  }
}
