import { taskMessage } from "../../core/message.ts";
import type { LeasedTask, LeaseRequest, Settlement, SettleOutcome, Task } from "../../store/contract.ts";
import { post } from "../memory/inbox.ts";
import type { Memory } from "../memory/memory.ts";
import { MemoryTasks } from "../memory/tasks.ts";
import type { TasksOut } from "./tasks-out.ts";

/** The tasks of a process, which dies with its workers: what they had then was lost with them, and is not simply put back. */
export class SqliteTasks extends MemoryTasks {
  readonly #memory: Memory;
  readonly #out: TasksOut;

  constructor(memory: Memory, out: TasksOut) {
    super(memory);
    this.#memory = memory;
    this.#out = out;
  }

  override async lease(request: LeaseRequest): Promise<readonly LeasedTask[]> {
    const leased = await super.lease(request);
    if (request.isFar !== true) this.#out.given(leased.map(({ token }) => token));
    return leased;
  }

  override async settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    const outcomes = await super.settle(results);
    this.#out.returned(results.map(({ token }) => token));
    return outcomes;
  }

  override async restore(tasks: readonly Task[]): Promise<void> {
    const { lost } = this.#out;
    await super.restore(lost.size === 0 ? tasks : tasks.filter(({ token }) => !lost.has(token)));
    for (const task of lost.size === 0 ? [] : tasks) {
      const { token, partition } = task;
      if (lost.delete(token))
        post(this.#memory, partition, taskMessage(task, "store", { kind: "deliveryLost", token }));
    }
  }
}
