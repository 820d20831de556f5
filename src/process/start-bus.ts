import { Bus } from "../bus/bus.ts";
import { openKafka } from "../bus/kafka-client.ts";
import { topicsOf } from "../bus/topics.ts";
import type { Metrics } from "../api/metrics/metrics.ts";
import type { Service } from "../api/service/service.ts";
import type { Host } from "../host/host.ts";
import { type BusAddress, shownBus } from "../settings/bus-address.ts";
import type { Settings } from "../settings/declarations.ts";
import type { Log } from "./log.ts";
import { measuredKafka } from "./measured-bus.ts";

export interface BusParts {
  readonly address: BusAddress;
  readonly settings: Pick<Settings, "busQueues" | "busWindow" | "busPartitions">;
  readonly service: Service;
  readonly host: Host;
  readonly log: Log;
  readonly metrics: Metrics | undefined;
}

/** The bus of a server, once it was found to be there. */
export async function startBus(parts: BusParts): Promise<Bus> {
  const { address, settings, service, host, log, metrics } = parts;
  const opened = await openKafka({ address, client: `millrace-${host.id()}`, partitions: settings.busPartitions });
  const count = metrics?.watchBus(() => bus.trouble === undefined);
  const kafka = count === undefined ? opened : measuredKafka(opened, count);
  const topics = topicsOf(address);
  const bus: Bus = new Bus({
    kafka,
    topics,
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
  } catch (error) {
    await kafka.close().catch(() => undefined);
    throw error;
  }
  log.info({ bus: shownBus(address), queues: settings.busQueues }, "joined the bus");
  return bus;
}
