import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { AcquireOutcome, Fence, Partitions, Store, Tenure } from "../../../src/store/contract.ts";
import { afterBatch, bent, type Mutant, mutant, onFence, pause } from "./mutant.ts";

const onPartitions = (name: string, changes: (store: MemoryStore) => Partial<Partitions>): Mutant =>
  mutant(name, (store) => ({ partitions: bent<Partitions>(store.partitions, changes(store)) }));

/** Changes what a tenure begins with, in the store and in the answer. */
const onBegin = (
  name: string,
  change: (tenure: Tenure, store: MemoryStore, before: Fence & { readonly lastTimeMs: number }) => Partial<Tenure>,
  which: "acquire" | "reacquire" | "both" = "both",
): Mutant =>
  onPartitions(name, (store) => {
    const begin = async (partition: number, attempt: () => Promise<AcquireOutcome>): Promise<AcquireOutcome> => {
      const data = store.data.partitions[partition]!;
      const { epoch, seq, lastTimeMs } = data;
      const before = { partition, incarnation: "", epoch, nonce: data.nonce ?? "", seq, lastTimeMs };
      const outcome = await attempt();
      if (outcome.kind === "held") return outcome;
      const changed = change(outcome.tenure, store, before);
      const { epoch: newEpoch, nonce, seq: newSeq } = { ...outcome.tenure, ...changed };
      Object.assign(data, { epoch: newEpoch, nonce, seq: newSeq });
      return { kind: "acquired", tenure: { ...outcome.tenure, ...changed } };
    };
    const acquire: Partitions["acquire"] = (partition, owner, leaseMs) =>
      begin(partition, () => store.partitions.acquire(partition, owner, leaseMs));
    const reacquire: Partitions["reacquire"] = (fence, leaseMs) =>
      begin(fence.partition, () => store.partitions.reacquire(fence, leaseMs));
    if (which === "acquire") return { acquire };
    return which === "reacquire" ? { reacquire } : { acquire, reacquire };
  });

const data = (store: MemoryStore, fence: Fence): MemoryStore["data"]["partitions"][number] =>
  store.data.partitions[fence.partition]!;

const isHolder = (store: MemoryStore, fence: Fence): boolean => data(store, fence).nonce === fence.nonce;

const fenceMutants: readonly Mutant[] = [
  onFence("the fence is not looked at", (fence, store) => {
    const { epoch, nonce, seq } = data(store, fence);
    return { ...fence, incarnation: store.data.incarnation, epoch, nonce: nonce ?? "", seq };
  }),
  onFence("the fence has no incarnation", (fence, store) => ({ ...fence, incarnation: store.data.incarnation })),
  onFence("the fence has no epoch", (fence, store) => ({ ...fence, epoch: data(store, fence).epoch })),
  onFence("the fence has no nonce", (fence, store) => ({ ...fence, nonce: data(store, fence).nonce ?? "" })),
  onFence("the fence has no sequence number", (fence, store) => ({ ...fence, seq: data(store, fence).seq })),
  onFence("the fence takes any higher epoch", (fence, store) => {
    const { epoch } = data(store, fence);
    return { ...fence, epoch: fence.epoch > epoch ? epoch : fence.epoch };
  }),
];

const acquireMutants: readonly Mutant[] = [
  onPartitions("acquire takes what is held", (store) => ({
    acquire: (partition, owner, leaseMs) => {
      store.data.partitions[partition]!.leaseUntilMs = 0;
      return store.partitions.acquire(partition, owner, leaseMs);
    },
  })),
  onPartitions("acquire gives the holder's name its partition again", (store) => ({
    acquire: (partition, owner, leaseMs) => {
      const state = store.data.partitions[partition]!;
      if (state.owner === owner) state.leaseUntilMs = 0;
      return store.partitions.acquire(partition, owner, leaseMs);
    },
  })),
  onPartitions("acquire does not say who holds it", (store) => ({
    acquire: async (partition, owner, leaseMs) => {
      const outcome = await store.partitions.acquire(partition, owner, leaseMs);
      return outcome.kind === "held" ? { ...outcome, by: "" } : outcome;
    },
  })),
  onPartitions("acquire waits for a release for ever", (store) => ({
    acquire: (partition, owner, leaseMs) => {
      const state = store.data.partitions[partition]!;
      if (state.nonce !== null) state.leaseUntilMs = Number.MAX_SAFE_INTEGER;
      return store.partitions.acquire(partition, owner, leaseMs);
    },
  })),
  onPartitions("acquire looks, then takes", (store) => ({
    acquire: async (partition, owner, leaseMs) => {
      const state = store.data.partitions[partition]!;
      const isFree = state.nonce === null;
      await pause();
      if (isFree) state.leaseUntilMs = 0;
      return store.partitions.acquire(partition, owner, leaseMs);
    },
  })),
  onPartitions("reacquire looks, then takes", (store) => ({
    reacquire: async (fence, leaseMs) => {
      if (!isHolder(store, fence)) return store.partitions.reacquire(fence, leaseMs);
      await pause();
      const { epoch, nonce } = data(store, fence);
      return store.partitions.reacquire({ ...fence, epoch, nonce: nonce ?? "" }, leaseMs);
    },
  })),
  onBegin("the epoch stays the same", (_, __, before) => ({ epoch: Math.max(1, before.epoch) })),
  onBegin("no new nonce is drawn", () => ({ nonce: "nonce" })),
  onBegin("the first epoch is 0", ({ epoch }) => ({ epoch: epoch - 1 })),
  onBegin("a new tenure counts from 0", () => ({ seq: 0 })),
  onBegin("a new tenure begins at time 0", () => ({ lastTimeMs: 0 })),
  onBegin("a tenure shows the time of the acquire as that of the last commit", ({ storeTimeMs }) => ({
    lastTimeMs: storeTimeMs,
  })),
  onBegin("every tenure draws an incarnation", ({ nonce }, store) => {
    Object.assign(store.data, { incarnation: nonce });
    return { incarnation: nonce };
  }),
  onPartitions("reacquire works while the lease runs only", (store) => ({
    reacquire: async (fence, leaseMs) => {
      const { storeTimeMs } = await store.partitions.renew([], 0);
      const { owner, leaseUntilMs } = data(store, fence);
      if (leaseUntilMs <= storeTimeMs) return { kind: "held", by: owner };
      return store.partitions.reacquire(fence, leaseMs);
    },
  })),
  onPartitions("reacquire works for every tenure of the same owner", (store) => {
    const owners = new Map<string, string>();
    return {
      reacquire: (fence, leaseMs) => {
        const { epoch, nonce, owner } = data(store, fence);
        if (nonce === fence.nonce) owners.set(nonce, owner);
        const isSame = nonce !== null && owners.get(fence.nonce) === owner;
        return store.partitions.reacquire(isSame ? { ...fence, epoch, nonce } : fence, leaseMs);
      },
    };
  }),
  onPartitions("reacquire does not make the lease new", (store) => ({
    reacquire: async (fence, leaseMs) => {
      const { leaseUntilMs } = data(store, fence);
      const outcome = await store.partitions.reacquire(fence, leaseMs);
      data(store, fence).leaseUntilMs = leaseUntilMs;
      return outcome;
    },
  })),
  onPartitions("reacquire forgets who holds the partition", (store) => ({
    reacquire: async (fence, leaseMs) => {
      const outcome = await store.partitions.reacquire(fence, leaseMs);
      data(store, fence).owner = "nobody";
      return outcome;
    },
  })),
];

const renewMutants: readonly Mutant[] = [
  onPartitions("renew does not make the lease longer", (store) => ({
    renew: async (fences, leaseMs) => {
      const before = fences.map((fence) => data(store, fence).leaseUntilMs);
      const outcome = await store.partitions.renew(fences, leaseMs);
      for (const [i, fence] of fences.entries()) data(store, fence).leaseUntilMs = before[i]!;
      return outcome;
    },
  })),
  onPartitions("renew works while the lease runs only", (store) => ({
    renew: async (fences, leaseMs) => {
      const { storeTimeMs } = await store.partitions.renew([], 0);
      const isOver = fences.map((fence) => data(store, fence).leaseUntilMs <= storeTimeMs);
      const { partitions } = await store.partitions.renew(fences, leaseMs);
      return {
        storeTimeMs,
        partitions: partitions.map((one, i) => (isOver[i] ? { kind: "lost", partition: one.partition } : one)),
      };
    },
  })),
  onPartitions("renew makes the lease of whoever holds it longer", (store) => ({
    renew: async (fences, leaseMs) => {
      const outcome = await store.partitions.renew(fences, leaseMs);
      for (const fence of fences) data(store, fence).leaseUntilMs = outcome.storeTimeMs + leaseMs;
      return outcome;
    },
  })),
  onPartitions("renew looks at the sequence number", (store) => ({
    renew: (fences, leaseMs) =>
      store.partitions.renew(
        fences.map((fence) => (fence.seq === data(store, fence).seq ? fence : { ...fence, nonce: "" })),
        leaseMs,
      ),
  })),
  onPartitions("renew answers the number of the fence", (store) => ({
    renew: async (fences, leaseMs) => {
      const outcome = await store.partitions.renew(fences, leaseMs);
      const partitions = outcome.partitions.map((one, i) =>
        one.kind === "held" ? { ...one, seq: fences[i]!.seq } : one,
      );
      return { ...outcome, partitions };
    },
  })),
  onPartitions("renew answers in order of the partitions, and for those held only", (store) => ({
    renew: async (fences, leaseMs) => {
      const outcome = await store.partitions.renew(fences, leaseMs);
      const held = outcome.partitions.filter(({ kind }) => kind === "held");
      return { ...outcome, partitions: held.sort((a, b) => a.partition - b.partition) };
    },
  })),
  onPartitions("renew answers the time of the process", (store) => ({
    renew: async (fences, leaseMs) => ({ ...(await store.partitions.renew(fences, leaseMs)), storeTimeMs: 0 }),
  })),
  mutant("the store's time stands still", (store) => {
    const shown = store.partitions.renew([], 0);
    const still = async <Answer extends { readonly storeTimeMs: number }>(
      answer: Promise<Answer>,
    ): Promise<Answer> => ({
      ...(await answer),
      storeTimeMs: (await shown).storeTimeMs,
    });
    return {
      partitions: bent<Partitions>(store.partitions, {
        renew: (fences, leaseMs) => still(store.partitions.renew(fences, leaseMs)),
      }),
      queries: bent<Store["queries"]>(store.queries, { counts: () => still(store.queries.counts()) }),
    };
  }),
  onPartitions("release does nothing", () => ({ release: async () => {} })),
  onPartitions("release leaves the nonce good", (store) => ({
    release: async (fence) => {
      if (!isHolder(store, fence)) return;
      data(store, fence).leaseUntilMs = 0;
      data(store, fence).isClean = true;
    },
  })),
  onPartitions("release releases whoever holds it", (store) => ({
    release: (fence) => {
      const { epoch, nonce } = data(store, fence);
      return store.partitions.release({ ...fence, epoch, nonce: nonce ?? "" });
    },
  })),
];

/** What `change` makes of the strikes after something happened. */
const onStrikes = (
  name: string,
  method: "acquire" | "reacquire" | "renew" | "release",
  change: (
    state: MemoryStore["data"]["partitions"][number],
    before: { strikes: number; suspect: string | null },
  ) => void,
): Mutant =>
  onPartitions(name, (store) => {
    const act = async <Answer>(partition: number, action: () => Promise<Answer>): Promise<Answer> => {
      const state = store.data.partitions[partition]!;
      const { strikes, suspect } = state;
      const answer = await action();
      change(state, { strikes, suspect });
      return typeof answer === "object" && answer !== null && "tenure" in answer
        ? { ...answer, tenure: { ...(answer.tenure as Tenure), strikes: state.strikes, suspect: state.suspect } }
        : answer;
    };
    const all: Partitions = {
      acquire: (partition, ...rest) => act(partition, () => store.partitions.acquire(partition, ...rest)),
      reacquire: (fence, leaseMs) => act(fence.partition, () => store.partitions.reacquire(fence, leaseMs)),
      renew: (fences, leaseMs) => act(fences[0]?.partition ?? 0, () => store.partitions.renew(fences, leaseMs)),
      release: (fence) => act(fence.partition, () => store.partitions.release(fence)),
    };
    return { [method]: all[method] };
  });

const strikeMutants: readonly Mutant[] = [
  onStrikes("strikes are never counted", "acquire", (state) => {
    state.strikes = 0;
  }),
  onStrikes("every acquire is a strike", "acquire", (state, before) => {
    state.strikes = before.strikes + 1;
  }),
  onStrikes("strikes are counted to one", "acquire", (state) => {
    state.strikes = Math.min(1, state.strikes);
  }),
  onStrikes("reacquire is a strike", "reacquire", (state) => {
    state.strikes += 1;
  }),
  onStrikes("reacquire clears strikes and suspect", "reacquire", (state) => {
    state.strikes = 0;
    state.suspect = null;
  }),
  onStrikes("reacquire keeps the credit of the commits before it", "reacquire", (state) => {
    state.isClean = true;
  }),
  onStrikes("renew clears strikes", "renew", (state) => {
    state.isClean = true;
  }),
  onStrikes("release is a strike like any other end", "release", (state) => {
    state.isClean = false;
  }),
  onStrikes("acquire forgets the suspect", "acquire", (state) => {
    state.suspect = null;
  }),
  onStrikes("acquire shows the suspect once", "acquire", (state, before) => {
    state.suspect = before.strikes > 0 ? null : before.suspect;
  }),
  afterBatch("a commit does not clear strikes", (batch, _, store) => {
    data(store, batch.fence).isClean = false;
  }),
  afterBatch("a commit with a suspect clears strikes", (batch, outcome, store) => {
    if (batch.suspect === null || outcome.kind !== "committed") return;
    data(store, batch.fence).strikes = 0;
  }),
  afterBatch("a commit with a suspect is a commit like any other", (batch, outcome, store) => {
    if (outcome.kind === "committed") data(store, batch.fence).isClean = true;
  }),
  afterBatch("a fenced commit clears strikes and suspect", (batch, outcome, store) => {
    if (outcome.kind !== "fenced") return;
    Object.assign(data(store, batch.fence), { strikes: 0, suspect: null });
  }),
  mutant("the first suspect stays", (store) => ({
    journal: bent<Store["journal"]>(store.journal, {
      commit: (batches) =>
        store.journal.commit(
          batches.map((batch) => ({ ...batch, suspect: data(store, batch.fence).suspect ?? batch.suspect })),
        ),
    }),
  })),
];

export const partitionMutants: readonly Mutant[] = [
  ...fenceMutants,
  ...acquireMutants,
  ...renewMutants,
  ...strikeMutants,
];
