import { type MemoryOptions, type MemoryStore, openMemory } from "../../src/drivers/memory/memory-store.ts";
import type { Harness } from "../../src/store/conformance/harness.ts";
import type { Store } from "../../src/store/contract.ts";
import { createManualHost } from "./manual-host.ts";

/** Opens memory stores for the suite; `wrap` puts a mutant around each. */
export async function openMemoryHarness(
  options: Omit<MemoryOptions, "host">,
  wrap: (store: MemoryStore) => Store = (store) => store,
): Promise<Harness> {
  const host = createManualHost();
  const inboxLimit = 60;
  const open = (): MemoryStore => openMemory({ maxInbox: inboxLimit, ...options, host });
  let memory = open();
  return {
    store: wrap(memory),
    inboxLimit,
    advance: (ms) => host.advance(ms),
    setClockBack: async (ms) => {
      // The store learns of it by looking at the clock before and after, as it does all the time where there is traffic.
      await memory.tasks.lapse(0);
      host.setWallBack(ms);
      await memory.tasks.lapse(0);
    },
    appendLate: async (message) => {
      const id = memory.inbox.reserve(message.partition);
      return async () => {
        memory.inbox.appendAt(id, message);
      };
    },
    // The copy in another store stands for a disk: nothing but data comes over.
    reopen: async () => {
      const data = memory.dump();
      await memory.close();
      memory = open();
      memory.restore(data);
      memory.restart();
      return wrap(memory);
    },
    setFull: async (isFull) => {
      memory.faults.isFull = isFull;
    },
    refuseCommits: async (isRefusing) => {
      memory.faults.refusesCommits = isRefusing;
    },
    close: () => memory.close(),
  };
}
