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
import { HandOver } from "../../store/hand-over.ts";
import { is } from "./by-index.ts";
import { LEASE_NOW_MS } from "./clock.ts";
import { columns, rows } from "./database.ts";
import { Errands } from "./errands.ts";
import { packed, unpacked } from "./encoding.ts";
import { Gathering } from "./gathering.ts";
import { posting } from "./inbox.ts";
import type { Postgres } from "./postgres.ts";
import { purgeSome } from "./purge.ts";
import { wakeKey } from "./wake-ups.ts";

/** Written in a form that no index matches, on purpose: the tasks are looked up by their names, and the index of leases would be walked whole. */
export const IS_LEASED = "coalesce(lease_until_ms, -1) >= 0";

export const SQL = {
  // One queue after the other, no further than it has to, and past what others are just taking. A row that was locked a moment
  // ago is where it was: to look it up by its token once more costs a descent of the index. One that was freed meanwhile by
  // somebody else has moved and is left where it is; whoever has freed it says so, and whoever looks before this ends looks again.
  lease: `
    with picked as materialized (
      select task.place_in_table from unnest($1::text[]) with ordinality as asked (queue, place)
      cross join lateral (
        select ctid as place_in_table from tasks where queue = asked.queue and lease_until_ms is null
        order by priority desc, id limit $2 for update skip locked
      ) as task
      order by place limit $2
    )
    update tasks set lease_until_ms = ${LEASE_NOW_MS} + $3 from picked where tasks.ctid = picked.place_in_table
    returning tasks.token, id, entity, partition, queue, priority, text`,
  // In order of their tokens, as everybody locks tasks, so that nobody locks another out.
  heartbeat: `
    with beat as materialized (
      select * from unnest($1::bigint[], $2::text[], $4::integer[], $5::text[])
        with ordinality as beat (id, token, partition, text, place)
    ), held as materialized (
      select tasks.id, tasks.token from tasks join beat on ${is("tasks.token", "beat.token")} and tasks.id + 0 = beat.id
      where ${IS_LEASED} order by beat.token collate "C" for update of tasks
    ), posted as (
      insert into inbox (partition, text)
      select partition, text from beat where text is not null and (id, token) in (select id, token from held) order by place
    )
    update tasks set lease_until_ms = ${LEASE_NOW_MS} + $3 from held where ${is("tasks.token", "held.token")}
    returning tasks.token, is_revoked as "isRevoked"`,
  // A task settled twice in one call is gone the second time: only the first may post a failure. They are removed in order of
  // their tokens, as everybody locks tasks: what is looked up one by one in the order in which it is asked for is locked in
  // that order too, without a step of its own for it.
  settle: `
    with result as materialized (
      select * from unnest(
        ${unpacked("$2")}, ${unpacked("$3")}, $4::bigint[], $5::integer[], $6::boolean[], $7::boolean[]
      ) with ordinality as result (token, text, id, partition, is_first, is_completion, place)
    ), removed as (
      delete from tasks using (select id, token, place from result where is_first order by token collate "C") as done
      where ${is("tasks.token", "done.token")} and tasks.id + 0 = done.id and ${IS_LEASED} returning done.place
    ), posted as (
      insert into inbox (partition, text)
      select partition, text from result where is_completion or place in (select place from removed)
    )
    select string_agg(place::text, ' ') as held from removed`,
  // Tasks that were leased to somebody who does not know of it. What was withdrawn meanwhile stays leased, to lapse without a word.
  free: `
    with leased as materialized (
      select tasks.token from unnest($1::text[]) as asked (token) join tasks on ${is("tasks.token", "asked.token")}
      where ${IS_LEASED} and not is_revoked order by asked.token collate "C" for update of tasks
    )
    update tasks set lease_until_ms = null from leased where ${is("tasks.token", "leased.token")}`,
  lapse: `
    with lapsed as materialized (
      select token from tasks where lease_until_ms <= ${LEASE_NOW_MS}
      order by lease_until_ms limit $1 for update skip locked
    )
    delete from tasks using lapsed where ${is("tasks.token", "lapsed.token")}
    returning tasks.token, entity, partition, is_revoked as "isRevoked"`,
};

interface HeldRow {
  readonly token: string;
  readonly isRevoked: boolean;
}

interface LapsedRow extends HeldRow {
  readonly entity: string;
  readonly partition: number;
}

export class PostgresTasks implements Tasks {
  readonly handOver: HandOver;
  readonly errands: Errands;
  readonly #postgres: Postgres;
  readonly #settlements: Gathering<Settlement, SettleOutcome>;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
    this.#settlements = new Gathering((results) => this.#settle(results));
    this.handOver = new HandOver({
      host: postgres.host,
      settle: (results) => this.#settlements.ask(results),
      wake: (partitions) => postgres.wakeUps.tellHere([...partitions].map(wakeKey.inbox)),
    });
    this.errands = new Errands({
      host: postgres.host,
      wakeUps: postgres.wakeUps,
      seats: postgres.seats,
      settle: (results) => this.handOver.settle(results),
      free: (tasks) => this.#free(tasks),
    });
  }

  async lease(request: LeaseRequest): Promise<readonly LeasedTask[]> {
    if (request.max <= 0) return [];
    const { wakeUps, seats } = this.#postgres;
    const keys = request.queues.map(wakeKey.queue);
    const seatKey = wakeKey.seat(request.worker);
    const seat = seats.take(request, () => wakeUps.tellHere([seatKey]));
    const take = (): Promise<readonly LeasedTask[]> =>
      wakeUps.look(
        keys,
        () => this.#take(request),
        (tasks) => (tasks.length < request.max ? keys : []),
      );
    // A store that is closed meanwhile hands out nothing: nobody may be there to take it.
    const isLate = wakeUps.isClosed;
    const isEnding = (): boolean => wakeUps.isClosed && !isLate;
    const attempt = async (): Promise<readonly LeasedTask[] | undefined> => {
      if (isEnding()) return undefined;
      const given = await seat.rise();
      const tasks = given.length > 0 ? given : await take();
      if (tasks.length > 0) return tasks;
      seat.wait();
      return undefined;
    };
    const quietMs = wakeUps.quietMs(keys);
    if (quietMs > 0) seat.wait();
    try {
      const found = await wakeUps.until([...keys, seatKey], request.waitMs, attempt, quietMs);
      return found ?? (isEnding() ? [] : await seat.rise());
    } finally {
      seats.leave(seat);
    }
  }

  async heartbeat(beats: readonly Heartbeat[], leaseMs: number): Promise<HeartbeatOutcome> {
    if (beats.length === 0) return { lost: [], cancelled: [] };
    const { database, wakeUps } = this.#postgres;
    const tokens = beats.map(({ token }) => token);
    const refs = beats.map(({ ref }) => idOf(ref));
    const partitions = beats.map(({ started }) => started?.partition ?? null);
    const texts = beats.map(({ started }) => started?.text ?? null);
    const held = await rows<HeldRow>(database, SQL.heartbeat, [refs, tokens, leaseMs, partitions, texts]);
    const isHeld = new Map(held.map((task) => [task.token, task]));
    wakeUps.announce(partitions.filter((partition) => partition !== null).map(wakeKey.inbox));
    return {
      lost: tokens.filter((token) => !isHeld.has(token)),
      cancelled: tokens.filter((token) => isHeld.get(token)?.isRevoked === true),
    };
  }

  async settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    if (results.length === 0) return [];
    return (await this.errands.settle(results)) ?? this.handOver.settle(results);
  }

  /** Also one step of what was purged: an engine comes by once a second. */
  async lapse(limit: number): Promise<number> {
    const { database, wakeUps } = this.#postgres;
    const lapsed = await database.transaction(async (connection) => {
      const lapsed = await rows<LapsedRow>(connection, SQL.lapse, [limit]);
      // Of a revoked one there is nobody to tell.
      const lost = lapsed.filter(({ isRevoked }) => !isRevoked).map(lostMessage);
      if (lost.length > 0) {
        const { sql, values } = posting(lost);
        await connection.run(sql, values);
      }
      return lapsed;
    });
    wakeUps.announce(lapsed.map(({ partition }) => wakeKey.inbox(partition)));
    // Last: tasks that are lost come back also while rows cannot be removed.
    await purgeSome(database);
    return lapsed.length;
  }

  /** Nothing to do: no restart drops a task here. */
  async restore(_tasks: readonly Task[]): Promise<void> {}

  async #take({ queues, max, leaseMs }: LeaseRequest): Promise<readonly LeasedTask[]> {
    const { database } = this.#postgres;
    const asked = [...new Set(queues)];
    const tasks = await rows<Task & { readonly id: number }>(database, SQL.lease, [asked, max, leaseMs]);
    const places = new Map(asked.map((queue, place) => [queue, place]));
    // An update answers its rows in any order.
    const inOrder = tasks.toSorted(
      (a, b) => places.get(a.queue)! - places.get(b.queue)! || b.priority - a.priority || a.id - b.id,
    );
    return inOrder.map(({ id, ...task }) => ({ ...task, ref: String(id) }));
  }

  async #free(tasks: readonly LeasedTask[]): Promise<void> {
    const { database, wakeUps } = this.#postgres;
    await database.run(SQL.free, [tasks.map(({ token }) => token)]);
    wakeUps.announce(new Set(tasks.map(({ queue }) => wakeKey.queue(queue))));
  }

  async #settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    const { database, wakeUps } = this.#postgres;
    const firsts = firstOfEach(results);
    const values = [
      ...packed(
        results.map(({ token }) => token),
        results.map(({ text }) => text),
      ),
      results.map(({ ref }) => idOf(ref)),
      ...columns(results, "partition"),
      results.map((result) => firsts.has(result)),
      results.map(({ outcome }) => outcome === "completed"),
    ];
    const keys = new Set(results.map(({ partition }) => wakeKey.inbox(partition)));
    const hint = wakeUps.behind(keys);
    const { rows: found } = await database.run(SQL.settle, values, hint);
    if (hint === undefined) wakeUps.announce(keys);
    else wakeUps.announceHere(keys);
    const [{ held }] = found as [{ readonly held: string | null }];
    // Places are counted from one.
    const settled = new Set(held?.split(" ").map((place) => results[Number(place) - 1]));
    return results.map((result) => {
      if (settled.has(result)) return "settled";
      return result.outcome === "completed" ? "posted" : "stale";
    });
  }
}

interface Posted {
  readonly partition: number;
  readonly text: string;
}

function lostMessage({ token, entity, partition }: LapsedRow): Posted {
  return { partition, text: taskMessage({ entity, token }, "store", { kind: "deliveryLost", token }) };
}

function firstOfEach(results: readonly Settlement[]): ReadonlySet<Settlement> {
  const firsts = new Map<string, Settlement>();
  for (const result of results) {
    const key = keyOf(result.ref, result.token);
    if (!firsts.has(key)) firsts.set(key, result);
  }
  return new Set(firsts.values());
}

function keyOf(ref: string, token: string): string {
  return `${ref} ${token}`;
}

/** No row has the number −1: a name we did not give names nothing. */
export function idOf(ref: string): number {
  const id = Number(ref);
  return Number.isSafeInteger(id) ? id : -1;
}
