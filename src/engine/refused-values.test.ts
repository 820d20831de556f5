import { afterEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { entityKey, partitionOf } from "../core/entity.ts";
import { type MemoryStore, openMemory } from "../drivers/memory/memory-store.ts";
import type { Host } from "../host/host.ts";
import { nodeHost } from "../host/node-host.ts";
import type { CommitBatch, CommitOutcome, Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";
import { TestWorld, withJournal } from "./test-engine.ts";

let world: TestWorld;
afterEach(() => world.close());

/** What the store says to a commit instead of taking it. */
type Refusal = Error | CommitOutcome | undefined;
type Refuse = (batches: readonly CommitBatch[]) => Refusal;

const refusing =
  (refuse: Refuse, commitMs: number) =>
  (memory: MemoryStore): Store =>
    withJournal(memory, {
      commit: async (batches) => {
        if (commitMs > 0) await nodeHost.sleep(commitMs);
        const refusal = refuse(batches);
        if (refusal instanceof Error) throw refusal;
        return refusal === undefined ? memory.journal.commit(batches) : batches.map(() => refusal);
      },
    });

/** The name of a queue that the store cannot write down. */
const BAD = "bad queue";
const isBad = ({ tasks }: CommitBatch): boolean => tasks.some(({ queue }) => queue === BAD);
const mismatch = new TypeError("datatype mismatch: \u0000");

const healthy = workflow([node("a"), node("b", ["a"])]);
const badStart = workflow([node("a", [], { handler: BAD })]);
const badResult = workflow([node("a"), node("b", ["a"], { handler: BAD })]);
const badTimer = workflow([
  node("a", [], { handler: "wait", config: { seconds: 0.05 } }),
  node("b", ["a"], { handler: BAD }),
]);

/** Who waits a while after a failure waits a tenth of it. */
const hasty: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(ms / 10, signal) };

let quarantined: [string, unknown][];
let steppedDown: Set<number>;

function run(refuse: Refuse, { partitions = 1, commitMs = 0 } = {}): void {
  quarantined = [];
  steppedDown = new Set();
  world = new TestWorld({
    host: hasty,
    memory: openMemory({ host: nodeHost, partitions }),
    wrap: refusing(refuse, commitMs),
  });
  const observer = {
    quarantined: (key: string, error: unknown) => quarantined.push([key, error]),
    steppedDown: (partition: number) => steppedDown.add(partition),
  };
  world.engine({}, undefined, observer);
  world.worker({ step: () => "done", [BAD]: () => "done" });
}

const isQuarantined = (events: readonly { kind: string }[]): boolean =>
  events.some(({ kind }) => kind === "quarantined");

describe("an execution that decides what the store rejects for ever", () => {
  test("with its start is refused, and the others of its partition go on", async () => {
    run((batches) => (batches.some(isBad) ? mismatch : undefined));
    const [bad] = await Promise.all([world.submit(badStart, null, "bad"), world.start(healthy, null, "good")]);
    expect(bad).toEqual({ refused: "QUARANTINED" });
    expect(await world.ended("good")).toMatchObject({ status: "COMPLETED" });
    const message = "The store rejects its commits, and no others: TypeError: datatype mismatch: ?";
    expect(quarantined).toMatchObject([["execution/bad", { message }]]);
  });

  test.each([
    ["with a result", badResult],
    ["when its time has come", badTimer],
  ])("%s is left alone, the others go on, and a release takes it up where it was", async (_, flow) => {
    let isTaken = false;
    run((batches) => (batches.some(isBad) && !isTaken ? mismatch : undefined));
    await Promise.all([world.start(flow, null, "bad"), world.start(healthy, null, "good")]);
    expect(await world.ended("good")).toMatchObject({ status: "COMPLETED" });
    await world.until("bad", isQuarantined);
    expect(quarantined.map(([key]) => key)).toEqual(["execution/bad"]);
    expect(await world.ended(await world.start(healthy))).toMatchObject({ status: "COMPLETED" });
    isTaken = true;
    expect(await world.send("bad", { kind: "release", request: "r" })).toMatchObject({ ok: { released: true } });
    expect(await world.ended("bad")).toMatchObject({ status: "COMPLETED" });
    const kinds = await world.kinds("bad");
    expect(kinds.filter((kind) => kind === "taskCompleted")).toHaveLength(flow === badResult ? 2 : 1);
  });

  test("is found though there is always another message", async () => {
    run((batches) => (batches.some(isBad) ? mismatch : undefined), { commitMs: 5 });
    await world.start(badTimer, null, "bad");
    let isFound = false;
    const pour = async (): Promise<void> => {
      for (let i = 0; !isFound; i++) {
        for (let k = 0; k < 10; k++) await world.post(`nobody-${i}-${k}`, { kind: "cancel", request: "r" });
        await nodeHost.sleep(10);
      }
    };
    const poured = pour();
    await world.until("bad", isQuarantined);
    isFound = true;
    await poured;
  });

  test("holds up no other partition, also where one call commits them all", async () => {
    const partitions = 4;
    run((batches) => (batches.some(isBad) ? mismatch : undefined), { partitions });
    const ids = Array.from({ length: 20 }, (_, i) => `good-${i}`);
    const [bad] = await Promise.all([
      world.submit(badStart, null, "bad"),
      ...ids.map((id) => world.start(healthy, null, id)),
    ]);
    expect(bad).toEqual({ refused: "QUARANTINED" });
    for (const id of ids) expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
    expect([...steppedDown]).toEqual([partitionOf(entityKey("execution", "bad"), partitions)]);
  });
});

describe("nobody is blamed", () => {
  const times = (count: number, refusal: Refusal, fits: (batch: CommitBatch) => boolean = isBad): Refuse => {
    let left = count;
    return (batches) => (batches.some(fits) && left-- > 0 ? refusal : undefined);
  };

  test.each([
    ["a store that is away", times(16, mismatch, () => true)],
    ["one that says that it is", times(16, new StoreError("STORE_UNAVAILABLE", "it takes too long"))],
    ["one that has no room", times(10, { kind: "refused", reason: "disk full" })],
    ["one that rejects something now and then", times(10, mismatch)],
  ])("for %s", async (_, refuse) => {
    run(refuse);
    await Promise.allSettled([world.submit(badStart, null, "bad"), world.submit(healthy, null, "good")]);
    for (const id of ["bad", "good"]) expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
    expect(quarantined).toEqual([]);
  });

  test("beyond a few, by a store that rejects whoever comes", async () => {
    let isBroken = true;
    let rejected = 0;
    run((batches) => {
      // As with a table of tasks that somebody has changed: all the rest is taken, quarantines too.
      if (!isBroken || !batches.some(({ tasks }) => tasks.length > 0)) return undefined;
      rejected++;
      return mismatch;
    });
    const ids = Array.from({ length: 8 }, (_, i) => `one-${i}`);
    const answers = Promise.allSettled(ids.map((id) => world.submit(healthy, null, id)));
    await expect.poll(() => quarantined.length).toBe(3);
    const then = rejected;
    await expect.poll(() => rejected).toBeGreaterThan(then + 30);
    expect(quarantined).toHaveLength(3);
    isBroken = false;
    await answers;
    const blamed = new Set(quarantined.map(([key]) => key));
    const others = ids.filter((id) => !blamed.has(entityKey("execution", id)));
    expect(others).toHaveLength(5);
    for (const id of others) expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
  });
});
