import type { CommitBatch, LeasedTask, Settlement, Task } from "../../store/contract.ts";
import { is, IS_LEASED } from "./by-index.ts";
import { LEASE_NOW_MS, WALL_NOW_MS } from "./clock.ts";
import { mayBeText, unpacked } from "./encoding.ts";
import type { Fleet } from "./fleet.ts";
import type { Seated } from "./seats.ts";

/**
 * Tasks that one commit sends out together are one row, a *pack*: it is leased whole, and removed whole when all of its results come
 * together, as they do where steps take no time. Whoever needs a single one of them, to keep its lease, to withdraw it or because
 * its result comes alone, unpacks it first: then they are rows of `tasks` as if they had always been.
 */
export interface Pack {
  /** Drawn by the engine, so that a commit that is sent again has the same. */
  readonly name: string;
  readonly partition: number;
  readonly queue: string;
  readonly priority: number;
  readonly size: number;
  /** Of those that are leased as they are written. */
  readonly leaseMs: number | null;
  /** Tokens, then entities, then texts, each behind a separator. */
  readonly texts: string;
  readonly tasks: readonly Task[];
}

/** Fewer are cheaper by themselves. */
const FEWEST = 4;
/** Ids of tasks are so far apart: those of a pack take the numbers up to the next. `migrations.ts` says so too. */
export const MOST_IN_PACK = 32;
/** A row that is not stored in pieces fits into a page with all that is around it. */
const MAX_BYTES = 7_500;
/** More of a result than this is not copied together. */
const MAX_RESULT_CHARS = 32 * 1024;

/** What separates texts in a row. Another than what separates the parameters of a statement, as these are in them. */
const SEPARATOR = `\u001d${"\u001c".repeat(15)}`;
const PARTS = `(string_to_array(packs.texts, '${SEPARATOR}'))[2:]`;

/** Rows of `tasks` of what was taken out of `packs` before. Tells in which queues somebody may find them. */
function spread(gone: string): string {
  return `
    spread as (
      insert into tasks (token, id, entity, partition, queue, priority, queued_at_ms, lease_until_ms, text)
      overriding system value
      select parts[place], id + place - 1, parts[size + place], partition, queue, priority, queued_at_ms, lease_until_ms,
        parts[2 * size + place]
      from ${gone} cross join lateral generate_series(1, size) as place
      -- One that is there by itself already is the same.
      on conflict (token) do nothing
    )
    select distinct queue from ${gone} where lease_until_ms is null`;
}

export const SQL = {
  // In the order given: what is unnested comes in that order, and nothing else is joined to it.
  addPacks: `
    with added as (
      insert into packs (name, partition, queue, priority, size, queued_at_ms, lease_until_ms, texts)
      select name, partition, queue, priority, size, ${WALL_NOW_MS}, ${LEASE_NOW_MS} + lease_ms, texts
      from unnest(
        ${unpacked("$2")}, ${unpacked("$3")}, ${unpacked("$4")}, $5::integer[], $6::integer[], $7::integer[], $8::bigint[]
      ) as pack (name, queue, texts, partition, priority, size, lease_ms)
      returning name, id, lease_until_ms
    )
    select name, id from added where lease_until_ms is not null`,
  // Packs are locked in order of their names, and before any task.
  unpack: `
    with gone as materialized (
      delete from packs using (select name from unnest($1::text[]) as asked (name) order by name collate "C") as asked
      where ${is("packs.name", "asked.name")}
      returning id, partition, queue, priority, size, queued_at_ms, lease_until_ms, ${PARTS} as parts
    ), ${spread("gone")}`,
  // The same for those with any of these tokens too.
  unpackAnyOf: `
    with named as materialized (
      select pack.name from unnest($1::integer[]) as asked (partition) cross join lateral (
        select name from packs where ${is("packs.partition", "asked.partition")} and (${PARTS})[:size] && $2::text[]
      ) as pack
      union select unnest($3::text[])
    ), gone as materialized (
      delete from packs using (select name from named order by name collate "C") as named
      where ${is("packs.name", "named.name")}
      returning id, partition, queue, priority, size, queued_at_ms, lease_until_ms, ${PARTS} as parts
    ), ${spread("gone")}`,
  // For statements that lock some of them each.
  lockPacks: `
    select from unnest($1::text[]) as asked (name)
    join packs on ${is("packs.name", "asked.name")} order by asked.name collate "C" for update of packs`,
  // All results of a pack are one message. What is not there was unpacked by somebody, or is lost: each is looked at by itself.
  settlePacks: `
    with result as materialized (
      select * from unnest(${unpacked("$2")}, ${unpacked("$3")}, ${unpacked("$4")}, $5::integer[], $6::integer[])
        with ordinality as result (name, tokens, texts, partition, size, place)
    ), removed as (
      delete from packs using (select name, tokens, size, place from result order by name collate "C") as done
      where ${is("packs.name", "done.name")} and ${IS_LEASED} and packs.size = done.size
        and starts_with(packs.texts, done.tokens)
      returning done.place
    ), posted as (
      insert into inbox (partition, text, size)
      select partition, texts, size from result where place in (select place from removed) order by place
    )
    select string_agg(place::text, ' ') as held from removed`,
  freePacks: `
    with leased as materialized (
      select packs.name from unnest($1::text[]) as asked (name) join packs on ${is("packs.name", "asked.name")}
      where ${IS_LEASED} order by asked.name collate "C" for update of packs
    )
    update packs set lease_until_ms = null from leased where ${is("packs.name", "leased.name")}`,
  lapsePacks: `
    with lapsed as materialized (
      select name from packs where lease_until_ms <= ${LEASE_NOW_MS}
      order by lease_until_ms limit $1 for update skip locked
    )
    delete from packs using lapsed where ${is("packs.name", "lapsed.name")} returning partition, size, texts`,
};

/** What of these batches goes out in packs. The rest goes by itself. */
export function packsOf(
  batches: readonly CommitBatch[],
  seated: ReadonlyMap<string, Seated>,
  fleet: Pick<Fleet, "knowsPacks">,
): readonly Pack[] {
  if (!batches.some(({ tasks }) => tasks.length >= FEWEST) || !fleet.knowsPacks) return [];
  return batches.flatMap((batch) => {
    // What a batch both sends out and withdraws has to be found by its token.
    const tasks =
      batch.revoke.length === 0 ? batch.tasks : batch.tasks.filter(({ token }) => !batch.revoke.includes(token));
    if (tasks.length < FEWEST) return [];
    return loadsOf(tasks, seated)
      .filter((load) => load.tasks.length >= FEWEST)
      .flatMap((load, i) => packOf(load, `${batch.id}/${i}`) ?? []);
  });
}

/** Tasks that may travel together. */
interface Load {
  readonly queue: string;
  readonly priority: number;
  readonly seated: Seated | undefined;
  readonly tasks: Task[];
  chars: number;
}

function loadsOf(tasks: readonly Task[], seated: ReadonlyMap<string, Seated>): readonly Load[] {
  const loads: Load[] = [];
  const open = new Map<string, Load[]>();
  for (const task of tasks) {
    const place = seated.get(task.token);
    // Workers of other processes are given single tasks, and hand them back one by one.
    if (place?.seat.isGuest === true) continue;
    const ofQueue = open.get(task.queue) ?? [];
    open.set(task.queue, ofQueue);
    const chars = task.token.length + task.entity.length + task.text.length + 3 * SEPARATOR.length;
    const at = ofQueue.findIndex(({ priority, seated }) => priority === task.priority && seated?.seat === place?.seat);
    let load = ofQueue[at];
    if (load === undefined || load.tasks.length === MOST_IN_PACK || load.chars + chars > MAX_BYTES) {
      load = { queue: task.queue, priority: task.priority, seated: place, tasks: [], chars: 0 };
      loads.push(load);
      ofQueue.splice(at === -1 ? ofQueue.length : at, 1, load);
    }
    load.tasks.push(task);
    load.chars += chars;
  }
  return loads;
}

/** Undefined: it is too long after all, or has a separator of its own. */
function packOf({ queue, priority, seated, tasks }: Load, name: string): Pack | undefined {
  const columns = [tasks.map(({ token }) => token), tasks.map(({ entity }) => entity), tasks.map(({ text }) => text)];
  const texts = joined(columns.flat());
  if (texts === undefined || Buffer.byteLength(texts) > MAX_BYTES) return undefined;
  const { partition } = tasks[0]!;
  return { name, partition, queue, priority, size: tasks.length, leaseMs: seated?.leaseMs ?? null, texts, tasks };
}

function joined(texts: readonly string[]): string | undefined {
  if (texts.some((text) => text.includes(SEPARATOR))) return undefined;
  return SEPARATOR + texts.join(SEPARATOR);
}

/** Texts that one row holds. */
export function textsIn(row: string): readonly string[] {
  return row.split(SEPARATOR).slice(1);
}

export interface PackRow {
  readonly name: string;
  readonly id: number;
  readonly partition: number;
  readonly queue: string;
  readonly priority: number;
  readonly size: number;
  readonly texts: string;
}

export function tasksIn({ name, id, partition, queue, priority, size, texts }: PackRow): readonly LeasedTask[] {
  const parts = textsIn(texts);
  return parts.slice(0, size).map((token, i) => {
    const ref = refOf(name, id, i, size);
    return { token, entity: parts[size + i]!, partition, queue, priority, text: parts[2 * size + i]!, ref };
  });
}

/** The name of a task that was leased as part of a pack: its number among the tasks, should it be one, and its place in the pack. */
export function refOf(name: string, id: number, i: number, size: number): string {
  return `${id + i}/${i}/${size}/${name}`;
}

interface PlaceInPack {
  readonly name: string;
  readonly i: number;
  readonly size: number;
}

function placeOf(ref: string): PlaceInPack | undefined {
  const found = mayBeText(ref) ? /^\d+\/(\d+)\/(\d+)\/(.*)$/.exec(ref) : null;
  return found === null ? undefined : { name: found[3]!, i: Number(found[1]), size: Number(found[2]) };
}

/** The packs that these are of, or were. */
export function packsNamed(refs: readonly string[]): readonly string[] {
  return [...new Set(refs.flatMap((ref) => placeOf(ref)?.name ?? []))];
}

/** All results of a pack, as one row of an inbox has them. */
export interface SettledPack {
  readonly name: string;
  readonly partition: number;
  readonly size: number;
  /** As its row begins. */
  readonly tokens: string;
  readonly texts: string;
  readonly results: readonly Settlement[];
}

/** What came of a pack, by place. */
interface Came {
  readonly size: number;
  readonly results: Map<number, Settlement>;
}

/** Of these results those that end a whole pack. */
export function wholePacks(results: readonly Settlement[], fleet: Pick<Fleet, "knowsPacks">): readonly SettledPack[] {
  if (results.length < FEWEST || !fleet.knowsPacks) return [];
  const found = new Map<string, Came>();
  for (const result of results) {
    const place = placeOf(result.ref);
    if (place === undefined) continue;
    const pack = found.get(place.name) ?? { size: place.size, results: new Map() };
    found.set(place.name, pack);
    // One that comes twice is looked at by itself the second time.
    if (!pack.results.has(place.i)) pack.results.set(place.i, result);
  }
  return [...found].flatMap(([name, pack]) => {
    if (pack.results.size < pack.size) return [];
    const all = [...pack.results.values()];
    const chars = all.reduce((sum, { text }) => sum + text.length, 0);
    const texts = chars > MAX_RESULT_CHARS ? undefined : joined(all.map(({ text }) => text));
    const inOrder = Array.from({ length: pack.size }, (_, i) => pack.results.get(i)?.token ?? "");
    const tokens = joined(inOrder);
    if (texts === undefined || tokens === undefined) return [];
    const { partition } = all[0]!;
    return [{ name, partition, size: pack.size, tokens: tokens + SEPARATOR, texts, results: all }];
  });
}
