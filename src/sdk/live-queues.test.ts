import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { LeasedTask, LeaseRequest, Store } from "../store/contract.ts";
import { LiveQueues } from "./live-queues.ts";

const REQUEST: LeaseRequest = { worker: "w", queues: ["q"], max: 10, leaseMs: 1_000, waitMs: 1_000 };

function over(queues: LiveQueues, lease: () => Promise<readonly LeasedTask[]>): Store["tasks"] {
  return queues.over({ tasks: { lease } } as unknown as Store).tasks;
}

test("what was leased is nobody's once the worker has let go of it", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const queues = new LiveQueues();
  const tasks = over(queues, async () => [{ token: "t" } as LeasedTask]);
  const seen: WeakRef<LeasedTask>[] = [];
  for (let i = 0; i < 20; i++) seen.push(new WeakRef((await tasks.lease(REQUEST))[0]!));
  // A reference that was just made holds what it refers to until the end of the turn.
  await sleep(1);
  collect();
  expect(seen.filter((ref) => ref.deref() !== undefined).length).toBeLessThan(5);
});

test("whoever waits is answered when the queues change, and what its lease brings later is the next one's", async () => {
  const queues = new LiveQueues();
  const leases = [Promise.withResolvers<readonly LeasedTask[]>(), Promise.withResolvers<readonly LeasedTask[]>()];
  let asked = 0;
  const tasks = over(queues, () => leases[asked++]!.promise);
  const first = tasks.lease(REQUEST);
  queues.add(["other"]);
  expect(await first).toEqual([]);
  const second = tasks.lease(REQUEST);
  const late = { token: "late" } as LeasedTask;
  leases[0]!.resolve([late]);
  expect(await second).toEqual([]);
  expect(await tasks.lease(REQUEST)).toEqual([late]);
});
