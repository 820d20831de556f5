import { describe, expect, test } from "vitest";
import { createManualHost, type ManualHost } from "../../test/drivers/manual-host.ts";
import { MemoryKafka } from "../../test/support/memory-kafka.ts";
import type { Gateway, ShownTask } from "../api/service/gateway.ts";
import type { TaskResult } from "../api/service/task-results.ts";
import type { Counts } from "../store/contract.ts";
import { Dispatcher } from "./dispatcher.ts";
import { KafkaError } from "./kafka.ts";
import { Room } from "./room.ts";
import { topicsOf } from "./topics.ts";

const TOPIC = "t.task.dispatch.q";

/** A queue, and what a dispatcher made of its tasks. */
class World {
  readonly kafka = new MemoryKafka();
  readonly host: ManualHost = createManualHost();
  readonly stopping = new AbortController();
  readonly waiting: string[] = [];
  readonly kept: string[] = [];
  readonly posted: TaskResult[] = [];
  leases = 0;
  looks = 0;
  keep: () => void = () => {};
  readonly room: Room = new Room({
    host: this.host,
    window: 1_000,
    queries: {
      counts: async () => {
        this.looks++;
        return { leasedOf: {} } as unknown as Counts;
      },
    },
  });

  dispatch(queue = "q"): Promise<void> {
    const { kafka, host, room } = this;
    const gateway: Pick<Gateway, "heartbeat" | "lease" | "keep" | "post"> = {
      heartbeat: async () => ({ cancelled: [] }),
      lease: async (_caller, { max }) => {
        this.leases++;
        const tasks = this.waiting.splice(0, max).map((token) => ({ token, task_id: token }) as ShownTask);
        if (tasks.length === 0) await host.sleep(1_000, this.stopping.signal);
        return { tasks, lease_seconds: 30, heartbeat_seconds: 5 };
      },
      keep: async (tokens) => {
        this.keep();
        this.kept.push(...tokens);
      },
      post: async (_caller, results) => {
        this.posted.push(...results);
        for (const result of results) if ("handedBack" in result) this.waiting.push(result.token);
        return results.map(() => true);
      },
    };
    const { signal: stopping } = this.stopping;
    const trouble = (): void => {};
    return new Dispatcher({
      kafka,
      topics: topicsOf({ prefix: "t" }),
      gateway,
      room,
      host,
      queue,
      stopping,
      trouble,
    }).run();
  }

  async pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 100) await this.host.advance(100);
  }

  async stop(running: Promise<unknown>): Promise<void> {
    this.stopping.abort();
    await this.host.advance(0);
    await running;
  }
}

describe("a dispatcher", () => {
  test("sends tasks and keeps them, once the store has said so", async () => {
    const world = new World();
    world.waiting.push("a", "b");
    let failures = 3;
    world.keep = () => {
      if (failures-- > 0) throw new Error("the store is away");
    };
    const running = world.dispatch();
    await world.pass(10_000);
    expect(world.kafka.sentTo(TOPIC)).toHaveLength(2);
    expect(world.kept).toEqual(["a", "b"]);
    await world.stop(running);
  });

  test("takes no tasks while no broker answers, beyond those of its first try", async () => {
    const world = new World();
    world.waiting.push("a");
    let isAway = true;
    world.kafka.fault = () => {
      if (isAway) throw new KafkaError("nobody answers");
    };
    const running = world.dispatch();
    await world.pass(600_000);
    expect(world.posted).toEqual([{ token: "a", handedBack: true }]);
    isAway = false;
    await world.pass(31_000);
    expect(world.kept).toEqual(["a"]);
    await world.stop(running);
  });

  test("has no more tasks out than its window holds, also before it counts again", async () => {
    const world = new World();
    world.waiting.push(...Array.from({ length: 1_500 }, (_, n) => `t${n}`));
    const running = world.dispatch();
    await world.pass(100);
    expect(world.kept).toHaveLength(1_000);
    await world.stop(running);
  });

  test("hands back what no broker acknowledges, before its lease is over", async () => {
    const world = new World();
    world.waiting.push("a");
    world.kafka.fault = (call) => {
      if (call === "send" && world.posted.length === 0) return new Promise(() => {});
    };
    const running = world.dispatch();
    await world.pass(25_000);
    expect(world.posted).toEqual([{ token: "a", handedBack: true }]);
    expect(world.kept).toEqual(["a"]);
    await world.stop(running);
  });

  test("fails only the task that is too large", async () => {
    const world = new World();
    world.kafka.maxBytes = 100;
    world.waiting.push("a", "x".repeat(200), "c");
    const running = world.dispatch();
    await world.pass(1_000);
    expect(world.kept).toEqual(["a", "c"]);
    expect(world.posted).toMatchObject([{ error: { code: "RESOLVED_INPUT_TOO_LARGE", retryable: false } }]);
    await world.stop(running);
  });

  test("shares its looks into the store with those of all other queues", async () => {
    const world = new World();
    const running = Promise.all(Array.from({ length: 50 }, (_, n) => world.dispatch(`q${n}`)));
    await world.pass(10_000);
    expect(world.leases).toBeGreaterThan(400);
    expect(world.looks).toBeLessThanOrEqual(11);
    await world.stop(running);
  });
});

describe("the room of a queue", () => {
  test("is what its window leaves, and what was taken since it was counted is not there", async () => {
    const host = createManualHost();
    let leased = 8;
    const counts = async (): Promise<Counts> => ({ leasedOf: { q: leased } }) as unknown as Counts;
    const room = new Room({ host, window: 10, queries: { counts } });
    expect(await room.of("q")).toBe(2);
    room.take("q", 2);
    expect(await room.of("q")).toBe(0);
    leased = 9;
    await host.advance(200);
    expect(await room.of("q")).toBe(1);
    expect(await room.of("other")).toBe(10);
  });
});
