import type { AcquireOutcome, Fence, Partitions, RenewOutcome } from "../../store/contract.ts";
import type { Moment } from "./file/partitions.ts";
import { checkPartition, type Sqlite } from "./sqlite.ts";

export class SqlitePartitions implements Partitions {
  readonly #sqlite: Sqlite;

  constructor(sqlite: Sqlite) {
    this.#sqlite = sqlite;
  }

  async acquire(partition: number, owner: string, leaseMs: number): Promise<AcquireOutcome> {
    checkPartition(partition);
    const { writer, memory } = this.#sqlite;
    return writer.call("acquire", owner, memory.host.id(), leaseMs, this.#moment());
  }

  async reacquire(fence: Fence, leaseMs: number): Promise<AcquireOutcome> {
    checkPartition(fence.partition);
    const { writer, memory } = this.#sqlite;
    return writer.call("reacquire", fence, memory.host.id(), leaseMs, this.#moment());
  }

  async renew(fences: readonly Fence[], leaseMs: number): Promise<RenewOutcome> {
    return this.#sqlite.writer.call("renew", fences, leaseMs, this.#moment());
  }

  async release(fence: Fence): Promise<void> {
    await this.#sqlite.writer.call("release", fence);
  }

  #moment(): Moment {
    const { host, leaseClock } = this.#sqlite.memory;
    return { storeTimeMs: host.wallMs(), nowMs: leaseClock.nowMs() };
  }
}
