import { expect, test } from "vitest";
import type { Host } from "../../host/host.ts";
import type { DeadLetter, Store } from "../../store/contract.ts";
import { MAX_REPLAYS_PER_SECOND } from "../limits.ts";
import { LOCAL } from "./caller.ts";
import type { Decisions } from "./decisions.ts";
import { Letters } from "./letters.ts";
import type { Paging } from "./paging.ts";

const letterOf = (execution: string): DeadLetter => ({
  id: `${execution}:1:n`,
  class: "exhausted",
  queue: "q",
  entity: `execution/${execution}`,
  atMs: 1,
  text: "{}",
});

test("many are replayed no faster than they may be, however quickly each is decided; a dry run replays none", async () => {
  const count = 3 * MAX_REPLAYS_PER_SECOND;
  const items = Array.from({ length: count }, (_, i) => letterOf(String(i)));
  const store = { queries: { deadLetters: () => Promise.resolve({ items, cursor: null }) } } as unknown as Store;
  // Time goes by only while somebody sleeps.
  let nowMs = 0;
  const host = {
    monotonicMs: () => nowMs,
    sleep: (ms: number) => {
      nowMs += ms;
      return Promise.resolve();
    },
  } as unknown as Host;
  const decidedAtMs: number[] = [];
  const decisions = {
    command: () => {
      decidedAtMs.push(nowMs);
      return Promise.resolve({});
    },
  } as unknown as Decisions;
  const letters = new Letters(store, host, decisions, {} as Paging, () => Promise.resolve(undefined));

  expect(await letters.replayAll(LOCAL, {}, count, true)).toEqual({ count });
  expect(decidedAtMs).toEqual([]);
  expect(await letters.replayAll(LOCAL, {}, count, false)).toEqual({ count });
  for (const [i, atMs] of decidedAtMs.entries()) {
    const within = decidedAtMs.slice(0, i + 1).filter((other) => other > atMs - 1_000).length;
    expect(within).toBeLessThanOrEqual(MAX_REPLAYS_PER_SECOND + 1);
  }
  expect(decidedAtMs.at(-1)).toBeGreaterThanOrEqual(2_900);
});
