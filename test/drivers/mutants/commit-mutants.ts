import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { CommitBatch, CommitOutcome, Journal } from "../../../src/store/contract.ts";
import { afterBatch, bent, type Mutant, mutant, onBatch, pause } from "./mutant.ts";

const onCommit = (name: string, commit: (store: MemoryStore) => Journal["commit"]): Mutant =>
  mutant(name, (store) => ({ journal: bent<Journal>(store.journal, { commit: commit(store) }) }));

const state = (store: MemoryStore, { fence }: CommitBatch): MemoryStore["data"]["partitions"][number] =>
  store.data.partitions[fence.partition]!;

/** The batch as one that fits whatever the store has. */
export function forced(store: MemoryStore, batch: CommitBatch): CommitBatch {
  const { epoch, nonce, seq } = state(store, batch);
  return { ...batch, fence: { ...batch.fence, incarnation: store.data.incarnation, epoch, nonce: nonce ?? "", seq } };
}

const NOTHING = {
  consumed: null,
  records: [],
  headers: [],
  wakes: [],
  snapshots: [],
  tasks: [],
  revoke: [],
  mail: [],
  replies: [],
  discard: [],
  deadLetters: [],
  purge: [],
  cut: [],
} as const;

type Part = keyof typeof NOTHING;

/** Writes one part of a batch although the batch was fenced. */
const half = (part: Part): Mutant =>
  afterBatch(`a fenced batch leaves half a commit: ${part}`, async (batch, outcome, store) => {
    const partition = state(store, batch);
    if (outcome.kind !== "fenced" || partition.nonce === null) return;
    const { seq, lastBatch, lastTimeMs } = partition;
    await store.journal.commit([forced(store, { ...batch, ...NOTHING, [part]: batch[part] })]);
    Object.assign(partition, { seq, lastBatch, lastTimeMs });
  });

/** Leaves out one part of every batch. */
const without = (part: Part): Mutant =>
  onBatch(`a commit forgets its ${part}`, (batch) => ({ ...batch, [part]: NOTHING[part] }));

const twice = (part: "mail" | "replies" | "tasks"): Mutant =>
  afterBatch(`a batch sent again has its ${part} again`, async (batch, outcome, store) => {
    if (outcome.kind !== "alreadyApplied") return;
    if (part === "mail") await store.inbox.append(batch.mail);
    else if (part === "tasks") await store.tasks.restore(batch.tasks);
    else for (const reply of batch.replies) store.data.replies.set(reply.process, [reply]);
  });

const parts: readonly Part[] = Object.keys(NOTHING) as readonly Part[];

const lists = parts.filter((part) => part !== "consumed");

export const commitMutants: readonly Mutant[] = [
  ...parts.map(half),
  ...parts.map(without),
  twice("mail"),
  twice("replies"),
  twice("tasks"),
  onCommit("a batch sent again is fenced", (store) => async (batches) => {
    const outcomes = await store.journal.commit(batches);
    return outcomes.map((outcome) => (outcome.kind === "alreadyApplied" ? { kind: "fenced" } : outcome));
  }),
  onCommit("a batch sent again is committed again", (store) => async (batches) => {
    for (const batch of batches) {
      const partition = state(store, batch);
      if (partition.lastBatch === batch.id && partition.nonce === batch.fence.nonce) partition.seq -= 1;
    }
    return store.journal.commit(batches.map((batch) => ({ ...batch, records: [] })));
  }),
  onCommit("one behind is alreadyApplied, whatever the batch", (store) => async (batches) => {
    const outcomes = await store.journal.commit(batches);
    return outcomes.map((outcome, i): CommitOutcome => {
      const isOneBehind = state(store, batches[i]!).seq === batches[i]!.fence.seq + 1;
      return outcome.kind === "fenced" && isOneBehind ? { kind: "alreadyApplied" } : outcome;
    });
  }),
  onCommit("a batch is known again under another tenure", (store) => async (batches) => {
    const outcomes = await store.journal.commit(batches);
    return outcomes.map((outcome, i): CommitOutcome => {
      const isKnown = state(store, batches[i]!).lastBatch === batches[i]!.id;
      return outcome.kind === "fenced" && isKnown ? { kind: "alreadyApplied" } : outcome;
    });
  }),
  onCommit("a commit needs a lease that has not run out", (store) => async (batches) => {
    const { storeTimeMs } = await store.partitions.renew([], 0);
    const outcomes = await Promise.all(
      batches.map(async (batch): Promise<CommitOutcome> => {
        if (state(store, batch).leaseUntilMs <= storeTimeMs) return { kind: "fenced" };
        return (await store.journal.commit([batch]))[0]!;
      }),
    );
    return outcomes;
  }),
  onCommit("the guard is looked at before the write, not with it", (store) => async (batches) => {
    const isFenced = batches.map((batch) => {
      const { epoch, nonce, seq } = state(store, batch);
      return epoch !== batch.fence.epoch || nonce !== batch.fence.nonce || seq !== batch.fence.seq;
    });
    await pause();
    const right = batches.map((batch, i) => (isFenced[i] ? batch : forced(store, batch)));
    return store.journal.commit(right);
  }),
  onCommit("a refused batch uses up a number", (store) => async (batches) => {
    const outcomes = await store.journal.commit(batches);
    for (const [i, batch] of batches.entries()) if (outcomes[i]?.kind === "fenced") state(store, batch).seq += 1;
    return outcomes;
  }),
  onCommit("a batch that the store has no room for uses up a number", (store) => async (batches) => {
    const outcomes = await store.journal.commit(batches);
    for (const [i, batch] of batches.entries()) if (outcomes[i]?.kind === "refused") state(store, batch).seq += 1;
    return outcomes;
  }),
  onCommit("a batch that the store has no room for is there in part", (store) => async (batches) => {
    const outcomes = await store.journal.commit(batches);
    for (const [i, { mail }] of batches.entries()) if (outcomes[i]?.kind === "refused") await store.inbox.append(mail);
    return outcomes;
  }),
  onCommit("a full store commits nothing", (store) => async (batches) => {
    if (store.faults.isFull) return batches.map(() => ({ kind: "refused", reason: "full" }));
    return store.journal.commit(batches);
  }),
  onCommit("one fenced batch fences the whole call", (store) => async (batches) => {
    const isFenced = batches.some(({ fence }) => store.data.partitions[fence.partition]?.nonce !== fence.nonce);
    return isFenced ? batches.map(() => ({ kind: "fenced" })) : store.journal.commit(batches);
  }),
  onCommit("the first batch of a call is committed only", (store) => async (batches) => {
    await store.journal.commit(batches.slice(0, 1));
    return batches.map(() => ({ kind: "committed" }));
  }),
  onCommit("outcomes come in order of the partitions", (store) => async (batches) => {
    const outcomes = await store.journal.commit(batches);
    const order = batches.map(({ fence }, i) => ({ at: -fence.partition, i })).sort((a, b) => a.at - b.at);
    return order.map(({ i }) => outcomes[i]!);
  }),
  onCommit("an empty batch is not worth a commit", (store) => async (batches) => {
    const outcomes: CommitOutcome[] = [];
    for (const batch of batches) {
      const isEmpty =
        batch.suspect === null && batch.consumed === null && lists.every((part) => (batch[part] ?? []).length === 0);
      outcomes.push(isEmpty ? { kind: "committed" } : (await store.journal.commit([batch]))[0]!);
    }
    return outcomes;
  }),
  onCommit("an empty call fails", (store) => async (batches) => {
    if (batches.length === 0) throw new Error("no batches");
    return store.journal.commit(batches);
  }),
  onBatch("a batch is cut at 500 entries", (batch) => ({
    ...batch,
    records: batch.records.slice(0, 500),
    mail: batch.mail.slice(0, 500),
  })),
  onBatch("a partition's time is not kept", (batch) => ({ ...batch, timeMs: 0 })),
  mutant("all partitions are one", (store) => {
    const zero = <Item extends { readonly partition: number }>(item: Item): Item => ({ ...item, partition: 0 });
    const { partitions, inbox, journal, tasks } = store;
    return {
      partitions: bent(partitions, {
        acquire: async (partition, owner, leaseMs) => {
          const outcome = await partitions.acquire(0, owner, leaseMs);
          return outcome.kind === "held" ? outcome : { ...outcome, tenure: { ...outcome.tenure, partition } };
        },
        reacquire: (fence, leaseMs) => partitions.reacquire(zero(fence), leaseMs),
        renew: (fences, leaseMs) => partitions.renew(fences.map(zero), leaseMs),
        release: (fence) => partitions.release(zero(fence)),
      }),
      inbox: bent(inbox, {
        append: (messages) => inbox.append(messages.map(zero)),
        read: (requests, waitMs) => inbox.read(requests.map(zero), waitMs),
      }),
      journal: bent<Journal>(journal, {
        commit: (batches) =>
          journal.commit(batches.map((batch) => ({ ...batch, fence: zero(batch.fence), mail: batch.mail.map(zero) }))),
        due: (_, beforeMs, limit, after) => journal.due(0, beforeMs, limit, after),
      }),
      tasks: bent(tasks, { settle: (results) => tasks.settle(results.map(zero)) }),
    };
  }),
  onBatch("a batch's mail, tasks and wakes go to the first partition", (batch) => ({
    ...batch,
    mail: batch.mail.map((message) => ({ ...message, partition: 0 })),
    tasks: batch.tasks.map((task) => ({ ...task, partition: 0 })),
  })),
];
