import { taskMessage } from "../../core/message.ts";
import type {
  Heartbeat,
  HeartbeatOutcome,
  LeasedTask,
  LeaseRequest,
  Settlement,
  SettleOutcome,
  Task,
  Tasks,
} from "../../store/contract.ts";
import { post } from "./inbox.ts";
import { columns, type Postgres, rows, transaction } from "./postgres.ts";
import { wakeKey } from "./wake-ups.ts";

const SQL = {
  queuesWithTasks: `
    select name from unnest($1::text[]) with ordinality as asked (name, place)
    where exists (select from tasks where queue = asked.name and lease_until_ms is null) order by place`,
  lease: `
    with picked as materialized (
      select id from tasks where queue = $1 and lease_until_ms is null
      order by priority desc, id limit $2 for update skip locked
    )
    update tasks set lease_until_ms = (select lease_ms()) + $3 from picked where tasks.id = picked.id
    returning tasks.id, token, entity, partition, queue, priority, text`,
  heartbeat: `
    with held as materialized (
      select tasks.id from tasks join unnest($1::bigint[], $2::text[]) as beat (id, token)
        on tasks.id = beat.id and tasks.token = beat.token
      where lease_until_ms is not null order by tasks.id for update of tasks
    )
    update tasks set lease_until_ms = (select lease_ms()) + $3 from held where tasks.id = held.id
    returning token, is_revoked as "isRevoked"`,
  // A task settled twice in one call is gone the second time: only the first may post a failure.
  settle: `
    with result as materialized (
      select * from unnest($1::bigint[], $2::text[], $3::integer[], $4::text[], $5::boolean[], $6::boolean[])
        with ordinality as result (id, token, partition, text, is_first, is_completion, place)
    ), held as materialized (
      select tasks.id from tasks join result on tasks.id = result.id and tasks.token = result.token
      where lease_until_ms is not null and is_first order by tasks.id for update of tasks
    ), removed as (
      delete from tasks using held where tasks.id = held.id
    ), posted as (
      insert into inbox (partition, text)
      select partition, text from result
      where is_completion or (is_first and id in (select id from held)) order by place
    )
    select id from held`,
  lapse: `
    with lapsed as materialized (
      select id from tasks where lease_until_ms <= (select lease_ms())
      order by lease_until_ms limit $1 for update skip locked
    )
    delete from tasks using lapsed where tasks.id = lapsed.id
    returning token, entity, partition, is_revoked as "isRevoked"`,
};

interface HeldRow {
  readonly token: string;
  readonly entity: string;
  readonly partition: number;
  readonly isRevoked: boolean;
}

export class PostgresTasks implements Tasks {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async lease(request: LeaseRequest): Promise<readonly LeasedTask[]> {
    if (request.max <= 0) return [];
    const found = await this.#postgres.wakeUps.until(request.queues.map(wakeKey.queue), request.waitMs, async () => {
      const tasks = await this.#take(request);
      return tasks.length > 0 ? tasks : undefined;
    });
    return found ?? [];
  }

  async heartbeat(beats: readonly Heartbeat[], leaseMs: number): Promise<HeartbeatOutcome> {
    if (beats.length === 0) return { lost: [], cancelled: [] };
    const { pool, wakeUps } = this.#postgres;
    const values = [beats.map(({ ref }) => idOf(ref)), ...columns(beats, "token"), leaseMs];
    const { isHeld, started } = await transaction(pool, async (connection) => {
      const held = await rows<Pick<HeldRow, "token" | "isRevoked">>(connection, SQL.heartbeat, values);
      const isHeld = new Map(held.map((task) => [task.token, task]));
      const started = beats.flatMap(({ token, started }) =>
        started !== undefined && isHeld.has(token) ? [started] : [],
      );
      await post(connection, started);
      return { isHeld, started };
    });
    wakeUps.announce(started.map(({ partition }) => wakeKey.inbox(partition)));
    const tokens = beats.map(({ token }) => token);
    return {
      lost: tokens.filter((token) => !isHeld.has(token)),
      cancelled: tokens.filter((token) => isHeld.get(token)?.isRevoked === true),
    };
  }

  async settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    if (results.length === 0) return [];
    const { pool, wakeUps } = this.#postgres;
    const firsts = firstOfEach(results);
    const values = [
      results.map(({ ref }) => idOf(ref)),
      ...columns(results, "token", "partition", "text"),
      results.map((result) => firsts.has(result)),
      results.map(({ outcome }) => outcome === "completed"),
    ];
    const held = new Set((await rows<{ id: number }>(pool, SQL.settle, values)).map(({ id }) => id));
    wakeUps.announce(results.map(({ partition }) => wakeKey.inbox(partition)));
    return results.map((result) => {
      if (firsts.has(result) && held.has(idOf(result.ref))) return "settled";
      return result.outcome === "completed" ? "posted" : "stale";
    });
  }

  async lapse(limit: number): Promise<number> {
    const { pool, wakeUps } = this.#postgres;
    const lapsed = await transaction(pool, async (connection) => {
      const lapsed = await rows<HeldRow>(connection, SQL.lapse, [limit]);
      // Of a revoked one there is nobody to tell.
      const lost = lapsed.filter(({ isRevoked }) => !isRevoked).map(lostMessage);
      await post(connection, lost);
      return lapsed;
    });
    wakeUps.announce(lapsed.map(({ partition }) => wakeKey.inbox(partition)));
    return lapsed.length;
  }

  /** Nothing to do: no restart drops a task here. */
  async restore(_tasks: readonly Task[]): Promise<void> {}

  async #take({ queues, max, leaseMs }: LeaseRequest): Promise<readonly LeasedTask[]> {
    const { pool } = this.#postgres;
    const taken: LeasedTask[] = [];
    for (const { name } of await rows<{ name: string }>(pool, SQL.queuesWithTasks, [queues])) {
      if (taken.length >= max) break;
      const values = [name, max - taken.length, leaseMs];
      const tasks = await rows<Task & { readonly id: number }>(pool, SQL.lease, values);
      // An update answers its rows in any order.
      const inOrder = tasks.toSorted((a, b) => b.priority - a.priority || a.id - b.id);
      taken.push(...inOrder.map(({ id, ...task }) => ({ ...task, ref: String(id) })));
    }
    return taken;
  }
}

interface Posted {
  readonly partition: number;
  readonly text: string;
}

function lostMessage({ token, entity, partition }: HeldRow): Posted {
  return { partition, text: taskMessage({ entity, token }, "store", { kind: "deliveryLost", token }) };
}

function firstOfEach(results: readonly Settlement[]): ReadonlySet<Settlement> {
  const firsts = new Map<string, Settlement>();
  for (const result of results) {
    const key = JSON.stringify([result.ref, result.token]);
    if (!firsts.has(key)) firsts.set(key, result);
  }
  return new Set(firsts.values());
}

/** No row has the number −1: a name we did not give names nothing. */
function idOf(ref: string): number {
  const id = Number(ref);
  return Number.isSafeInteger(id) ? id : -1;
}
