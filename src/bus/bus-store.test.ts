import { expect, test } from "vitest";
import { createManualHost } from "../../test/drivers/manual-host.ts";
import { MemoryKafka } from "../../test/support/memory-kafka.ts";
import type { LeasedTask } from "../store/contract.ts";
import { BusStore } from "./bus-store.ts";
import { KafkaError } from "./kafka.ts";
import { topicsOf } from "./topics.ts";

const topics = topicsOf({ prefix: "t" });
const TASK = {
  task_id: "e:1:a:1:1",
  token: "sealed",
  execution_id: "e",
  node_id: "a",
  handler: "h",
  attempt: 1,
  generation: 1,
  config: {},
  idempotency_key: "k",
  timeout_seconds: 300,
};

class World {
  readonly kafka = new MemoryKafka();
  readonly host = createManualHost();
  readonly bus = new BusStore({ kafka: this.kafka, topics, prefix: "t", host: this.host, worker: "w" });

  readonly lease = (...queues: string[]): Promise<readonly LeasedTask[]> =>
    this.bus.store.tasks.lease({ worker: "w", queues, max: 100, leaseMs: 30_000, waitMs: 0 });
}

test("a task is told of before it is committed, and not begun if it could not be", async () => {
  const { kafka, lease } = new World();
  kafka.put(topics.dispatch("q"), TASK);
  kafka.fault = (call) => {
    if (call !== "commit") return;
    expect(kafka.sentTo(topics.complete)).toMatchObject([{ worker_id: "w", tokens: ["sealed"] }]);
    throw new KafkaError("the group changes");
  };
  await expect(lease("q")).rejects.toThrow("the group changes");
  // It is read anew, from what was committed.
  expect(kafka.open).toBe(0);
});

test("what is no task is put aside, and the tasks behind it are taken", async () => {
  const { kafka, lease } = new World();
  const { config: _, ...bare } = TASK;
  const rubbish = [
    "",
    "null",
    "5",
    "[]",
    "{",
    { token: "x", handler: "h" },
    bare,
    { ...TASK, timeout_seconds: "300" },
    { ...TASK, timeout_seconds: null },
    { ...TASK, attempt: -1 },
    { ...TASK, item: {} },
    { ...TASK, secrets: [1] },
    { ...TASK, execution_id: 7 },
  ];
  kafka.put(topics.dispatch("q"), ...rubbish, TASK);
  expect((await lease("q")).map(({ token }) => token)).toEqual(["sealed"]);
  expect(kafka.sentTo(topics.rejected)).toHaveLength(rubbish.length);
  expect(kafka.committed).toHaveLength(rubbish.length + 1);
});

test("a queue that cannot be read leaves no reader of another one behind that nobody asks", async () => {
  const { kafka, lease } = new World();
  kafka.fault = (call, topic) => {
    if (call === "subscribe" && topic === topics.dispatch("closed")) throw new KafkaError("not allowed");
  };
  for (let i = 0; i < 5; i++) await expect(lease("open", "closed")).rejects.toThrow("not allowed");
  expect(kafka.open).toBe(1);
});

test("a worker stops though its reader never opens, or never commits", async () => {
  for (const stuck of ["subscribe", "commit"]) {
    const { kafka, host, bus, lease } = new World();
    kafka.put(topics.dispatch("q"), TASK);
    kafka.fault = (call) => (call === stuck ? new Promise<void>(() => {}) : undefined);
    const leasing = lease("q").then(
      () => "taken",
      () => "failed",
    );
    await host.advance(0);
    const stopping = bus.stopLeasing();
    await host.advance(5_000);
    await stopping;
    expect(await leasing).toBe("failed");
  }
});

test("a worker that hears nothing of cancelled tasks still says that it lives", async () => {
  const { kafka, host, bus } = new World();
  kafka.fault = (call) => (call === "follow" ? new Promise<void>(() => {}) : undefined);
  for (let i = 0; i < 3; i++) {
    const beating = bus.store.tasks.heartbeat([{ ref: "sealed", token: "sealed" }], 30_000);
    await host.advance(500);
    expect(await beating).toEqual({ lost: [], cancelled: [] });
  }
  expect(kafka.sentTo(topics.complete)).toHaveLength(3);
});

test("rubbish about cancelled tasks is passed over", async () => {
  const { kafka, host, bus } = new World();
  kafka.put(topics.cancel, "", "null", "{}", { tokens: 5 }, { tokens: [{}] }, { tokens: ["other", "sealed"] });
  const beating = bus.store.tasks.heartbeat([{ ref: "sealed", token: "sealed" }], 30_000);
  await host.advance(500);
  expect((await beating).cancelled).toEqual(["sealed"]);
});
