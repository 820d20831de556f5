import type { LeasedTask, LeaseRequest, Store, Tasks } from "../store/contract.ts";

/**
 * The queues that a worker in this process serves, which may become more while it waits for tasks of those it had. A
 * lease cannot be called off: what one brings that nobody waits for any more is kept for the next.
 */
export class LiveQueues {
  /** As the worker looks into it. */
  readonly names: string[] = [];
  #spare: LeasedTask[] = [];
  /**
   * Those who wait for tasks. Not a promise that lasts from change to change: whatever waits for one hangs on it for good, and
   * with it here all tasks that were ever leased.
   */
  readonly #waiting = new Set<() => void>();

  /** The worker looks again at once. */
  add(names: Iterable<string>): void {
    const before = this.names.length;
    for (const name of names) if (!this.names.includes(name)) this.names.push(name);
    if (this.names.length > before) this.lookAgain();
  }

  /** Whoever waits for tasks is answered now, with none. */
  lookAgain(): void {
    for (const stopWaiting of this.#waiting) stopWaiting();
    this.#waiting.clear();
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
    const changed = Promise.withResolvers<undefined>();
    const stopWaiting = (): void => changed.resolve(undefined);
    const leasing = tasks.lease(request);
    this.#waiting.add(stopWaiting);
    const leased = await Promise.race([leasing, changed.promise]).finally(() => this.#waiting.delete(stopWaiting));
    if (leased !== undefined) return leased;
    leasing.then(
      (late) => this.#spare.push(...late) > 0 && this.lookAgain(),
      () => undefined,
    );
    return [];
  }
}
