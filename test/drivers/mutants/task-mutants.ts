import { StoredMessage, type StoredTask } from "../../../src/drivers/memory/memory-data.ts";
import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import { SHORT_MS } from "../../../src/store/conformance/harness.ts";
import type { LeasedTask, SettleOutcome, Tasks } from "../../../src/store/contract.ts";
import { bent, type Mutant, mutant, onBatch, pause } from "./mutant.ts";
import { onLeased, onTasks, plain, post, remove, requeue, stored } from "./on-tasks.ts";

const byOrder = (a: StoredTask, b: StoredTask): number => a.order - b.order;

/** Leases the queued tasks in another order, by leasing all and giving back what was too much. */
const leaseInOrder = (name: string, order: (a: StoredTask, b: StoredTask) => number): Mutant =>
  onTasks(name, (tasks, store) => ({
    lease: async (request) => {
      const known = new Map(stored(store).map((one) => [one.task.token, one]));
      const all = await tasks.lease({ ...request, max: 10_000 });
      const sorted = [...all].sort(
        (a, b) =>
          request.queues.indexOf(a.queue) - request.queues.indexOf(b.queue) ||
          (known.has(a.token) && known.has(b.token) ? order(known.get(a.token)!, known.get(b.token)!) : 0),
      );
      const rest = sorted.slice(request.max).sort((a, b) => byOrder(known.get(a.token)!, known.get(b.token)!));
      for (const task of rest) await requeue(store, plain(task));
      return sorted.slice(0, request.max);
    },
  }));

const leaseMutants: readonly Mutant[] = [
  leaseInOrder("the newest task is leased first", (a, b) => b.order - a.order),
  leaseInOrder("priorities are not looked at", byOrder),
  leaseInOrder("the lowest priority comes first", (a, b) => a.task.priority - b.task.priority || byOrder(a, b)),
  onTasks("a lease takes its maximum from each queue", (tasks) => ({
    lease: async (request) => {
      const found = await Promise.all(request.queues.map((queue) => tasks.lease({ ...request, queues: [queue] })));
      return found.flat();
    },
  })),
  onTasks("a lease takes from its queues in order of their names", (tasks) => ({
    lease: (request) => tasks.lease({ ...request, queues: [...request.queues].sort() }),
  })),
  onTasks("a lease has no maximum", (tasks) => ({ lease: (request) => tasks.lease({ ...request, max: 10_000 }) })),
  onTasks("a lease looks into its first queue only", (tasks) => ({
    lease: (request) => tasks.lease({ ...request, queues: request.queues.slice(0, 1) }),
  })),
  onTasks("a leased task stays in its queue", (tasks, store) => ({
    lease: async (request) => {
      const leased = await tasks.lease(request);
      for (const task of leased) await requeue(store, plain(task));
      return leased;
    },
  })),
  onTasks("a lease that ran out is given to the next who asks", (tasks, store) => ({
    lease: async (request) => {
      const { storeTimeMs } = await store.partitions.renew([], 0);
      for (const one of stored(store)) {
        if (one.leaseUntilMs !== null && one.leaseUntilMs <= storeTimeMs) await requeue(store, one.task);
      }
      return tasks.lease(request);
    },
  })),
  onTasks("tasks are looked at, then leased", (tasks, store) => ({
    lease: async (request) => {
      const seen = stored(store)
        .filter(({ task, leaseUntilMs }) => leaseUntilMs === null && request.queues.includes(task.queue))
        .slice(0, request.max);
      await pause();
      if (seen.length === 0) return tasks.lease(request);
      await tasks.lease({ ...request, waitMs: 0 });
      return seen.map(({ task, ref }) => ({ ...task, ref }));
    },
  })),
  onLeased("every lease has the same name", (leased) => leased.map((task) => ({ ...task, ref: "ref" }))),
  onLeased("a lease has no name", (leased) => leased.map((task) => ({ ...task, ref: "" }))),
  onLeased("the priority of a task is not kept", (leased) => leased.map((task) => ({ ...task, priority: 0 }))),
  onLeased("every task is of the first partition", (leased) => leased.map((task) => ({ ...task, partition: 0 }))),
  onTasks("a lease does not wait", (tasks) => ({ lease: (request) => tasks.lease({ ...request, waitMs: 0 }) })),
  onTasks("a lease is not woken", (tasks, store) => ({
    lease: async (request) => {
      const leased = await tasks.lease({ ...request, waitMs: 0 });
      if (leased.length > 0) return leased;
      await store.inbox.read([], request.waitMs);
      return tasks.lease({ ...request, waitMs: 0 });
    },
  })),
  mutant("a lease is ended by any task", (store) => {
    const { promise, resolve } = Promise.withResolvers<readonly LeasedTask[]>();
    return {
      tasks: bent<Tasks>(store.tasks, {
        lease: (request) =>
          request.waitMs > 0 ? Promise.race([store.tasks.lease(request), promise]) : store.tasks.lease(request),
      }),
      journal: bent<MemoryStore["journal"]>(store.journal, {
        commit: async (batches) => {
          const outcomes = await store.journal.commit(batches);
          if (batches.some(({ tasks }) => tasks.length > 0)) resolve([]);
          return outcomes;
        },
      }),
    };
  }),
  onTasks("one who waits is woken for each commit", (tasks, store) => {
    let isWaiting = false;
    return {
      lease: async (request) => {
        if (isWaiting) await store.inbox.read([], request.waitMs);
        isWaiting = request.waitMs > 0;
        return tasks.lease(request);
      },
    };
  }),
  onTasks("one who has stopped waiting still takes a task", (tasks) => ({
    lease: async (request) => {
      const leased = await tasks.lease(request);
      if (request.waitMs > 0 && leased.length === 0) void tasks.lease({ ...request, waitMs: 10_000 }).catch(() => {});
      return leased;
    },
  })),
  onTasks("waiting for tasks in vain fails", (tasks) => ({
    lease: async (request) => {
      const leased = await tasks.lease(request);
      if (request.waitMs === SHORT_MS && leased.length === 0) throw new Error("no tasks");
      return leased;
    },
  })),
  onBatch("a leased task whose token is committed again is queued again", (batch, store) => {
    for (const { token } of batch.tasks) if (store.data.tasks.byToken.get(token)?.leaseUntilMs) remove(store, token);
    return batch;
  }),
  mutant("tasks are sent before the commit", (store) => ({
    journal: bent<MemoryStore["journal"]>(store.journal, {
      commit: async (batches) => {
        for (const batch of batches) await store.tasks.restore(batch.tasks);
        return store.journal.commit(batches);
      },
    }),
  })),
  onTasks("restore does nothing", () => ({ restore: async () => {} })),
  onTasks("restore puts back what is there", (_, store) => ({
    restore: async (given) => {
      for (const task of given) await requeue(store, task);
    },
  })),
  onTasks("restore wakes nobody", (_, store) => ({
    restore: async (given) => {
      setTimeout(() => void store.tasks.restore(given), 60_000).unref();
    },
  })),
];

const settleMutants: readonly Mutant[] = [
  onTasks("settle posts and does not remove", (tasks, store) => ({
    settle: async (results) => {
      const before = new Map(store.data.tasks.byToken);
      const outcomes = await tasks.settle(results);
      for (const { token } of results) {
        const task = before.get(token);
        if (task === undefined || store.data.tasks.byToken.has(token)) continue;
        store.data.tasks.byToken.set(token, task);
        store.data.tasks.leased += 1;
      }
      return outcomes;
    },
  })),
  onTasks("settle removes and does not post", (tasks, store) => ({
    settle: async (results) => {
      const before = store.data.partitions.map(({ inbox }) => inbox.length);
      const outcomes = await tasks.settle(results);
      for (const [i, { inbox }] of store.data.partitions.entries()) inbox.length = before[i]!;
      return outcomes;
    },
  })),
  onTasks("settle is two steps", (tasks, store) => ({
    settle: async (results) => {
      const isThere = results.map(({ ref, token }) => store.data.tasks.byToken.get(token)?.ref === ref);
      await pause();
      const outcomes = await tasks.settle(results);
      for (const [i, { partition, text }] of results.entries()) {
        if (isThere[i] && outcomes[i] === "stale") await post(store, partition, text);
      }
      return outcomes.map((outcome, i) => (isThere[i] ? "settled" : outcome));
    },
  })),
  onTasks("a completion of a task that is gone is dropped", (tasks, store) => ({
    settle: (results) => {
      const known = (token: string): boolean => store.data.tasks.byToken.has(token);
      return tasks.settle(results.map((one) => (known(one.token) ? one : { ...one, outcome: "failed" })));
    },
  })),
  onTasks("a failure of a task that is gone is posted", (tasks) => ({
    settle: (results) => tasks.settle(results.map((one) => ({ ...one, outcome: "completed" }))),
  })),
  onTasks("a hand-back of a task that is gone is posted", (tasks) => ({
    settle: (results) =>
      tasks.settle(results.map((one) => (one.outcome === "handedBack" ? { ...one, outcome: "completed" } : one))),
  })),
  onTasks("a hand-back is put back into the queue", (tasks, store) => ({
    settle: async (results) => {
      const before = new Map(store.data.tasks.byToken);
      const outcomes = await tasks.settle(results);
      const back = results.filter(({ outcome }, i) => outcome === "handedBack" && outcomes[i] === "settled");
      await tasks.restore(back.map(({ token }) => before.get(token)!.task));
      return outcomes;
    },
  })),
  onTasks("settle looks at the token only", (tasks, store) => ({
    settle: (results) =>
      tasks.settle(results.map((one) => ({ ...one, ref: store.data.tasks.byToken.get(one.token)?.ref ?? one.ref }))),
  })),
  onTasks("settle looks at the lease's name only", (tasks, store) => ({
    settle: (results) => {
      const tokens = new Map(stored(store).map(({ ref, task }) => [ref, task.token]));
      return tasks.settle(results.map((one) => ({ ...one, token: tokens.get(one.ref) ?? one.token })));
    },
  })),
  onTasks("settle needs a lease that has not run out", (tasks, store) => ({
    settle: async (results) => {
      const { storeTimeMs } = await store.partitions.renew([], 0);
      const isOver = (token: string): boolean =>
        (store.data.tasks.byToken.get(token)?.leaseUntilMs ?? Infinity) <= storeTimeMs;
      return tasks.settle(results.map((one) => (isOver(one.token) ? { ...one, ref: "" } : one)));
    },
  })),
  onTasks("settle handles its results last first", (tasks) => ({
    settle: async (results) => (await tasks.settle(results.toReversed())).toReversed(),
  })),
  onTasks("a full store takes no results", (tasks, store) => ({
    settle: async (results) => {
      if (store.faults.isFull) throw new Error("full");
      return tasks.settle(results);
    },
  })),
  onTasks("a revoked task cannot be settled", (tasks, store) => ({
    settle: (results) => {
      for (const { token } of results)
        if (store.data.tasks.byToken.get(token)?.isRevoked === true) remove(store, token);
      return tasks.settle(results);
    },
  })),
  onTasks("results wake nobody", (_, store) => ({
    settle: async (results) => {
      const outcomes = results.map(({ token }): SettleOutcome =>
        store.data.tasks.byToken.has(token) ? "settled" : "posted",
      );
      for (const { partition, token, text } of results) {
        remove(store, token);
        store.data.partitions[partition]!.inbox.push(
          new StoredMessage(store.data.nextMessageId++, false, text, text.length),
        );
      }
      return outcomes;
    },
  })),
];

export const taskMutants: readonly Mutant[] = [...leaseMutants, ...settleMutants];
