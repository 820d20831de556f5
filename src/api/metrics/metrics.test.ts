import { expect, test } from "vitest";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { nodeHost } from "../../host/node-host.ts";
import type { Counts, Store } from "../../store/contract.ts";
import { Metrics } from "./metrics.ts";

async function shown(counts: Partial<Counts>): Promise<readonly string[]> {
  const store: Store = openMemory({ host: nodeHost });
  const known = await store.queries.counts();
  store.queries.counts = async () => ({ ...known, open: 3, deadLetters: 2, ...counts });
  const metrics = new Metrics(store);
  metrics.watchAdmission(async () => ({ by: "store" }));
  const text = await metrics.text();
  await store.close();
  return text.split("\n").filter((line) => /^millrace_(executions_open|dead_letters|admission_closed)\b/.test(line));
}

test("what the store says is in the first answer already", async () => {
  expect(await shown({})).toEqual([
    "millrace_dead_letters 2",
    "millrace_executions_open 3",
    'millrace_admission_closed{by="queue_age"} 0',
    'millrace_admission_closed{by="store"} 1',
    'millrace_admission_closed{by="memory"} 0',
  ]);
});

test("of executions that nobody counts no number is told", async () => {
  const lines = await shown({ open: undefined as never });
  expect(lines.filter((line) => line.includes("executions_open"))).toEqual([]);
});
