import { expect, test } from "vitest";
import { createManualHost } from "../../test/drivers/manual-host.ts";
import { MemoryKafka } from "../../test/support/memory-kafka.ts";
import type { Service } from "../api/service/service.ts";
import { Bus } from "./bus.ts";
import { topicsOf } from "./topics.ts";

test("queues that go to Kafka are known to be served once a server has started", async () => {
  const host = createManualHost();
  const served: string[] = [];
  const gateway = {
    heartbeat: async (_caller: unknown, _worker: string, _tokens: unknown, serves: { readonly handlers: string[] }) => {
      served.push(...serves.handlers);
      return { cancelled: [] };
    },
    lease: async () => host.sleep(1_000),
  };
  const counts = { leasedOf: {} };
  const service = { gateway, store: { queries: { counts: async () => counts } } } as unknown as Service;
  const bus = new Bus({
    kafka: new MemoryKafka(),
    topics: topicsOf({ prefix: "t" }),
    prefix: "t",
    service,
    host,
    queues: ["a", "b"],
    window: 10,
    observer: { changed: () => {}, rejected: () => {} },
  });
  await bus.start();
  expect(served).toEqual(["a", "b"]);
  const stopping = bus.stop();
  await host.advance(5_000);
  await stopping;
});
