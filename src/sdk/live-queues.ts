import type { LeasedTask, LeaseRequest, Store, Tasks } from "../store/contract.ts";

/**
 * The queues that a worker in this process serves, which may become more while it waits for tasks of those it had. A
 * lease cannot be called off: what one brings that nobody waits for any more is kept for the next.
 */
export class LiveQueues {
  /** As the worker looks into it. */
  readonly names: string[] = [];
  #spare: LeasedTask[] = [];
  #changed = Promise.withResolvers<void>();

  /** The worker looks again at once. */
  add(names: Iterable<string>): void {
    const before = this.names.length;
    for (const name of names) if (!this.names.includes(name)) this.names.push(name);
    if (this.names.length > before) this.lookAgain();
  }

  /** Whoever waits for tasks is answered now, with none. */
  lookAgain(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** The same store, as the worker of these queues sees it. */
  over(store: Store): Store {
    const { capabilities, partitions, inbox, journal, records, queries } = store;
    const tasks: Tasks = {
      lease: (request) => this.#lease(store.tasks, request),
      heartbeat: (beats, leaseMs) => store.tasks.heartbeat(beats, leaseMs),
      settle: (results) => store.tasks.settle(results),
      lapse: (limit) => store.tasks.lapse(limit),
      restore: (tasks) => store.tasks.restore(tasks),
    };
    return { capabilities, partitions, inbox, journal, tasks, records, queries, close: () => store.close() };
  }

  async #lease(tasks: Tasks, request: LeaseRequest): Promise<readonly LeasedTask[]> {
    if (this.#spare.length > 0) return this.#spare.splice(0, request.max);
    const changed = this.#changed.promise.then(() => undefined);
    const leasing = tasks.lease(request);
    const leased = await Promise.race([leasing, changed]);
    if (leased !== undefined) return leased;
    leasing.then(
      (late) => this.#spare.push(...late) > 0 && this.lookAgain(),
      () => undefined,
    );
    return [];
  }
}
