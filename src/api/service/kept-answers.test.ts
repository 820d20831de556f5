import { afterEach, expect, test } from "vitest";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { createManualHost } from "../../../test/drivers/manual-host.ts";
import { liveWorkers } from "./handler-directory.ts";
import { KeptAnswers } from "./kept-answers.ts";

const host = createManualHost();
const store = openMemory({ host });
const kept = new KeptAnswers<{ readonly count: number; readonly errors?: readonly { execution_id: string }[] }>(store);
afterEach(() => host.advance(100_000_000));

const errors = (count: number) => Array.from({ length: count }, (_, i) => ({ execution_id: `e${i}`.padEnd(60, "x") }));

test.each([
  ["a small one", { count: 2 }],
  ["one with a few errors", { count: 0, errors: errors(2) }],
  ["one with many", { count: 0, errors: errors(500) }],
])("%s is there again, for a day", async (_, answer) => {
  await kept.put("k", { body: "b", answer });
  expect(await kept.get("k")).toEqual({ body: "b", answer });
  expect(await kept.get("other")).toBeUndefined();
  await host.advance(86_300_000);
  expect(await kept.get("k")).toEqual({ body: "b", answer });
  await host.advance(200_000);
  expect(await kept.get("k")).toBeUndefined();
});

test("it is nobody's worker, and small, however much there was to say", async () => {
  await kept.put("k", { body: "b", answer: { count: 1, errors: errors(5_000) } });
  const registrations = await store.records.registered();
  expect(liveWorkers(registrations)).toEqual([]);
  expect(registrations[0]!.text.length).toBeLessThan(2_000);
});
