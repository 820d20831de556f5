import { Bus } from "../bus/bus.ts";
import { KafkaError } from "../bus/kafka.ts";
import { openKafka } from "../bus/kafka-client.ts";
import { topicsOf } from "../bus/topics.ts";
import type { Metrics } from "../api/metrics/metrics.ts";
import type { Service } from "../api/service/service.ts";
import type { Host } from "../host/host.ts";
import { type BusAddress, shownBus } from "../settings/bus-address.ts";
import type { Settings } from "../settings/declarations.ts";
import type { Log } from "./log.ts";
import { type CountMessages, measuredKafka } from "./measured-bus.ts";

export interface BusMembershipParts {
  readonly address: BusAddress;
  readonly settings: Pick<Settings, "busQueues" | "busWindow" | "busPartitions">;
  readonly service: Service;
  readonly host: Host;
  readonly log: Log;
  readonly metrics: Metrics | undefined;
}

const AGAIN_MS = 2_000;

/**
 * A server's place on the bus. One that is started while no broker answers serves all the same, as one does that loses them
 * later, and joins when it can: an outage of Kafka must not become one of the API.
 */
export class BusMembership {
  readonly #parts: BusMembershipParts;
  readonly #count: CountMessages | undefined;
  readonly #stopping = new AbortController();
  #joining: Promise<void> = Promise.resolve();
  #bus: Bus | undefined;
  /** Why it has not joined yet. */
  #away: string | undefined;

  constructor(parts: BusMembershipParts) {
    this.#parts = parts;
    this.#count = parts.metrics?.watchBus(() => this.trouble === undefined);
  }

  /** What is wrong with it; undefined if nothing is. */
  get trouble(): string | undefined {
    return this.#away ?? this.#bus?.trouble;
  }

  /** Resolves when it has joined, or tries again by itself. Rejects with what waiting does not mend. */
  async join(): Promise<void> {
    if (await this.#tryToJoin()) return;
    this.#parts.log.warn({ trouble: this.#away }, "the bus does not answer; joining it as soon as it does");
    this.#joining = this.#joinLater();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#joining;
    await this.#bus?.stop();
  }

  async #joinLater(): Promise<void> {
    const { host, log } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await host.sleep(AGAIN_MS, signal);
      try {
        if (signal.aborted || (await this.#tryToJoin())) return;
      } catch (error) {
        // The store may be away too. Nothing is asked of either that could not be asked again.
        this.#away = (error as Error).message;
        log.warn({ trouble: this.#away }, "the bus could not be joined; trying again");
      }
    }
  }

  async #tryToJoin(): Promise<boolean> {
    const { address, settings, log } = this.#parts;
    try {
      this.#bus = await this.#start();
      this.#away = undefined;
      log.info({ bus: shownBus(address), queues: settings.busQueues }, "joined the bus");
      return true;
    } catch (error) {
      if (!(error instanceof KafkaError) || error.fix !== undefined) throw error;
      this.#away = error.message;
      return false;
    }
  }

  async #start(): Promise<Bus> {
    const { address, settings, service, host, log } = this.#parts;
    const partitions = settings.busPartitions;
    const opened = await openKafka({ address, client: `millrace-${host.id()}`, partitions });
    const kafka = this.#count === undefined ? opened : measuredKafka(opened, this.#count);
    const bus = new Bus({
      kafka,
      topics: topicsOf(address),
      prefix: address.prefix,
      service,
      host,
      queues: [...new Set(settings.busQueues)],
      window: settings.busWindow,
      observer: {
        changed: (trouble) =>
          trouble === undefined
            ? log.info("the bus works again")
            : log.warn({ trouble }, "something of the bus has to wait; trying again until it can go on"),
        rejected: ({ topic, partition, offset }, code, reason) =>
          log.warn({ topic, partition, offset: String(offset), code, reason }, "rejected a message of the bus"),
      },
    });
    try {
      await bus.start();
      return bus;
    } catch (error) {
      await kafka.close().catch(() => undefined);
      throw error;
    }
  }
}
