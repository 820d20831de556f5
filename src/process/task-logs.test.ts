import { expect, test } from "vitest";
import type { TaskText } from "../core/execution/prepare.ts";
import { formatToken } from "../core/token.ts";
import { MemoryStore } from "../drivers/memory/memory-store.ts";
import { nodeHost } from "../host/node-host.ts";
import { type Attempt, readLogs, TaskLogs } from "./task-logs.ts";

const attemptOf = (instance: string): Attempt => ({ execution: "x", generation: 1, instance, attempt: 1, delivery: 1 });
const taskOf = (instance: string): TaskText =>
  ({ token: formatToken({ nonce: "n", ...attemptOf(instance) }) }) as unknown as TaskText;

test("deliveries that were lost, and are never settled, leave room for others", async () => {
  const store = new MemoryStore({ host: nodeHost });
  const logs = new TaskLogs(store, nodeHost);
  for (let i = 0; i <= 10_000; i++) logs.observer.logged(taskOf(`a${i}`), { message: `line ${i}` });
  await logs.close();
  const [first, last] = await readLogs(store, [attemptOf("a0"), attemptOf("a10000")]);
  expect([first!.lines, last!.lines]).toMatchObject([[{ message: "line 0" }], [{ message: "line 10000" }]]);
  await store.close();
});
