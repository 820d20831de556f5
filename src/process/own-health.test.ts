import { expect, test } from "vitest";
import { openMemory } from "../drivers/memory/memory-store.ts";
import { nodeHost } from "../host/node-host.ts";
import type { LeaseRequest, Store } from "../store/contract.ts";
import type { Worker } from "../worker/worker.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { workerCheck } from "./own-health.ts";

const WELL = { trouble: undefined };
const request: LeaseRequest = { worker: "w", queues: ["q"], max: 1, leaseMs: 1_000, waitMs: 0 };

function stuckIn(...queues: string[]): Pick<Worker, "stuckQueues" | "notStopping"> {
  const task = { handler: "deaf" } as Worker["notStopping"][number];
  return { stuckQueues: queues, notStopping: [task, task] };
}

test.each([
  [["a", "b"], [], undefined],
  [["a", "b"], ["a"], undefined],
  [["a", "b"], ["a", "b"], 'takes nothing more, since its handlers do not stop when asked: "deaf"'],
])("of a worker for %j, handlers keep all slots of %j", async (queues, stuck, told) => {
  expect(await workerCheck(stuckIn(...stuck), queues, WELL)()).toBe(told);
});

test("a worker that cannot take tasks is not ready, though its store answers whoever reads", async () => {
  let nowMs = 0;
  let isRefused = false;
  const memory: Store = openMemory({ host: nodeHost });
  const lease = memory.tasks.lease.bind(memory.tasks);
  memory.tasks.lease = (asked) => (isRefused ? Promise.reject(new Error("read-only")) : lease(asked));
  const leases = new LeaseWatch({ monotonicMs: () => nowMs });
  const store = leases.watch(memory);
  const check = workerCheck(stuckIn(), ["q"], leases);
  await store.tasks.lease(request);
  expect(await check()).toBe(undefined);
  isRefused = true;
  await expect(store.tasks.lease(request)).rejects.toThrow("read-only");
  nowMs += 900;
  expect(await check()).toBe(undefined);
  await expect(store.tasks.lease(request)).rejects.toThrow("read-only");
  nowMs += 2_100;
  expect(await check()).toBe("has not been able to take tasks for 3 s");
  isRefused = false;
  await store.tasks.lease(request);
  expect(await check()).toBe(undefined);
  await store.close();
});
