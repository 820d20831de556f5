import { describe, expect, test } from "vitest";
import { executionMachine } from "../core/execution/machine.ts";
import { type MemoryStore, openMemory } from "../drivers/memory/memory-store.ts";
import { SimProcess } from "../simulator/process.ts";
import { Random } from "../simulator/random.ts";
import { Timeline } from "../simulator/timeline.ts";
import type { Store } from "../store/contract.ts";
import { Engine } from "./engine.ts";

const PARTITIONS = 32;
/** The longest that a partition may be without an owner when it is handed over: a look, and a few slow calls. */
const HAND_OVER_MS = 400;

interface Running {
  readonly engine: Engine;
  readonly process: SimProcess;
}

/** Engines in a time of their own, on a store that takes its time. */
class Fleet {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly memory: MemoryStore;
  readonly running: Running[] = [];
  /** Who got which partition when, and how long it had had no owner. */
  readonly moves: { readonly atMs: number; readonly partition: number; readonly gapMs: number }[] = [];
  /** Why partitions were given up. */
  readonly steppedDown = new Set<string>();
  private readonly releasedAtMs = new Map<number, number>();
  private names = 0;
  /** Whether the store does not answer. */
  isAway = false;

  constructor(seed: number) {
    this.random = new Random(seed);
    const store = new SimProcess("store", this.timeline, this.random.fork());
    this.memory = openMemory({ host: store.host, partitions: PARTITIONS });
  }

  join(): Running {
    const process = new SimProcess(`p${++this.names}`, this.timeline, this.random.fork());
    const engine = new Engine({
      store: this.slow(process),
      host: process.host,
      machines: [executionMachine],
      observer: { steppedDown: (_partition, why) => this.steppedDown.add(why) },
    });
    engine.start();
    const running = { engine, process };
    this.running.push(running);
    return running;
  }

  async leave(running: Running): Promise<void> {
    this.running.splice(this.running.indexOf(running), 1);
    let isDone = false;
    void running.engine.stop().then(() => (isDone = true));
    await this.timeline.runUntil(this.timeline.now + 30_000, () => isDone);
    expect(isDone).toBe(true);
  }

  kill(running: Running): void {
    this.running.splice(this.running.indexOf(running), 1);
    running.process.kill();
  }

  async wait(ms: number): Promise<void> {
    await this.timeline.runUntil(this.timeline.now + ms);
  }

  /** How many partitions each engine that runs owns. */
  spread(): number[] {
    const owners = this.memory.data.partitions.map(({ owner }) => owner);
    return this.running.map(({ engine }) => owners.filter((owner) => owner === engine.name).length);
  }

  private slow(process: SimProcess): Store {
    const { memory, random } = this;
    const role = <Role extends object>(target: Role): Role =>
      new Proxy(target, {
        get: (of, name) => {
          const method = Reflect.get(of, name) as (...args: unknown[]) => Promise<unknown>;
          return async (...args: unknown[]) => {
            await process.host.sleep(random.integer(1, 15));
            if (this.isAway) throw new Error("away");
            const answer = await Reflect.apply(method, of, args);
            this.note(String(name), args, answer);
            await process.host.sleep(random.integer(1, 15));
            return answer;
          };
        },
      });
    const { capabilities, partitions, inbox, journal, tasks, records, queries } = memory;
    return {
      capabilities,
      partitions: role(partitions),
      inbox: role(inbox),
      journal: role(journal),
      tasks: role(tasks),
      records: role(records),
      queries: role(queries),
      close: () => memory.close(),
    };
  }

  private note(method: string, args: readonly unknown[], answer: unknown): void {
    const atMs = this.timeline.now;
    if (method === "release") this.releasedAtMs.set((args[0] as { partition: number }).partition, atMs);
    if (method !== "acquire" || (answer as { kind: string }).kind !== "acquired") return;
    const partition = args[0] as number;
    this.moves.push({ atMs, partition, gapMs: atMs - (this.releasedAtMs.get(partition) ?? atMs) });
  }
}

function even(engines: number): number[] {
  const share = Math.floor(PARTITIONS / engines);
  return Array.from({ length: engines }, (_, i) => (i < PARTITIONS % engines ? share + 1 : share));
}

function sorted(spread: readonly number[]): number[] {
  return spread.toSorted((a, b) => b - a);
}

describe.each([1, 2, 3, 5])("%d engines", (count) => {
  test.each([1, 2, 3])("share evenly, and then nothing moves (seed %d)", async (seed) => {
    const fleet = new Fleet(seed);
    for (let i = 0; i < count; i++) {
      fleet.join();
      await fleet.wait(fleet.random.integer(0, 3_000));
    }
    await fleet.wait(20_000);
    expect(sorted(fleet.spread())).toEqual(even(count));
    const moves = fleet.moves.length;
    await fleet.wait(60_000);
    expect(fleet.moves.length).toBe(moves);
    expect(sorted(fleet.spread())).toEqual(even(count));
  });

  test("give one that joins its share and no more, each partition after a short moment", async () => {
    const fleet = new Fleet(count);
    for (let i = 0; i < count; i++) fleet.join();
    await fleet.wait(30_000);
    const moves = fleet.moves.length;
    fleet.join();
    await fleet.wait(30_000);
    expect(sorted(fleet.spread())).toEqual(even(count + 1));
    const moved = fleet.moves.slice(moves);
    expect(moved.length).toBe(Math.floor(PARTITIONS / (count + 1)));
    expect(Math.max(...moved.map(({ gapMs }) => gapMs))).toBeLessThan(HAND_OVER_MS);
  });

  test("take over what one that stops hands to them, before its lease could run out", async () => {
    const fleet = new Fleet(count + 10);
    for (let i = 0; i < count; i++) fleet.join();
    const leaver = fleet.join();
    await fleet.wait(30_000);
    const had = fleet.spread().at(-1)!;
    const [moves, askedAtMs] = [fleet.moves.length, fleet.timeline.now];
    await fleet.leave(leaver);
    await fleet.wait(10_000);
    expect(sorted(fleet.spread())).toEqual(even(count));
    const moved = fleet.moves.slice(moves);
    expect(moved.length).toBe(had);
    expect(Math.max(...moved.map(({ gapMs }) => gapMs))).toBeLessThan(HAND_OVER_MS);
    expect(Math.max(...moved.map(({ atMs }) => atMs)) - askedAtMs).toBeLessThan(2_000);
  });

  test("take over what one that was killed had, when its lease is over", async () => {
    const fleet = new Fleet(count + 20);
    for (let i = 0; i < count; i++) fleet.join();
    const victim = fleet.join();
    await fleet.wait(30_000);
    const [moves, killedAtMs] = [fleet.moves.length, fleet.timeline.now];
    fleet.kill(victim);
    await fleet.wait(6_000);
    expect(sorted(fleet.spread())).toEqual(even(count));
    expect(Math.min(...fleet.moves.slice(moves).map(({ atMs }) => atMs)) - killedAtMs).toBeGreaterThan(2_000);
  });
});

test("an engine is current once it has looked, also while it stands by, and no longer than a lease without its store", async () => {
  const fleet = new Fleet(7);
  const { engine: first } = fleet.join();
  expect([first.isCurrent, first.partitionsHeld]).toEqual([false, 0]);
  await fleet.wait(20_000);
  expect([first.isCurrent, first.partitionsHeld]).toEqual([true, PARTITIONS]);
  // The last of 33 gets none.
  for (let i = 0; i < PARTITIONS; i++) fleet.join();
  await fleet.wait(60_000);
  const held = fleet.running.map(({ engine }) => engine.partitionsHeld);
  expect(sorted(held)).toEqual([...Array.from({ length: PARTITIONS }, () => 1), 0]);
  const all = (): Set<boolean> => new Set(fleet.running.map(({ engine }) => engine.isCurrent));
  expect(all()).toEqual(new Set([true]));
  fleet.isAway = true;
  await fleet.wait(5_000);
  expect(all()).toEqual(new Set([false]));
  fleet.isAway = false;
  await fleet.wait(5_000);
  expect(all()).toEqual(new Set([true]));
});

test("engines that come and go at random end up with even shares", async () => {
  const fleet = new Fleet(99);
  fleet.join();
  for (let i = 0; i < 40; i++) {
    const { random } = fleet;
    const one = random.pick(fleet.running);
    if (fleet.running.length < 2 || (random.chance(0.5) && fleet.running.length < 6)) fleet.join();
    else if (random.chance(0.5)) await fleet.leave(one);
    else fleet.kill(one);
    await fleet.wait(random.integer(0, 4_000));
  }
  await fleet.wait(20_000);
  expect(sorted(fleet.spread())).toEqual(even(fleet.running.length));
  const moves = fleet.moves.length;
  await fleet.wait(30_000);
  expect(fleet.moves.length).toBe(moves);
  expect([...fleet.steppedDown]).not.toContain("lost");
});
