import { expect, test } from "vitest";
import { createManualHost } from "../../test/drivers/manual-host.ts";
import { MemoryKafka } from "../../test/support/memory-kafka.ts";
import { KafkaError } from "./kafka.ts";
import type { Service } from "../api/service/service.ts";
import { Bus } from "./bus.ts";
import { topicsOf } from "./topics.ts";

interface Given {
  readonly kafka?: MemoryKafka;
  readonly served?: string[];
  readonly changed?: (trouble: string | undefined) => void;
}

function busOf({ kafka = new MemoryKafka(), served = [], changed = () => {} }: Given) {
  const host = createManualHost();
  const gateway = {
    heartbeat: async (_caller: unknown, _worker: string, _tokens: unknown, serves: { readonly handlers: string[] }) => {
      served.push(...serves.handlers);
      return { cancelled: [] };
    },
    lease: async (_caller: unknown, _request: unknown, signal: AbortSignal) => {
      await host.sleep(1_000, signal);
      return { tasks: [] };
    },
  };
  const counts = { leasedOf: {} };
  const service = { gateway, store: { queries: { counts: async () => counts } } } as unknown as Service;
  const bus = new Bus({
    kafka,
    topics: topicsOf({ prefix: "t" }),
    prefix: "t",
    service,
    host,
    queues: ["a", "b"],
    window: 10,
    observer: { changed, rejected: () => {} },
  });
  return { bus, host };
}

test("queues that go to Kafka are known to be served once a server has started", async () => {
  const served: string[] = [];
  const { bus, host } = busOf({ served });
  await bus.start();
  expect(served).toEqual(["a", "b"]);
  const stopping = bus.stop();
  await host.advance(5_000);
  await stopping;
});

test("a server that has nothing to do tells soon that no broker answers, and that one does again, once each", async () => {
  const kafka = new MemoryKafka();
  // Readers say nothing of an outage: here they never come to read.
  const away = (asked: "answers" | undefined, answer?: () => void | Promise<void>): void => {
    kafka.fault = (call) => (call === "subscribe" ? new Promise(() => {}) : call === asked ? answer?.() : undefined);
  };
  away(undefined);
  const told: (string | undefined)[] = [];
  const { bus, host } = busOf({ kafka, changed: (trouble) => told.push(trouble) });
  await bus.start();
  await host.advance(4_000);
  expect(bus.trouble).toBeUndefined();
  away("answers", () => {
    throw new KafkaError("nobody is there");
  });
  await host.advance(4_000);
  expect(bus.trouble).toBe("brokers: nobody is there");
  away(undefined);
  await host.advance(4_000);
  expect(bus.trouble).toBeUndefined();
  expect(told).toEqual(["brokers: nobody is there", undefined]);
  // It waits for no answer when it ends.
  away("answers", () => new Promise(() => {}));
  await host.advance(2_000);
  const stopping = bus.stop();
  await host.advance(5_000);
  await stopping;
});

test("a server that stops does not wait for groups that are still changing", async () => {
  const kafka = new MemoryKafka();
  kafka.fault = (call) => (call === "subscribe" ? new Promise(() => {}) : undefined);
  const { bus } = busOf({ kafka });
  await bus.start();
  // The clock stands still: it has no time to lose.
  await bus.stop();
  expect(kafka.open).toBe(0);
});
