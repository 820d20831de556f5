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

test.each([
  ["was not written", false],
  ["was written though nobody heard of it", true],
])("what %s is written before what comes next, once, and hides nothing", async (_, arrives) => {
  const memory = new MemoryStore({ host: nodeHost });
  let isAway = true;
  const put: typeof memory.records.put = async (...given) => {
    if (!isAway) return memory.records.put(...given);
    if (arrives) await memory.records.put(...given);
    throw new Error("away");
  };
  const records = Object.assign(Object.create(memory.records) as typeof memory.records, { put });
  const logs = new TaskLogs(
    Object.defineProperty(Object.create(memory) as typeof memory, "records", { value: records }),
    nodeHost,
  );
  logs.observer.logged(taskOf("a"), { message: "first" });
  await logs.close();
  isAway = false;
  logs.observer.logged(taskOf("a"), { message: "second" });
  await logs.close();
  logs.observer.logged(taskOf("a"), { message: "third" });
  await logs.close();
  const [found] = await readLogs(memory, [attemptOf("a")]);
  expect(found!.lines.map(({ message }) => message)).toEqual(["first", "second", "third"]);
  await memory.close();
});
