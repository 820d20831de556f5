import { Bus } from "../bus/bus.ts";
import { openKafka } from "../bus/kafka-client.ts";
import { topicsOf } from "../bus/topics.ts";
import type { Service } from "../api/service/service.ts";
import type { Host } from "../host/host.ts";
import { type BusAddress, shownBus } from "../settings/bus-address.ts";
import type { Settings } from "../settings/declarations.ts";
import type { Log } from "./log.ts";

export interface BusParts {
  readonly address: BusAddress;
  readonly settings: Pick<Settings, "busQueues" | "busWindow" | "busPartitions">;
  readonly service: Service;
  readonly host: Host;
  readonly log: Log;
}

/** The bus of a server, once it was found to be there. */
export async function startBus({ address, settings, service, host, log }: BusParts): Promise<Bus> {
  const kafka = await openKafka({ address, client: `millrace-${host.id()}`, partitions: settings.busPartitions });
  const topics = topicsOf(address);
  const bus = new Bus({
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
