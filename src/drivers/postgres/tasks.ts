import type { QueryResult } from "pg";
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
import { is, IS_LEASED } from "./by-index.ts";
import { LEASE_NOW_MS } from "./clock.ts";
import { columns, rows, type Statement } from "./database.ts";
import { Errands } from "./errands.ts";
import { packed, unpacked } from "./encoding.ts";
import { Gathering } from "./gathering.ts";
import { posting } from "./inbox.ts";
import {
  MOST_IN_PACK,
  type PackRow,
  packsNamed,
  SQL as PACKS,
  type SettledPack,
  tasksIn,
  textsIn,
  wholePacks,
} from "./packs.ts";
import type { Postgres } from "./postgres.ts";
import { purgeSome } from "./purge.ts";
import { wakeKey } from "./wake-ups.ts";

export const SQL = {
  // One queue after the other, no further than it has to, and past what others are just taking. A row that was locked a moment
  // ago is where it was: to look it up by its token once more costs a descent of the index. One that was freed meanwhile by
  // somebody else has moved and is left where it is; whoever has freed it says so, and whoever looks before this ends looks again.
  // Packs stand in the same line. The first that has too much in it for whoever asks ends it: its name is answered alone.
  lease: `
    with picked as materialized (
      select task.* from unnest($1::text[]) with ordinality as asked (queue, place)
      cross join lateral (
        select ctid as place_in_table, asked.place, priority, id, 1 as size, null as pack
        from tasks where queue = asked.queue and lease_until_ms is null
        order by priority desc, id limit $2 for update skip locked
      ) as task
      order by place limit $2
    ), picked_packs as materialized (
      select pack.* from unnest($1::text[]) with ordinality as asked (queue, place)
      cross join lateral (
        select ctid as place_in_table, asked.place, priority, id, size, name as pack
        from packs where queue = asked.queue and lease_until_ms is null
        order by priority desc, id limit $4 for update skip locked
      ) as pack
      order by place limit $4
    ), last_pack as materialized (
      -- Behind it there may be others, before the tasks that come next.
      select place, priority, id from picked_packs where (select count(*) from picked_packs) = $4
      order by place desc, priority, id desc limit 1
    ), line as materialized (
      select place_in_table, pack, sum(size) over (order by place, priority desc, id) as so_far
      from (select * from picked union all select * from picked_packs) as standing
      where not exists (
        select from last_pack where (standing.place, -standing.priority, standing.id) > (place, -last_pack.priority, last_pack.id)
      )
    ), leased as (
      update tasks set lease_until_ms = ${LEASE_NOW_MS} + $3 from line
      where pack is null and so_far <= $2 and tasks.ctid = line.place_in_table
      returning tasks.token, id, entity, partition, queue, priority, text
    ), leased_packs as (
      update packs set lease_until_ms = ${LEASE_NOW_MS} + $3 from line
      where pack is not null and so_far <= $2 and packs.ctid = line.place_in_table
      returning packs.name, id, partition, queue, priority, size, texts
    )
    select token, id, entity, partition, queue, priority, 0 as size, text from leased
    union all
    select name, id, '', partition, queue, priority, size, texts from leased_packs
    union all
    (select coalesce(pack, ''), 0, '', 0, '', 0, -1, '' from line where so_far > $2 order by so_far limit 1)`,
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

/** What a lease finds: a task, a pack, or the name of what was left behind. */
interface FoundRow {
  readonly token: string;
  readonly id: number;
  readonly entity: string;
  readonly partition: number;
  readonly queue: string;
  readonly priority: number;
  /** Of a pack; 0 of a task, and −1 where the line goes on. */
  readonly size: number;
  readonly text: string;
}

/** What one look has found, and whether there is more. */
interface Taken {
  readonly tasks: readonly LeasedTask[];
  readonly isMore: boolean;
}

/** So many packs are remembered that are none any more. */
const MOST_UNPACKED = 1000;

export class PostgresTasks implements Tasks {
  readonly handOver: HandOver;
  readonly errands: Errands;
  readonly #postgres: Postgres;
  readonly #unpacked = new Set<string>();
  #lastSmall: Promise<unknown> = Promise.resolve();
  /** How many tasks a pack had of late, so that few more packs are locked than are taken. */
  #packSize = 8;
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
    const take = async (): Promise<readonly LeasedTask[]> => {
      const seen = ({ tasks, isMore }: Taken): readonly string[] => (isMore || tasks.length >= request.max ? [] : keys);
      const { tasks } = await wakeUps.look(keys, () => this.#take(request), seen);
      return tasks;
    };
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
    await this.#unpack(packsNamed(beats.map(({ ref }) => ref)));
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
      const alone = await rows<LapsedRow>(connection, SQL.lapse, [limit]);
      const packs = await rows<LapsedPackRow>(connection, PACKS.lapsePacks, [Math.ceil(limit / MOST_IN_PACK)]);
      const lapsed = [...alone, ...packs.flatMap(lapsedIn)];
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

  /**
   * Whoever has room for less than a pack may have to unpack one, and who looks meanwhile finds nothing: so in a process such looks come
   * one after the other. Other processes are told.
   */
  async #take(request: LeaseRequest): Promise<Taken> {
    if (request.max >= MOST_IN_PACK) return this.#takeNow(request);
    const taking = this.#lastSmall.then(() => this.#takeNow(request));
    this.#lastSmall = taking.catch(() => {});
    return taking;
  }

  async #takeNow(request: LeaseRequest): Promise<Taken> {
    const { max, leaseMs } = request;
    const asked = [...new Set(request.queues)];
    const mostPacks = Math.ceil((max / this.#packSize) * 1.25);
    const { database } = this.#postgres;
    const found = await rows<FoundRow>(database, SQL.lease, [asked, max, leaseMs, mostPacks]);
    const places = new Map(asked.map((queue, place) => [queue, place]));
    // An update answers its rows in any order.
    const inOrder = found
      .filter(({ size }) => size >= 0)
      .toSorted((a, b) => places.get(a.queue)! - places.get(b.queue)! || b.priority - a.priority || a.id - b.id);
    const tasks = inOrder.flatMap((row) => (row.size === 0 ? alone(row) : tasksIn(packIn(row))));
    const packs = inOrder.filter(({ size }) => size > 0);
    if (packs.length > 0) this.#packSize = packs.reduce((sum, { size }) => sum + size, 0) / packs.length;
    const left = found.find(({ size }) => size < 0);
    if (left === undefined) return { tasks, isMore: tasks.length < max && packs.length >= mostPacks };
    if (tasks.length > 0 || left.token === "") {
      // Whoever looked meanwhile has not found what was locked here and is left.
      this.#postgres.wakeUps.announce(asked.map(wakeKey.queue));
      return { tasks, isMore: true };
    }
    // Nobody waits for room for a whole pack.
    await this.#unpack([left.token]);
    return this.#takeNow(request);
  }

  /** Of these packs those that were not unpacked here before. */
  #packed(names: readonly string[]): readonly string[] {
    return names.filter((name) => !this.#unpacked.has(name));
  }

  /** These are no packs any more, and some of their tasks are in these queues. */
  #noteUnpacked(names: readonly string[], queues: readonly { readonly queue: string }[]): void {
    if (this.#unpacked.size > MOST_UNPACKED) this.#unpacked.clear();
    for (const name of names) this.#unpacked.add(name);
    // Whoever looked meanwhile has found neither the pack nor its tasks.
    this.#postgres.wakeUps.announce(queues.map(({ queue }) => wakeKey.queue(queue)));
  }

  async #unpack(names: readonly string[]): Promise<void> {
    const packed = this.#packed(names);
    if (packed.length === 0) return;
    const queues = await rows<{ queue: string }>(this.#postgres.database, PACKS.unpack, [packed]);
    this.#noteUnpacked(packed, queues);
  }

  async #free(tasks: readonly LeasedTask[]): Promise<void> {
    const { database, wakeUps } = this.#postgres;
    await this.#unpack(packsNamed(tasks.map(({ ref }) => ref)));
    await database.run(SQL.free, [tasks.map(({ token }) => token)]);
    wakeUps.announce(new Set(tasks.map(({ queue }) => wakeKey.queue(queue))));
  }

  /**
   * All in one transaction: whoever is told that his results failed may send them again. What was taken for a pack and is none any more
   * is settled one by one behind it.
   */
  async #settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    const packs = wholePacks(results, this.#postgres.fleet);
    if (packs.length === 0) return this.#settleEach(results);
    const isPacked = new Set(packs.flatMap((pack) => pack.results));
    const alone = results.filter((result) => !isPacked.has(result));
    const unpacking = this.#packed(packsNamed(alone.map(({ ref }) => ref)));
    const names = packs.map(({ name }) => name);
    const answers = await this.#run(
      [
        ...(unpacking.length > 0
          ? [
              { sql: PACKS.lockPacks, values: [[...names, ...unpacking]] },
              { sql: PACKS.unpack, values: [unpacking] },
            ]
          : []),
        settlingPacks(packs),
        ...(alone.length > 0 ? [settling(alone)] : []),
      ],
      results,
    );
    if (unpacking.length > 0) this.#noteUnpacked(unpacking, answers[1]!.rows as readonly { readonly queue: string }[]);
    const last = answers.length - 1;
    const heldPacks = placesIn(answers[alone.length > 0 ? last - 1 : last]!);
    const outcomes = new Map(alone.length > 0 ? outcomesOf(alone, answers[last]!) : []);
    const gone = packs.filter((_, i) => !heldPacks.has(i + 1)).flatMap((pack) => pack.results);
    if (gone.length > 0) {
      const late = await this.#settleEach(gone);
      for (const [i, result] of gone.entries()) outcomes.set(result, late[i]!);
    }
    return results.map((result) => outcomes.get(result) ?? "settled");
  }

  async #settleEach(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    await this.#unpack(packsNamed(results.map(({ ref }) => ref)));
    const [answer] = await this.#run([settling(results)], results);
    return outcomesOf(results, answer!).map(([, outcome]) => outcome);
  }

  /** With a word to those who read the inboxes. */
  async #run(statements: readonly Statement[], results: readonly Settlement[]): Promise<readonly QueryResult[]> {
    const { database, wakeUps } = this.#postgres;
    const keys = new Set(results.map(({ partition }) => wakeKey.inbox(partition)));
    const hint = wakeUps.behind(keys);
    const [first] = statements;
    const answers =
      statements.length === 1
        ? [await database.run(first!.sql, first!.values, hint)]
        : await database.atOnce(statements, hint);
    if (hint === undefined) wakeUps.announce(keys);
    else wakeUps.announceHere(keys);
    return answers;
  }
}

function settlingPacks(packs: readonly SettledPack[]): Statement {
  const texts = packed(
    packs.map(({ name }) => name),
    packs.map(({ tokens }) => tokens),
    packs.map(({ texts }) => texts),
  );
  return { sql: PACKS.settlePacks, values: [...texts, ...columns(packs, "partition", "size")] };
}

function settling(results: readonly Settlement[]): Statement {
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
  return { sql: SQL.settle, values };
}

/** Counted from one. */
function placesIn({ rows: found }: QueryResult): ReadonlySet<number> {
  const [{ held }] = found as [{ readonly held: string | null }];
  return new Set(held?.split(" ").map(Number));
}

function outcomesOf(
  results: readonly Settlement[],
  answer: QueryResult,
): readonly (readonly [Settlement, SettleOutcome])[] {
  const held = placesIn(answer);
  const settled = new Set(results.filter((_, i) => held.has(i + 1)));
  return results.map((result) => {
    if (settled.has(result)) return [result, "settled"];
    return [result, result.outcome === "completed" ? "posted" : "stale"];
  });
}

interface Posted {
  readonly partition: number;
  readonly text: string;
}

interface LapsedPackRow {
  readonly partition: number;
  readonly size: number;
  readonly texts: string;
}

function lapsedIn({ partition, size, texts }: LapsedPackRow): readonly LapsedRow[] {
  const parts = textsIn(texts);
  return parts.slice(0, size).map((token, i) => ({ token, entity: parts[size + i]!, partition, isRevoked: false }));
}

function alone({ token, id, entity, partition, queue, priority, text }: FoundRow): LeasedTask {
  return { token, entity, partition, queue, priority, text, ref: String(id) };
}

function packIn({ token: name, text: texts, id, partition, queue, priority, size }: FoundRow): PackRow {
  return { name, texts, id, partition, queue, priority, size };
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
  // Of one that came in a pack there is more behind it.
  const id = Number(ref.split("/", 1)[0]);
  return Number.isSafeInteger(id) ? id : -1;
}
