import { emptyTasks } from "../../../src/drivers/memory/memory-data.ts";
import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { CommitBatch, Journal } from "../../../src/store/contract.ts";
import { bent, type Mutant, mutant } from "./mutant.ts";

/** Changes every text on its way into the store. */
const onTexts = (name: string, change: (text: string) => string): Mutant =>
  mutant(name, (store) => {
    const bend = <Item extends { readonly text: string }>(item: Item): Item => ({ ...item, text: change(item.text) });
    const bendBatch = (batch: CommitBatch): CommitBatch => ({
      ...batch,
      records: batch.records.map(bend),
      snapshots: batch.snapshots.map(bend),
      tasks: batch.tasks.map(bend),
      mail: batch.mail.map(bend),
      replies: batch.replies.map(bend),
      deadLetters: batch.deadLetters.map(bend),
    });
    return {
      inbox: bent(store.inbox, { append: (messages) => store.inbox.append(messages.map(bend)) }),
      journal: bent<Journal>(store.journal, { commit: (batches) => store.journal.commit(batches.map(bendBatch)) }),
      tasks: bent(store.tasks, { settle: (results) => store.tasks.settle(results.map(bend)) }),
      records: bent(store.records, { put: (records, options) => store.records.put(records.map(bend), options) }),
    };
  });

/** Changes every name on its way into the store and in every question. */
const onNames = (name: string, change: (name: string) => string): Mutant =>
  mutant(name, (store) => {
    const { tasks, inbox, journal, records } = store;
    return {
      tasks: bent(tasks, { lease: (request) => tasks.lease({ ...request, queues: request.queues.map(change) }) }),
      inbox: bent(inbox, { replies: (process, waitMs) => inbox.replies(change(process), waitMs) }),
      journal: bent<Journal>(journal, {
        commit: (batches) =>
          journal.commit(
            batches.map((batch) => ({
              ...batch,
              tasks: batch.tasks.map((task) => ({ ...task, queue: change(task.queue) })),
              replies: batch.replies.map((reply) => ({ ...reply, process: change(reply.process) })),
            })),
          ),
      }),
      records: bent(records, { publish: (name, hash) => records.publish(change(name), hash) }),
    };
  });

/** Loses something when the store is opened on data that is there already. */
const onReopen = (what: string, forget: (data: MemoryStore["data"]) => void): Mutant =>
  mutant(`a restart forgets ${what}`, (store) => {
    forget(store.data);
    return {};
  });

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

const textMutants: readonly Mutant[] = [
  onTexts("texts are parsed and written again", (text) => (isJson(text) ? JSON.stringify(JSON.parse(text)) : text)),
  onTexts("texts lose escaped NULs", (text) => text.replaceAll("\\u0000", "")),
  onTexts("texts lose lone surrogates", (text) => text.replaceAll(/\\u[dD][89a-fA-F][0-9a-fA-F]{2}/g, "\ufffd")),
  onTexts("texts are kept as Latin-1", (text) => Buffer.from(text, "latin1").toString("latin1")),
  onTexts("texts are normalised", (text) => text.normalize("NFC")),
  onTexts("texts are quoted by hand", (text) => text.replaceAll("'", "''")),
  onTexts("texts are cut at 64 KiB", (text) => text.slice(0, 65_536)),
  onNames("names are told apart without case", (name) => name.toLowerCase()),
  onNames("names end at a colon", (name) => name.split(":")[0]!),
];

const restartMutants: readonly Mutant[] = [
  onReopen("the inbox", (data) => {
    for (const { inbox } of data.partitions) inbox.length = 0;
  }),
  onReopen("the journal", (data) => data.entities.clear()),
  onReopen("who holds a partition", (data) => {
    for (const partition of data.partitions) partition.nonce = null;
  }),
  onReopen("tasks", (data) => {
    data.tasks = emptyTasks();
  }),
  onReopen("leases", (data) => {
    for (const task of data.tasks.byToken.values()) task.leaseUntilMs &&= Number.MAX_SAFE_INTEGER;
  }),
  onReopen("what was revoked", (data) => {
    for (const task of data.tasks.byToken.values()) task.isRevoked = false;
  }),
  onReopen("records", (data) => data.records.clear()),
  onReopen("who was registered", (data) => data.registrations.clear()),
  onReopen("that its lock has ended", (data) => {
    for (const partition of data.partitions) partition.leaseUntilMs ||= partition.nonce === null ? 0 : 1e15;
  }),
  onReopen("that somebody was killed", (data) => {
    for (const partition of data.partitions) partition.isClean = true;
  }),
  mutant("leases go by a clock that can be set back", (store) => {
    let earliestMs = Infinity;
    const isBack = async (): Promise<boolean> => {
      const { storeTimeMs } = await store.partitions.renew([], 0);
      earliestMs = Math.min(earliestMs, Number.isFinite(earliestMs) ? earliestMs : storeTimeMs);
      return storeTimeMs < earliestMs;
    };
    void isBack();
    return {
      partitions: bent(store.partitions, {
        acquire: async (partition, owner, leaseMs) => {
          if (await isBack()) return { kind: "held", by: owner };
          return store.partitions.acquire(partition, owner, leaseMs);
        },
      }),
      tasks: bent(store.tasks, { lapse: async (limit) => ((await isBack()) ? 0 : store.tasks.lapse(limit)) }),
      records: bent(store.records, {
        registered: async () => {
          const known = [...store.data.registrations.values()].map(({ registration }) => registration);
          return (await isBack()) ? known : store.records.registered();
        },
      }),
    };
  }),
];

export const textAndRestartMutants: readonly Mutant[] = [...textMutants, ...restartMutants];
