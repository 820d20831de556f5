import type { AcquireOutcome, Fence, Partitions, RenewOutcome } from "../../store/contract.ts";
import { checkPartition, type Sqlite } from "./sqlite.ts";

interface PartitionRow {
  readonly epoch: number;
  readonly nonce: string | null;
  readonly owner: string;
  readonly leaseUntilMs: number;
  readonly seq: number;
  readonly lastTimeMs: number;
  readonly strikes: number;
  readonly suspect: string | null;
  readonly isClean: number;
}

const SQL = {
  find: `
    select epoch, nonce, owner, lease_until_ms as leaseUntilMs, seq, last_time_ms as lastTimeMs, strikes, suspect,
      is_clean as isClean
    from partitions where id = 0`,
  begin: `
    update partitions set epoch = ?, nonce = ?, owner = ?, lease_until_ms = ?, strikes = ?, suspect = ?, is_clean = 0
    where id = 0`,
  renew: `update partitions set lease_until_ms = ? where id = 0 and epoch = ? and nonce = ? returning seq`,
  // Without a nonce nothing of the tenure that ends here fits any more.
  release: `
    update partitions set nonce = null, owner = '', lease_until_ms = 0, is_clean = 1
    where id = 0 and epoch = ? and nonce = ?`,
};

export class SqlitePartitions implements Partitions {
  readonly #sqlite: Sqlite;

  constructor(sqlite: Sqlite) {
    this.#sqlite = sqlite;
  }

  async acquire(partition: number, owner: string, leaseMs: number): Promise<AcquireOutcome> {
    checkPartition(partition);
    const { db, memory } = this.#sqlite;
    return db.transaction(() => {
      const row = db.get<PartitionRow>(SQL.find)!;
      if (row.nonce !== null && row.leaseUntilMs > memory.leaseClock.nowMs()) return heldBy(row);
      if (row.isClean === 1) return this.#begin({ ...row, owner, strikes: 0, suspect: null }, leaseMs);
      return this.#begin({ ...row, owner, strikes: row.strikes + 1 }, leaseMs);
    });
  }

  async reacquire(fence: Fence, leaseMs: number): Promise<AcquireOutcome> {
    checkPartition(fence.partition);
    const { db, incarnation } = this.#sqlite;
    return db.transaction(() => {
      const row = db.get<PartitionRow>(SQL.find)!;
      const { epoch, nonce } = row;
      const isHolder = fence.incarnation === incarnation && fence.epoch === epoch && fence.nonce === nonce;
      return isHolder ? this.#begin(row, leaseMs) : heldBy(row);
    });
  }

  async renew(fences: readonly Fence[], leaseMs: number): Promise<RenewOutcome> {
    const { db, incarnation, memory } = this.#sqlite;
    const storeTimeMs = memory.host.wallMs();
    const untilMs = memory.leaseClock.nowMs() + leaseMs;
    const partitions = fences.map((fence): RenewOutcome["partitions"][number] => {
      const { partition, epoch, nonce } = fence;
      const isOurs = partition === 0 && fence.incarnation === incarnation;
      const row = isOurs ? db.get<{ seq: number }>(SQL.renew, untilMs, epoch, nonce) : undefined;
      return row === undefined ? { kind: "lost", partition } : { kind: "held", partition, seq: row.seq };
    });
    return { storeTimeMs, partitions };
  }

  async release({ incarnation, epoch, nonce }: Fence): Promise<void> {
    if (incarnation === this.#sqlite.incarnation) this.#sqlite.db.run(SQL.release, epoch, nonce);
  }

  #begin(row: PartitionRow, leaseMs: number): AcquireOutcome {
    const { db, incarnation, memory } = this.#sqlite;
    const storeTimeMs = memory.host.wallMs();
    const nonce = memory.host.id();
    const epoch = row.epoch + 1;
    const { owner, seq, lastTimeMs, strikes, suspect } = row;
    db.run(SQL.begin, epoch, nonce, owner, memory.leaseClock.nowMs() + leaseMs, strikes, suspect);
    return {
      kind: "acquired",
      tenure: { partition: 0, incarnation, epoch, nonce, seq, lastTimeMs, storeTimeMs, strikes, suspect },
    };
  }
}

function heldBy(row: PartitionRow): AcquireOutcome {
  return { kind: "held", by: row.owner };
}
