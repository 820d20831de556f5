import { expect, test } from "vitest";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { nodeHost } from "../../host/node-host.ts";
import { acquire } from "../../store/conformance/owner.ts";
import { ENTITY, header, lease, OTHER, record, task } from "../../store/conformance/things.ts";
import type { Counts, Store } from "../../store/contract.ts";
import { measured } from "./measured-store.ts";
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

test("what is put back from an archive was counted when it happened", async () => {
  const store: Store = openMemory({ host: nodeHost });
  const metrics = new Metrics(store);
  const owner = await acquire(measured(store, metrics));
  const ended = { class: "endedBadly", status: "FAILED", endedAtMs: 2_000 } as const;
  const said = (entity: string) => ({
    records: [record(entity, 1, 3)],
    headers: [header(entity, ended)],
    deadLetters: [{ id: entity, class: "poison" as const, queue: "q", entity, atMs: 2_000, text: "{}" }],
  });
  const counted = async (): Promise<readonly string[]> => {
    const lines = (await metrics.text()).split("\n");
    return lines.filter((line) => /^millrace_(?:executions_(?:accepted|ended)|dead_letters)_total/.test(line));
  };
  await owner.commit({ ...said(OTHER), restored: [OTHER] });
  const before = await counted();
  expect(before.filter((line) => !line.endsWith(" 0"))).toEqual([]);
  await owner.commit(said(ENTITY));
  const after = await counted();
  expect(after.filter((line) => !line.endsWith(" 0")).map((line) => line.replace(/\{.*\}/, ""))).toEqual([
    "millrace_executions_accepted_total 1",
    "millrace_executions_ended_total 1",
    "millrace_dead_letters_total 1",
  ]);
  await store.close();
});

test("every answer is in what is shown, whatever was told of them before", async () => {
  const metrics = new Metrics();
  const counted = async (): Promise<readonly string[]> => {
    const lines = (await metrics.text()).split("\n");
    return lines.filter((line) => /^millrace_http_(?:requests_total|request_seconds_(?:sum|count))\{/.test(line));
  };
  for (let i = 0; i < 300; i++) metrics.answered("POST", "/v1/workflow", i < 290 ? 201 : 503, 0.5);
  metrics.answered("GET", "/v1/workflow", 404, 2);
  metrics.answeredNobody(404);
  const shown = [
    'millrace_http_requests_total{method="POST",route="/v1/workflow",status="201"} 290',
    'millrace_http_requests_total{method="POST",route="/v1/workflow",status="503"} 10',
    'millrace_http_requests_total{method="GET",route="/v1/workflow",status="404"} 1',
    'millrace_http_requests_total{method="(any)",route="(none)",status="404"} 1',
    'millrace_http_request_seconds_sum{method="POST",route="/v1/workflow"} 150',
    'millrace_http_request_seconds_count{method="POST",route="/v1/workflow"} 300',
    'millrace_http_request_seconds_sum{method="GET",route="/v1/workflow"} 2',
    'millrace_http_request_seconds_count{method="GET",route="/v1/workflow"} 1',
  ];
  expect((await counted()).toSorted()).toEqual(shown.toSorted());
  expect((await counted()).toSorted()).toEqual(shown.toSorted());
});

test("how long a task ran is measured of a result that is handed over as a value, too", async () => {
  const store: Store = openMemory({ host: nodeHost });
  const metrics = new Metrics(store);
  const seen = measured(store, metrics);
  const owner = await acquire(seen);
  await owner.commit({ tasks: [task("t")] });
  const [leased] = await lease(seen, { max: 1 });
  const { ref, token } = leased!;
  const message = { body: { kind: "taskCompleted", token, runningMs: 250 } };
  await seen.tasks.settle([{ ref, token, partition: 0, outcome: "completed", text: "", message, messageChars: 9 }]);
  expect(await metrics.text()).toMatch(/^millrace_task_seconds_sum\{result="completed"\} 0\.25$/m);
});
