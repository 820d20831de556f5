import type { AcquireOutcome, Fence, Partitions, RenewOutcome } from "../../store/contract.ts";
import { columns, type Connection, rows } from "./database.ts";
import type { Postgres } from "./postgres.ts";

interface PartitionRow {
  readonly epoch: number;
  readonly nonce: string | null;
  readonly owner: string;
  readonly leaseUntilMs: number;
  readonly seq: number;
  readonly lastTimeMs: number;
  readonly strikes: number;
  readonly suspect: string | null;
  readonly isClean: boolean;
  readonly leaseNowMs: number;
}

const SQL = {
  lock: `
    select epoch, nonce, owner, lease_until_ms as "leaseUntilMs", seq, last_time_ms as "lastTimeMs", strikes, suspect,
      is_clean as "isClean", lease_ms() as "leaseNowMs"
    from partitions where id = $1 for update`,
  begin: `
    update partitions set epoch = $2, nonce = $3, owner = $4, lease_until_ms = lease_ms() + $5, strikes = $6,
      suspect = $7, is_clean = false
    where id = $1 returning wall_ms() as "storeTimeMs"`,
  renew: `
    update partitions set lease_until_ms = lease_ms() + $4
    from unnest($1::integer[], $2::bigint[], $3::text[]) as fence (partition, epoch, nonce)
    where id = fence.partition and partitions.epoch = fence.epoch and partitions.nonce = fence.nonce
    returning id, seq`,
  // A clock that was set back by more than a moment is caught up with; less stands still until it is made good.
  tick: `
    update clock set offset_ms = offset_ms + greatest(0, clock.wall_ms - moment.now_ms), wall_ms = moment.now_ms
    from (select wall_ms() as now_ms) as moment
    where moment.now_ms > clock.wall_ms or moment.now_ms < clock.wall_ms - 1000`,
  time: `select wall_ms() as "storeTimeMs"`,
  // Without a nonce nothing of the tenure that ends here fits any more.
  release: `
    update partitions set nonce = null, owner = '', lease_until_ms = 0, is_clean = true
    where id = $1 and epoch = $2 and nonce = $3`,
};

export class PostgresPartitions implements Partitions {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async acquire(partition: number, owner: string, leaseMs: number): Promise<AcquireOutcome> {
    return this.#postgres.database.transaction(async (connection) => {
      const row = await lock(connection, partition);
      if (row.nonce !== null && row.leaseUntilMs > row.leaseNowMs) return heldBy(row);
      const next = row.isClean ? { strikes: 0, suspect: null } : { strikes: row.strikes + 1 };
      return this.#begin(connection, partition, { ...row, owner, ...next }, leaseMs);
    });
  }

  async reacquire(fence: Fence, leaseMs: number): Promise<AcquireOutcome> {
    const { partition, incarnation, epoch, nonce } = fence;
    return this.#postgres.database.transaction(async (connection) => {
      const row = await lock(connection, partition);
      const isHolder = incarnation === this.#postgres.incarnation && epoch === row.epoch && nonce === row.nonce;
      return isHolder ? this.#begin(connection, partition, row, leaseMs) : heldBy(row);
    });
  }

  async renew(fences: readonly Fence[], leaseMs: number): Promise<RenewOutcome> {
    const { database, incarnation } = this.#postgres;
    await database.run(SQL.tick);
    // In order of their ids, as commits lock them: an engine has them in the order in which it took them.
    const ours = fences
      .filter((fence) => fence.incarnation === incarnation)
      .toSorted((a, b) => a.partition - b.partition);
    const values = [...columns(ours, "partition", "epoch", "nonce"), leaseMs];
    const held = ours.length === 0 ? [] : await rows<{ id: number; seq: number }>(database, SQL.renew, values);
    const seqs = new Map(held.map(({ id, seq }) => [id, seq]));
    const [time] = await rows<{ storeTimeMs: number }>(database, SQL.time);
    const partitions = fences.map((fence): RenewOutcome["partitions"][number] => {
      const { partition } = fence;
      const seq = ours.includes(fence) ? seqs.get(partition) : undefined;
      return seq === undefined ? { kind: "lost", partition } : { kind: "held", partition, seq };
    });
    return { storeTimeMs: time!.storeTimeMs, partitions };
  }

  async release({ partition, incarnation, epoch, nonce }: Fence): Promise<void> {
    if (incarnation !== this.#postgres.incarnation) return;
    await this.#postgres.database.run(SQL.release, [partition, epoch, nonce]);
  }

  async #begin(connection: Connection, partition: number, row: PartitionRow, leaseMs: number): Promise<AcquireOutcome> {
    const { host, incarnation } = this.#postgres;
    const nonce = host.id();
    const epoch = row.epoch + 1;
    const { owner, seq, lastTimeMs, strikes, suspect } = row;
    const values = [partition, epoch, nonce, owner, leaseMs, strikes, suspect];
    const [begun] = await rows<{ storeTimeMs: number }>(connection, SQL.begin, values);
    const { storeTimeMs } = begun!;
    return {
      kind: "acquired",
      tenure: { partition, incarnation, epoch, nonce, seq, lastTimeMs, storeTimeMs, strikes, suspect },
    };
  }
}

async function lock(connection: Connection, partition: number): Promise<PartitionRow> {
  const [row] = await rows<PartitionRow>(connection, SQL.lock, [partition]);
  if (row === undefined) throw new Error(`there is no partition ${partition}`);
  return row;
}

function heldBy(row: PartitionRow): AcquireOutcome {
  return { kind: "held", by: row.owner };
}
