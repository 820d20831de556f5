import { expect, test } from "vitest";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Host } from "../../host/host.ts";
import type { DeadLetter, Store } from "../../store/contract.ts";
import { MAX_REPLAYS_PER_SECOND } from "../limits.ts";
import { LOCAL } from "./caller.ts";
import type { Decisions } from "./decisions.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { type EditCheck, Letters } from "./letters.ts";
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
  const queries = {
    deadLetters: () => Promise.resolve({ items, cursor: null }),
    header: () => Promise.resolve({ endedAtMs: 1 }),
  };
  const store = { queries } as unknown as Store;
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
  const reader = { partition: () => 0 } as unknown as ExecutionReader;
  const checked: EditCheck = () => Promise.resolve(undefined);
  const letters = new Letters({ store, host, decisions, reader, paging: {} as Paging, checked });

  expect(await letters.replayAll(LOCAL, {}, count, true)).toEqual({ count });
  expect(decidedAtMs).toEqual([]);
  expect(await letters.replayAll(LOCAL, {}, count, false)).toEqual({ count });
  for (const [i, atMs] of decidedAtMs.entries()) {
    const within = decidedAtMs.slice(0, i + 1).filter((other) => other > atMs - 1_000).length;
    expect(within).toBeLessThanOrEqual(MAX_REPLAYS_PER_SECOND + 1);
  }
  expect(decidedAtMs.at(-1)).toBeGreaterThanOrEqual(2_900);
});

test("the letters of an execution that cannot be read are shown as they were written", async () => {
  const letter = letterOf("unreadable");
  const queries = {
    deadLetter: () => Promise.resolve(letter),
    header: () => Promise.resolve({ endedAtMs: 2 }),
  };
  const told: { error: Error } = { error: new MillraceError("EXECUTION_UNREADABLE", { id: "unreadable" }) };
  const letters = new Letters({
    store: { queries } as unknown as Store,
    host: {} as Host,
    decisions: {} as Decisions,
    reader: { partition: () => 0, read: () => Promise.reject(told.error) } as unknown as ExecutionReader,
    paging: {} as Paging,
    checked: () => Promise.resolve(undefined),
  });

  expect(await letters.get(letter.id)).toMatchObject({ id: letter.id, status: "open" });
  told.error = new MillraceError("STORE_UNAVAILABLE", {});
  await expect(letters.get(letter.id)).rejects.toThrow(told.error);
});
