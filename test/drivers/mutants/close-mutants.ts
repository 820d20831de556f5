import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { Journal, Records, Tasks } from "../../../src/store/contract.ts";
import { bent, type Mutant, mutant } from "./mutant.ts";

const onClose = (name: string, close: (store: MemoryStore) => () => Promise<void>): Mutant =>
  mutant(name, (store) => ({ close: close(store) }));

export const closeMutants: readonly Mutant[] = [
  onClose("a store that was closed goes on", () => async () => {}),
  onClose("closing again fails", (store) => {
    let isClosed = false;
    return async () => {
      if (isClosed) throw new Error("closed already");
      isClosed = true;
      await store.close();
    };
  }),
  mutant("a store that was closed still has its records", (store) => {
    const { records } = store.data;
    return {
      records: bent<Records>(store.records, {
        get: async (keys) => keys.map(({ scope, hash }) => records.get(scope)?.get(hash) ?? null),
      }),
    };
  }),
  mutant("whoever watches when the store is closed hears of no version", (store) => {
    let isClosed = false;
    return {
      journal: bent<Journal>(store.journal, {
        watch: async (partition, entity, aboveVersion, waitMs) => {
          const version = await store.journal.watch(partition, entity, aboveVersion, waitMs);
          return isClosed ? 0 : version;
        },
      }),
      close: async () => {
        isClosed = true;
        await store.close();
      },
    };
  }),
  mutant("whoever waits for tasks when the store is closed fails", (store) => {
    let isClosed = false;
    return {
      tasks: bent<Tasks>(store.tasks, {
        lease: async (request) => {
          const leased = await store.tasks.lease(request);
          if (isClosed) throw new Error("the store is closed");
          return leased;
        },
      }),
      close: async () => {
        isClosed = true;
        await store.close();
      },
    };
  }),
];
