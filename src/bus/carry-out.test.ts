import { describe, expect, test } from "vitest";
import { createManualHost } from "../../test/drivers/manual-host.ts";
import { MemoryKafka } from "../../test/support/memory-kafka.ts";
import type { Service } from "../api/service/service.ts";
import { MillraceError } from "../errors/millrace-error.ts";
import type { CarryOutParts } from "./carry-out.ts";
import { Reports, type ReportsParts } from "./reports.ts";
import { serveTopic } from "./serve-topic.ts";
import { Starts } from "./starts.ts";
import { topicsOf } from "./topics.ts";

const topics = topicsOf({ prefix: "t" });

class World {
  readonly kafka = new MemoryKafka();
  readonly host = createManualHost();
  readonly stopping = new AbortController();
  readonly delays: unknown[] = [];
  readonly parts: CarryOutParts = {
    kafka: this.kafka,
    topics,
    host: this.host,
    stopping: this.stopping.signal,
    observer: { rejected: () => {}, delayed: (error) => this.delays.push(error) },
  };

  /** Whether it has come to its end after so many seconds. */
  async isOver(work: Promise<unknown>, seconds: number): Promise<boolean> {
    let isOver = false;
    const ended = (): void => void (isOver = true);
    work.then(ended, ended);
    for (let i = 0; i < seconds && !isOver; i++) await this.host.advance(1_000);
    return isOver;
  }

  rejected(): readonly unknown[] {
    return this.kafka.sentTo(topics.rejected);
  }
}

const away = (): never => {
  throw new MillraceError("STORE_UNAVAILABLE", {});
};

describe("starts", () => {
  function starts(world: World, start: (workflow: string) => Promise<unknown>): Starts {
    const service = {
      pressure: { check: async () => {} },
      submissions: { start: (_: unknown, name: string) => start(name) },
    };
    return new Starts({ ...world.parts, service: service as unknown as Service });
  }

  test("wait for as long as the store is away", async () => {
    const world = new World();
    let isAway = true;
    const work = starts(world, async () => isAway && away()).handle(world.kafka.put(topics.start, { workflow: "a" }));
    expect(await world.isOver(work, 1_000)).toBe(false);
    isAway = false;
    expect(await world.isOver(work, 2)).toBe(true);
    expect(world.rejected()).toEqual([]);
  });

  test("that fail again and again for no known reason are put aside, and keep nobody back", async () => {
    const world = new World();
    const done: string[] = [];
    const start = async (workflow: string): Promise<void> => {
      if (workflow === "odd") throw new TypeError("a bug of ours");
      done.push(workflow);
    };
    const messages = world.kafka.put(topics.start, { workflow: "odd" }, { workflow: "a" });
    expect(await world.isOver(starts(world, start).handle(messages), 20)).toBe(true);
    expect(done).toEqual(["a"]);
    expect(world.rejected()).toMatchObject([
      { code: "INTERNAL", message: "a bug of ours", value: '{"workflow":"odd"}' },
    ]);
  });

  test("are put aside without their value if it is too large for that, and not at all if nothing fits", async () => {
    for (const [maxBytes, told] of [
      [1_000, [{ code: "INVALID_JSON", topic: topics.start }]],
      [10, []],
    ] as const) {
      const world = new World();
      world.kafka.maxBytes = maxBytes;
      const messages = world.kafka.put(topics.start, "\u{0}".repeat(10_000));
      expect(await world.isOver(starts(world, async () => {}).handle(messages), 5)).toBe(true);
      expect(world.rejected()).toMatchObject(told);
    }
  });

  test("are put aside with no more of their key than a client can hash in time", async () => {
    const world = new World();
    const [message] = world.kafka.put(topics.start, "rubbish");
    await starts(world, async () => {}).handle([{ ...message!, key: "k".repeat(5_000_000) }]);
    expect(world.kafka.sent[0]!.key).toHaveLength(1_024);
    expect(world.rejected()).toMatchObject([{ key: "k".repeat(1_024) }]);
  });

  test("whose rejection cannot be written yet are rejected later, once", async () => {
    const world = new World();
    let failures = 3;
    world.kafka.fault = (call) => {
      if (call === "send" && failures-- > 0) throw new Error("not now");
    };
    const work = starts(world, async () => {}).handle(world.kafka.put(topics.start, "rubbish"));
    expect(await world.isOver(work, 10)).toBe(true);
    expect(world.rejected()).toHaveLength(1);
  });
});

describe("reports", () => {
  type TestGateway = ReportsParts["gateway"];
  const gateway: TestGateway = {
    heartbeat: async () => ({ cancelled: [] }),
    post: async (_caller, results) => results.map(({ token }) => token !== "foreign"),
  };

  test("are put aside if their token is none of ours, or they are no reports", async () => {
    const world = new World();
    const messages = world.kafka.put(
      topics.complete,
      { token: "foreign", output: 1 },
      "",
      { token: "a", output: 1 },
      "5",
    );
    expect(await world.isOver(new Reports({ ...world.parts, gateway }).handle(messages), 5)).toBe(true);
    expect(world.rejected()).toHaveLength(3);
  });

  test("that cannot be posted keep nobody else back", async () => {
    const world = new World();
    const posted: string[] = [];
    const post: TestGateway["post"] = async (_caller, results) => {
      if (results.some(({ token }) => token === "odd")) throw new TypeError("a bug of ours");
      posted.push(...results.map(({ token }) => token));
      return results.map(() => true);
    };
    const messages = world.kafka.put(topics.complete, { token: "odd", output: 1 }, { token: "a", output: 1 });
    const reports = new Reports({ ...world.parts, gateway: { ...gateway, post } });
    expect(await world.isOver(reports.handle(messages), 20)).toBe(true);
    expect(posted).toEqual(["a"]);
    expect(world.rejected()).toMatchObject([{ code: "INTERNAL" }]);
  });

  test("of a worker whose word cannot be heeded keep back neither the others nor results; while the store is away all wait", async () => {
    const world = new World();
    const beaten: string[] = [];
    let isAway = true;
    const heartbeat: TestGateway["heartbeat"] = async (_caller, worker) => {
      if (isAway) away();
      if (worker === "odd") throw new TypeError("a bug of ours");
      beaten.push(worker);
      return { cancelled: [] };
    };
    const words = ["odd", "good"].map((worker_id) => ({ worker_id, tokens: ["t"] }));
    const reports = new Reports({ ...world.parts, gateway: { ...gateway, heartbeat } });
    const work = reports.handle(world.kafka.put(topics.complete, ...words));
    expect(await world.isOver(work, 100)).toBe(false);
    isAway = false;
    expect(await world.isOver(work, 5)).toBe(true);
    expect(beaten).toEqual(["good"]);
  });
});

test("a topic that somebody has removed is made again before it is read again", async () => {
  const world = new World();
  let failures = 1;
  world.kafka.fault = (call) => {
    if (call === "subscribe" && failures-- > 0) throw new Error("unknown topic");
  };
  const { kafka, host } = world;
  const serving = serveTopic({
    kafka,
    host,
    topic: "gone",
    group: "g",
    handle: async () => world.stopping.abort(),
    trouble: () => {},
    stopping: world.stopping.signal,
  });
  kafka.put("gone", "1");
  expect(await world.isOver(serving, 10)).toBe(true);
  expect(kafka.made).toEqual(["gone", "gone"]);
  expect(kafka.committed).toHaveLength(1);
});
