import { EventEmitter } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { Reading, REBALANCE_MS, type ReadingParts, type Stream } from "./reading.ts";

afterEach(() => vi.restoreAllMocks());

/** As much of the client's consumer as a reader needs, of a group that does not settle. */
class Unsettled extends EventEmitter {
  readonly memberId = null;
  readonly assignments = [];
  readonly lastHeartbeat = null;

  isActive(): boolean {
    return false;
  }

  async close(): Promise<void> {}
}

class NoStream extends EventEmitter {
  readonly readableLength = 0;

  destroy(): void {
    this.emit("close");
  }
}

test("a group that cannot settle because no broker answers is waited for, and one that does not settle is given up", async () => {
  let answer: true | undefined;
  let looks = 0;
  const parts: ReadingParts = {
    open: async () => new NoStream() as unknown as Stream,
    isThere: async () => {
      looks++;
      return answer;
    },
    closed: () => {},
  };
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const consumer = new Unsettled() as unknown as ConstructorParameters<typeof Reading>[0];
  const reading = new Reading(consumer, new NoStream() as unknown as Stream, parts);
  expect(reading.take(1)).toEqual([]);
  // As long as it likes: it looks every few seconds.
  await vi.waitUntil(() => looks > 0, { timeout: 20_000 });
  await Promise.resolve();
  nowMs += 10 * REBALANCE_MS;
  expect(reading.take(1)).toEqual([]);
  answer = true;
  nowMs += 3 * REBALANCE_MS;
  expect(() => reading.take(1)).toThrow("the group of readers is still changing");
  await reading.close();
});
