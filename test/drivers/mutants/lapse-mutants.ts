import { taskMessage } from "../../../src/core/message.ts";
import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import { afterBatch, bent, type Mutant, mutant, onBatch, pause } from "./mutant.ts";
import { onTasks, post, remove, stored } from "./on-tasks.ts";

const lapseMutants: readonly Mutant[] = [
  onTasks("nothing lapses", () => ({ lapse: async () => 0 })),
  onTasks("a lapse puts the task back into its queue", (tasks, store) => ({
    lapse: async (limit) => {
      const before = stored(store);
      const count = await tasks.lapse(limit);
      await tasks.restore(before.map(({ task }) => task));
      return count;
    },
  })),
  onTasks("a lapse posts twice", (tasks, store) => ({
    lapse: async (limit) => {
      const before = stored(store);
      const count = await tasks.lapse(limit);
      for (const { task, isRevoked } of before) {
        if (isRevoked || store.data.tasks.byToken.has(task.token)) continue;
        await post(store, task.partition, taskMessage(task, "store", { kind: "deliveryLost", token: task.token }));
      }
      return count;
    },
  })),
  onTasks("a lapse posts and does not remove", (tasks, store) => ({
    lapse: async (limit) => {
      const { lapses } = store.data.tasks;
      const before = [...lapses];
      const known = new Map(store.data.tasks.byToken);
      const count = await tasks.lapse(limit);
      lapses.splice(0, lapses.length, ...before);
      for (const [token, task] of known) store.data.tasks.byToken.set(token, task);
      store.data.tasks.leased += count;
      return count;
    },
  })),
  onTasks("a lapse removes and does not post", (tasks, store) => ({
    lapse: async (limit) => {
      for (const one of stored(store)) one.isRevoked = true;
      return tasks.lapse(limit);
    },
  })),
  onTasks("a lapse posts for revoked tasks too", (tasks, store) => ({
    lapse: async (limit) => {
      for (const one of stored(store)) one.isRevoked = false;
      return tasks.lapse(limit);
    },
  })),
  onTasks("a lapse leaves revoked tasks for ever", (tasks, store) => ({
    lapse: async (limit) => {
      for (const one of stored(store)) if (one.isRevoked) one.leaseUntilMs = Number.MAX_SAFE_INTEGER;
      return tasks.lapse(limit);
    },
  })),
  onTasks("a lapse has no limit", (tasks) => ({ lapse: () => tasks.lapse(1e6) })),
  onTasks("a lapse ends every lease", (tasks, store) => ({
    lapse: async (limit) => {
      const { lapses } = store.data.tasks;
      lapses.splice(0, lapses.length, ...lapses.map((lapse) => ({ ...lapse, atMs: 0 })));
      for (const one of stored(store)) if (one.leaseUntilMs !== null) one.leaseUntilMs = 0;
      return tasks.lapse(limit);
    },
  })),
  onTasks("a lapse is two steps", (_, store) => ({
    lapse: async (limit) => {
      const { storeTimeMs } = await store.partitions.renew([], 0);
      const over = stored(store).filter(({ leaseUntilMs }) => leaseUntilMs !== null && leaseUntilMs <= storeTimeMs);
      await pause();
      for (const { task, isRevoked } of over.slice(0, limit)) {
        remove(store, task.token);
        if (isRevoked) continue;
        await post(store, task.partition, taskMessage(task, "store", { kind: "deliveryLost", token: task.token }));
      }
      return Math.min(over.length, limit);
    },
  })),
  onTasks("a lapse goes by the time the lease was taken for", (tasks, store) => ({
    heartbeat: async (beats, leaseMs) => {
      const before = new Map(stored(store).map((one) => [one, one.leaseUntilMs]));
      const outcome = await tasks.heartbeat(beats, leaseMs);
      for (const [one, untilMs] of before) one.leaseUntilMs = untilMs;
      return outcome;
    },
  })),
  onTasks("a lapse wakes nobody", (tasks, store) => ({
    lapse: async (limit) => {
      const before = store.data.partitions.map(({ inbox }) => inbox.length);
      // Before whoever was woken can look: it is done by now.
      const lapsing = tasks.lapse(limit);
      for (const [i, { inbox }] of store.data.partitions.entries()) {
        const posted = inbox.splice(before[i]!);
        setImmediate(() => inbox.push(...posted));
      }
      await pause();
      await pause();
      return lapsing;
    },
  })),
  onTasks("a lapse tells the first partition", (tasks, store) => ({
    lapse: async (limit) => {
      for (const one of stored(store)) Object.assign(one, { task: { ...one.task, partition: 0 } });
      return tasks.lapse(limit);
    },
    heartbeat: async (beats, leaseMs) => {
      for (const one of stored(store)) Object.assign(one, { task: { ...one.task, partition: 0 } });
      return tasks.heartbeat(beats, leaseMs);
    },
  })),
  onTasks("deliveryLost does not name the entity", (tasks, store) => ({
    lapse: async (limit) => {
      for (const one of stored(store)) Object.assign(one, { task: { ...one.task, entity: "" } });
      return tasks.lapse(limit);
    },
    heartbeat: async (beats, leaseMs) => {
      for (const one of stored(store)) Object.assign(one, { task: { ...one.task, entity: "" } });
      return tasks.heartbeat(beats, leaseMs);
    },
  })),
];

const heartbeatMutants: readonly Mutant[] = [
  onTasks("a heartbeat makes every lease longer", (tasks, store) => ({
    heartbeat: async (beats, leaseMs) => {
      const { storeTimeMs } = await store.partitions.renew([], 0);
      for (const one of stored(store)) if (one.leaseUntilMs !== null) one.leaseUntilMs = storeTimeMs + leaseMs;
      return tasks.heartbeat(beats, leaseMs);
    },
  })),
  onTasks("a heartbeat makes a lease endless", (tasks) => ({
    heartbeat: (beats) => tasks.heartbeat(beats, 1e9),
  })),
  onTasks("a heartbeat looks at the token only", (tasks, store) => ({
    heartbeat: (beats, leaseMs) =>
      tasks.heartbeat(
        beats.map((beat) => ({ ...beat, ref: store.data.tasks.byToken.get(beat.token)?.ref ?? "" })),
        leaseMs,
      ),
  })),
  onTasks("a heartbeat looks at the lease's name only", (tasks, store) => ({
    heartbeat: (beats, leaseMs) => {
      const tokens = new Map(stored(store).map(({ ref, task }) => [ref, task.token]));
      return tasks.heartbeat(
        beats.map((beat) => ({ ...beat, token: tokens.get(beat.ref) ?? beat.token })),
        leaseMs,
      );
    },
  })),
  onTasks("a heartbeat answers the leases' names", (tasks) => ({
    heartbeat: async (beats, leaseMs) => {
      const { lost, cancelled } = await tasks.heartbeat(beats, leaseMs);
      const refs = new Map(beats.map(({ ref, token }) => [token, ref]));
      return { lost: lost.map((token) => refs.get(token)!), cancelled: cancelled.map((token) => refs.get(token)!) };
    },
  })),
  onTasks("a heartbeat never says that a task is lost", (tasks) => ({
    heartbeat: async (beats, leaseMs) => ({ ...(await tasks.heartbeat(beats, leaseMs)), lost: [] }),
  })),
  onTasks("a heartbeat never says that a task is cancelled", (tasks) => ({
    heartbeat: async (beats, leaseMs) => ({ ...(await tasks.heartbeat(beats, leaseMs)), cancelled: [] }),
  })),
  onTasks("a heartbeat says once that a task is cancelled", (tasks, store) => ({
    heartbeat: async (beats, leaseMs) => {
      const outcome = await tasks.heartbeat(beats, leaseMs);
      for (const one of stored(store)) one.isRevoked = false;
      return outcome;
    },
  })),
  onTasks("a heartbeat after the time is lost", (tasks, store) => ({
    heartbeat: async (beats, leaseMs) => {
      const { storeTimeMs } = await store.partitions.renew([], 0);
      const isOver = (token: string): boolean =>
        (store.data.tasks.byToken.get(token)?.leaseUntilMs ?? Infinity) <= storeTimeMs;
      return tasks.heartbeat(
        beats.map((beat) => (isOver(beat.token) ? { ...beat, ref: "" } : beat)),
        leaseMs,
      );
    },
  })),
  onTasks("every heartbeat posts something", (tasks) => ({
    heartbeat: (beats, leaseMs) =>
      tasks.heartbeat(
        beats.map((beat) => ({ started: { partition: 0, text: '"started"' }, ...beat })),
        leaseMs,
      ),
  })),
  onTasks("no heartbeat posts anything", (tasks) => ({
    heartbeat: (beats, leaseMs) =>
      tasks.heartbeat(
        beats.map(({ ref, token }) => ({ ref, token })),
        leaseMs,
      ),
  })),
  onTasks("a lost heartbeat posts what it has to say", (tasks, store) => ({
    heartbeat: async (beats, leaseMs) => {
      const outcome = await tasks.heartbeat(beats, leaseMs);
      for (const { token, started } of beats) {
        if (started !== undefined && outcome.lost.includes(token)) await post(store, started.partition, started.text);
      }
      return outcome;
    },
  })),
];

const revokeMutants: readonly Mutant[] = [
  onBatch("a queued task is not revoked", (batch, store) => ({
    ...batch,
    revoke: batch.revoke.filter((token) => store.data.tasks.byToken.get(token)?.leaseUntilMs !== null),
  })),
  onBatch("a leased task is not revoked", (batch, store) => ({
    ...batch,
    revoke: batch.revoke.filter((token) => store.data.tasks.byToken.get(token)?.leaseUntilMs === null),
  })),
  afterBatch("a leased task that is revoked is removed", (batch, outcome, store) => {
    if (outcome.kind === "committed") for (const token of batch.revoke) remove(store, token);
  }),
  onBatch("tasks are revoked before those of the batch are there", (batch, store) => ({
    ...batch,
    revoke: batch.revoke.filter((token) => store.data.tasks.byToken.has(token)),
  })),
  onBatch("a revoke takes the whole queue", (batch, store) => ({
    ...batch,
    revoke:
      batch.revoke.length > 0
        ? [...stored(store), ...batch.tasks.map((task) => ({ task }))].map((one) => one.task.token)
        : [],
  })),
  mutant("revoking what nobody knows fails", (store) => ({
    journal: bent<MemoryStore["journal"]>(store.journal, {
      commit: async (batches) => {
        const known = new Set([
          ...store.data.tasks.byToken.keys(),
          ...batches.flatMap(({ tasks }) => tasks.map((t) => t.token)),
        ]);
        if (batches.some(({ revoke }) => revoke.some((token) => !known.has(token)))) throw new Error("unknown task");
        return store.journal.commit(batches);
      },
    }),
  })),
  afterBatch("revoking twice counts twice", (batch, outcome, store) => {
    const queue = store.data.tasks.queues.get("queue");
    if (outcome.kind === "committed" && queue !== undefined)
      queue.size -= new Set(batch.revoke).size < batch.revoke.length ? 1 : 0;
  }),
  mutant("a task is revoked before the commit", (store) => ({
    journal: bent<MemoryStore["journal"]>(store.journal, {
      commit: async (batches) => {
        for (const token of batches.flatMap(({ revoke }) => revoke)) {
          const task = store.data.tasks.byToken.get(token);
          if (task?.leaseUntilMs !== null && task !== undefined) task.isRevoked = true;
        }
        return store.journal.commit(batches);
      },
    }),
  })),
];

export const lapseAndRevokeMutants: readonly Mutant[] = [...lapseMutants, ...heartbeatMutants, ...revokeMutants];
