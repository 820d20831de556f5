import { expect, test } from "vitest";
import type { Host } from "../../host/host.ts";
import { nodeHost } from "../../host/node-host.ts";
import { Waiters } from "./waiters.ts";

interface Sleeper {
  readonly atMs: number;
  readonly end: () => void;
}

/** A time that is moved by hand. */
class Time {
  readonly host: Host;
  readonly sleepers = new Set<Sleeper>();
  sleeps = 0;
  #nowMs = 0;

  constructor() {
    this.host = { ...nodeHost, monotonicMs: () => this.#nowMs, sleep: (ms, signal) => this.#sleep(ms, signal) };
  }

  async pass(ms: number): Promise<void> {
    this.#nowMs += ms;
    for (const sleeper of this.sleepers) if (sleeper.atMs <= this.#nowMs) sleeper.end();
    await nodeHost.sleep(1);
  }

  #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.sleeps++;
    return new Promise((resolve) => {
      const end = (): void => {
        this.sleepers.delete(sleeper);
        resolve();
      };
      const sleeper = { atMs: this.#nowMs + ms, end };
      this.sleepers.add(sleeper);
      signal?.addEventListener("abort", end, { once: true });
    });
  }
}

function setup(): { time: Time; waiters: Waiters; ended: string[]; wait: (name: string, ms: number) => void } {
  const time = new Time();
  const waiters = new Waiters(time.host);
  const ended: string[] = [];
  const wait = (name: string, ms: number): void => {
    void waiters.until([name], ms, () => undefined).then(() => ended.push(name));
  };
  return { time, waiters, ended, wait };
}

test("each wait ends when its own time is up, whoever came first", async () => {
  const { time, ended, wait } = setup();
  wait("long", 1000);
  wait("short", 100);
  wait("middle", 500);
  await time.pass(99);
  expect(ended).toEqual([]);
  await time.pass(1);
  expect(ended).toEqual(["short"]);
  await time.pass(400);
  expect(ended).toEqual(["short", "middle"]);
  await time.pass(500);
  expect(ended).toEqual(["short", "middle", "long"]);
});

test("one who is woken in vain waits on, no longer than it wanted to", async () => {
  const { time, waiters, ended, wait } = setup();
  wait("a", 100);
  await time.pass(60);
  waiters.wakeAll("a");
  await time.pass(39);
  expect(ended).toEqual([]);
  await time.pass(1);
  expect(ended).toEqual(["a"]);
});

test("waits that are over before their time share a timer", async () => {
  const { time, waiters } = setup();
  let there = 0;
  for (let i = 0; i < 100; i++) {
    const found = waiters.until(["a"], 1000, () => (there > i ? there : undefined));
    await time.pass(1);
    there++;
    waiters.wakeAll("a");
    expect(await found).toBe(i + 1);
  }
  expect(time.sleeps).toBe(1);
});

test("very many waits are looked through a few times, not once for each", async () => {
  const { time, ended, wait } = setup();
  const many = 20_000;
  for (let i = 0; i < many; i++) wait(`${i}`, 10 + (i % 100));
  for (let ms = 0; ms < 150; ms++) await time.pass(1);
  expect(ended).toHaveLength(many);
  expect(time.sleeps).toBeLessThan(20);
});

test("who waits for nothing waits for its time, and nobody is left over when all have gone", async () => {
  const { time, waiters } = setup();
  const wait = waiters.until([], 100, () => undefined);
  await time.pass(100);
  expect(await wait).toBeUndefined();
  expect(time.sleepers.size).toBe(0);
});

test("a time that is no number is over at once, and the others go on", async () => {
  const { time, ended, wait } = setup();
  wait("a", 100);
  wait("b", NaN);
  wait("c", 300);
  await time.pass(100);
  await time.pass(200);
  expect(ended).toEqual(["b", "a", "c"]);
});

test("a sleep that ends a little early is the end all the same", async () => {
  const hasty: Host = { ...nodeHost, monotonicMs: () => 0, sleep: async () => {} };
  expect(await new Waiters(hasty).until(["a"], 100, () => undefined)).toBeUndefined();
});

test("when the store is closed all waits end, and no timer keeps the process alive", async () => {
  const { time, waiters, ended, wait } = setup();
  wait("a", 1000);
  wait("b", 2000);
  await time.pass(1);
  waiters.close();
  await time.pass(0);
  expect(ended).toEqual(["a", "b"]);
  expect(time.sleepers.size).toBe(0);
});
