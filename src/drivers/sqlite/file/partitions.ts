import type { AcquireOutcome, Fence, RenewOutcome } from "../../../store/contract.ts";
import type { Database } from "./database.ts";

interface PartitionRow {
  readonly epoch: number;
  readonly nonce: string | null;
  readonly owner: string;
  readonly seq: number;
  readonly lastTimeMs: number;
  readonly strikes: number;
  readonly suspect: string | null;
  readonly isClean: number;
}

const SQL = {
  find: `
    select epoch, nonce, owner, seq, last_time_ms as lastTimeMs, strikes, suspect, is_clean as isClean
    from partitions where id = 0`,
  begin: `
    update partitions set epoch = ?, nonce = ?, owner = ?, strikes = ?, suspect = ?, is_clean = 0 where id = 0`,
  // Without a nonce nothing of the tenure that ends here fits any more.
  release: `update partitions set nonce = null, owner = '', is_clean = 1 where id = 0 and epoch = ? and nonce = ?`,
};

/** What the process that owns the store says of this moment. */
export interface Moment {
  readonly storeTimeMs: number;
  /** By the clock for leases. */
  readonly nowMs: number;
}

/**
 * Who holds the one partition. Its tenure is in the file; until when its lease lasts is not, because whoever has opened
 * the file knows that everybody before it is gone. So a renewal writes nothing, and an idle engine leaves the disk alone.
 */
export class FilePartitions {
  readonly #db: Database;
  readonly #incarnation: string;
  leaseUntilMs = 0;

  constructor(db: Database, incarnation: string) {
    this.#db = db;
    this.#incarnation = incarnation;
  }

  acquire(owner: string, nonce: string, leaseMs: number, moment: Moment): AcquireOutcome {
    const row = this.#find();
    if (row.nonce !== null && this.leaseUntilMs > moment.nowMs) return heldBy(row);
    const strikes = row.isClean === 1 ? 0 : row.strikes + 1;
    const suspect = row.isClean === 1 ? null : row.suspect;
    return this.#begin({ ...row, owner, strikes, suspect }, nonce, leaseMs, moment);
  }

  reacquire(fence: Fence, nonce: string, leaseMs: number, moment: Moment): AcquireOutcome {
    const row = this.#find();
    return this.#isHolder(fence, row) ? this.#begin(row, nonce, leaseMs, moment) : heldBy(row);
  }

  renew(fences: readonly Fence[], leaseMs: number, { storeTimeMs, nowMs }: Moment): RenewOutcome {
    const row = this.#find();
    const partitions = fences.map((fence): RenewOutcome["partitions"][number] => {
      const { partition } = fence;
      if (partition !== 0 || !this.#isHolder(fence, row)) return { kind: "lost", partition };
      this.leaseUntilMs = nowMs + leaseMs;
      return { kind: "held", partition, seq: row.seq };
    });
    return { storeTimeMs, partitions };
  }

  release({ incarnation, epoch, nonce }: Fence): void {
    if (incarnation === this.#incarnation) this.#db.run(SQL.release, epoch, nonce);
  }

  #begin(row: PartitionRow, nonce: string, leaseMs: number, { storeTimeMs, nowMs }: Moment): AcquireOutcome {
    const epoch = row.epoch + 1;
    const { owner, seq, lastTimeMs, strikes, suspect } = row;
    this.#db.run(SQL.begin, epoch, nonce, owner, strikes, suspect);
    this.leaseUntilMs = nowMs + leaseMs;
    const incarnation = this.#incarnation;
    return {
      kind: "acquired",
      tenure: { partition: 0, incarnation, epoch, nonce, seq, lastTimeMs, storeTimeMs, strikes, suspect },
    };
  }

  #find(): PartitionRow {
    return this.#db.get<PartitionRow>(SQL.find)!;
  }

  #isHolder({ incarnation, epoch, nonce }: Fence, row: PartitionRow): boolean {
    return incarnation === this.#incarnation && epoch === row.epoch && nonce === row.nonce;
  }
}

function heldBy({ owner }: PartitionRow): AcquireOutcome {
  return { kind: "held", by: owner };
}
