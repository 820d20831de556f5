import type { StoredTask } from "../../../src/drivers/memory/memory-data.ts";
import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { LeasedTask, Task, Tasks } from "../../../src/store/contract.ts";
import { bent, type Mutant, mutant } from "./mutant.ts";

export const onTasks = (
  name: string,
  changes: (tasks: MemoryStore["tasks"], store: MemoryStore) => Partial<Tasks>,
): Mutant => mutant(name, (store) => ({ tasks: bent<Tasks>(store.tasks, changes(store.tasks, store)) }));

export const onLeased = (name: string, change: (leased: readonly LeasedTask[]) => readonly LeasedTask[]): Mutant =>
  onTasks(name, (tasks) => ({ lease: async (request) => change(await tasks.lease(request)) }));

export const stored = (store: MemoryStore): readonly StoredTask[] => [...store.data.tasks.byToken.values()];

export const remove = (store: MemoryStore, token: string): void => {
  const task = store.data.tasks.byToken.get(token);
  if (task === undefined) return;
  store.data.tasks.byToken.delete(token);
  const queue = store.data.tasks.queues.get(task.task.queue);
  if (task.leaseUntilMs !== null) store.data.tasks.leased -= 1;
  else if (queue !== undefined) queue.size -= 1;
};

export const requeue = async (store: MemoryStore, task: Task): Promise<void> => {
  remove(store, task.token);
  await store.tasks.restore([task]);
};

export const plain = ({ token, entity, partition, queue, priority, text }: LeasedTask): Task => ({
  token,
  entity,
  partition,
  queue,
  priority,
  text,
});

export const post = (store: MemoryStore, partition: number, text: string): unknown =>
  store.inbox.append([{ partition, start: false, text }]);
