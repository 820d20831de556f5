import { afterEach, expect, test } from "vitest";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { createManualHost } from "../../../test/drivers/manual-host.ts";
import { liveWorkers } from "./handler-directory.ts";
import { KeptAnswers } from "./kept-answers.ts";

type Answer = { readonly count: number; readonly errors?: readonly { execution_id: string }[] };

const host = createManualHost();
const store = openMemory({ host });
/** Of two processes. */
const [kept, far] = [new KeptAnswers<Answer>(store, host), new KeptAnswers<Answer>(store, host)];
afterEach(() => host.advance(100_000_000));

const errors = (count: number) => Array.from({ length: count }, (_, i) => ({ execution_id: `e${i}`.padEnd(60, "x") }));

/** Lets time go by until all have been answered. */
async function all<Result>(...asked: readonly Promise<Result>[]): Promise<readonly Result[]> {
  let isOver = false;
  const results = Promise.all(asked).finally(() => (isOver = true));
  results.catch(() => undefined);
  while (!isOver) await host.advance(50);
  return results;
}

/** Work that says how often it was done, and takes its time. */
function work(answer: Answer = { count: 1 }, ms = 0) {
  const did = {
    times: 0,
    run: async (): Promise<Answer> => {
      did.times++;
      if (ms > 0) await host.sleep(ms);
      return answer;
    },
  };
  return did;
}

test.each([
  ["a small one", { count: 2 }],
  ["one with a few errors", { count: 0, errors: errors(2) }],
  ["one with many", { count: 0, errors: errors(500) }],
])("%s is there again, for a day", async (_, answer) => {
  const { run } = work(answer);
  const again = work();
  expect(await all(kept.once("k", "b", run))).toEqual([answer]);
  await host.advance(86_300_000);
  expect(await all(far.once("k", "b", again.run))).toEqual([answer]);
  expect(again.times).toBe(0);
  await host.advance(200_000);
  expect(await all(far.once("k", "b", again.run))).toEqual([{ count: 1 }]);
});

test("two that ask at once are answered the same, and it is done once", async () => {
  for (const other of [kept, far]) {
    const did = work({ count: 3 }, 60_000);
    const asked = [kept.once("k", "b", did.run), other.once("k", "b", did.run)];
    expect(await all(...asked)).toEqual([{ count: 3 }, { count: 3 }]);
    expect(did.times).toBe(1);
    await host.advance(100_000_000);
  }
});

test("another body under the same id is refused, also while the first is at it", async () => {
  const { run } = work({ count: 3 }, 1_000);
  const first = kept.once("k", "b", run);
  await host.advance(200);
  await host.advance(200);
  await expect(all(far.once("k", "other", run))).rejects.toMatchObject({ code: "IDEMPOTENCY_KEY_REUSED" });
  await all(first);
  await expect(all(far.once("k", "other", run))).rejects.toMatchObject({ code: "IDEMPOTENCY_KEY_REUSED" });
});

test("what could not be done uses nothing up", async () => {
  const broken = (): Promise<Answer> => Promise.reject(new Error("no"));
  await expect(all(kept.once("k", "b", broken))).rejects.toThrow("no");
  await host.advance(1);
  expect(await all(far.once("k", "other", work().run))).toEqual([{ count: 1 }]);
});

test("whoever dies at it is waited for no longer than his claim is good for", async () => {
  const died = new KeptAnswers<Answer>(store, {
    ...host,
    sleep: (ms) => (ms < 1_000 ? host.sleep(ms) : new Promise(() => {})),
  });
  void died.once("k", "b", () => new Promise(() => {}));
  await host.advance(200);
  const { run } = work();
  const asked = far.once("k", "b", run);
  await host.advance(200);
  expect(await all(asked)).toEqual([{ count: 1 }]);
});

test("it is nobody's worker, and small, however much there was to say", async () => {
  await all(kept.once("k", "b", work({ count: 1, errors: errors(5_000) }).run));
  const registrations = await store.records.registered();
  expect(liveWorkers(registrations)).toEqual([]);
  expect(registrations[0]!.text.length).toBeLessThan(2_000);
});
