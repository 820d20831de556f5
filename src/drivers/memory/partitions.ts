import type { AcquireOutcome, Fence, Partitions, RenewOutcome } from "../../store/contract.ts";
import type { PartitionData } from "./memory-data.ts";
import { type Memory, partitionData } from "./memory.ts";

export class MemoryPartitions implements Partitions {
  readonly #memory: Memory;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async acquire(partition: number, owner: string, leaseMs: number): Promise<AcquireOutcome> {
    const data = partitionData(this.#memory, partition);
    if (data.nonce !== null && data.leaseUntilMs > this.#memory.leaseClock.nowMs()) return heldBy(data);
    data.strikes = data.isClean ? 0 : data.strikes + 1;
    if (data.isClean) data.suspect = null;
    return this.#begin(partition, data, owner, leaseMs);
  }

  async reacquire(fence: Fence, leaseMs: number): Promise<AcquireOutcome> {
    const data = partitionData(this.#memory, fence.partition);
    if (!isHolder(this.#memory, fence)) return heldBy(data);
    // The owner is alive: an outcome it could not learn is no strike.
    return this.#begin(fence.partition, data, data.owner, leaseMs);
  }

  async renew(fences: readonly Fence[], leaseMs: number): Promise<RenewOutcome> {
    const storeTimeMs = this.#memory.host.wallMs();
    const partitions = fences.map((fence): RenewOutcome["partitions"][number] => {
      const { partition } = fence;
      if (!isHolder(this.#memory, fence)) return { kind: "lost", partition };
      const data = partitionData(this.#memory, partition);
      data.leaseUntilMs = this.#memory.leaseClock.nowMs() + leaseMs;
      return { kind: "held", partition, seq: data.seq };
    });
    return { storeTimeMs, partitions };
  }

  async release(fence: Fence): Promise<void> {
    if (!isHolder(this.#memory, fence)) return;
    const data = partitionData(this.#memory, fence.partition);
    // Without a nonce nothing of the tenure that ends here fits any more, its delayed commits included.
    data.nonce = null;
    data.owner = "";
    data.leaseUntilMs = 0;
    data.isClean = true;
  }

  #begin(partition: number, data: PartitionData, owner: string, leaseMs: number): AcquireOutcome {
    const { host } = this.#memory;
    const storeTimeMs = host.wallMs();
    const nonce = host.id();
    data.epoch += 1;
    data.nonce = nonce;
    data.owner = owner;
    data.leaseUntilMs = this.#memory.leaseClock.nowMs() + leaseMs;
    data.isClean = false;
    const { epoch, seq, lastTimeMs, strikes, suspect } = data;
    const { incarnation } = this.#memory.data;
    return {
      kind: "acquired",
      tenure: { partition, incarnation, epoch, nonce, seq, lastTimeMs, storeTimeMs, strikes, suspect },
    };
  }
}

/** Whether this is the tenure that has the partition: its lease may have run out, as long as nobody else took it. */
export function isHolder(memory: Memory, fence: Fence): boolean {
  const { epoch, nonce } = partitionData(memory, fence.partition);
  return fence.incarnation === memory.data.incarnation && fence.epoch === epoch && fence.nonce === nonce;
}

function heldBy(data: PartitionData): AcquireOutcome {
  return { kind: "held", by: data.owner };
}
