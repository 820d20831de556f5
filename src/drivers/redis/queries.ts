import type {
  Counts,
  DeadLetter,
  DeadLetterQuery,
  EntityKey,
  Header,
  HeaderClass,
  HeaderQuery,
  Listed,
  ListingQuery,
  Page,
  PageQuery,
  PublishedWorkflow,
  Queries,
} from "../../store/contract.ts";
import { namedPageOf, pageOf, parseCursor, type PlaceInTime } from "../../store/page.ts";
import { fillOf } from "./memory-use.ts";
import { newestOf, placesFrom } from "./places.ts";
import { keyOf, look, type Redis, run } from "./redis.ts";
import { scripts } from "./scripts.ts";

const CLASSES: readonly HeaderClass[] = ["open", "endedWell", "endedBadly"];

type Places = AsyncGenerator<readonly PlaceInTime[], void>;

export class RedisQueries implements Queries {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async headers(query: HeaderQuery): Promise<Page<Header>> {
    const classes = query.class === undefined ? CLASSES : [query.class];
    const start = startOf(query);
    const places = newestOf(classes.map((one) => placesFrom(this.#redis, `headers:${one}`, "latest", start)));
    // The name of its workflow stands behind the entity: only what passes is looked at.
    const suffix = query.workflow === undefined ? "" : `\0${query.workflow}`;
    const find = async (name: string): Promise<Header | null> =>
      name.endsWith(suffix) ? this.header(0, name.slice(0, name.indexOf("\0"))) : null;
    const found = await collect(places, query, find);
    return pageOf(found, query.limit, (header) => ({ atMs: header.createdAtMs, key: header.entity }));
  }

  async header(_partition: number, entity: EntityKey): Promise<Header | null> {
    return this.#one<Header>(keyOf(this.#redis, "headers"), entity);
  }

  async deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>> {
    const isAskedFor = (letter: DeadLetter): boolean =>
      (query.queue ?? letter.queue) === letter.queue &&
      (query.class ?? letter.class) === letter.class &&
      (query.entity ?? letter.entity) === letter.entity;
    const find = (id: string): Promise<DeadLetter | null> => this.deadLetter(id);
    const places = placesFrom(this.#redis, "letters:at", "latest", startOf(query));
    const found = await collect(places, query, find, isAskedFor);
    return pageOf(found, query.limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async deadLetter(id: string): Promise<DeadLetter | null> {
    return this.#one<DeadLetter>(keyOf(this.#redis, "letters"), id);
  }

  async listing(query: ListingQuery): Promise<Page<Listed>> {
    const find = (id: string): Promise<Listed | null> => this.listed(query.list, id);
    const places = placesFrom(this.#redis, `listing:${query.list}`, "latest", startOf(query));
    const found = await collect(places, query, find);
    return pageOf(found, query.limit, (listed) => ({ atMs: listed.atMs, key: listed.id }));
  }

  async listed(list: string, id: string): Promise<Listed | null> {
    const stored = await look<string | null>(this.#redis, "HGET", keyOf(this.#redis, "list", list), id);
    // The scripts keep the entity in front of it.
    return stored === null ? null : (JSON.parse(stored.slice(stored.indexOf("\0") + 1)) as Listed);
  }

  async workflows({ cursor, limit }: PageQuery): Promise<Page<PublishedWorkflow>> {
    const values = cursor === undefined ? [limit + 1] : [limit + 1, cursor];
    const answer = await run<readonly string[]>(this.#redis, scripts.workflows, ...values);
    const found = Array.from({ length: answer.length / 3 }, (_, i) => {
      const [name, hash, version] = answer.slice(3 * i);
      return { name: name!, version: Number(version), hash: hash! };
    });
    return namedPageOf(found, limit);
  }

  async counts(): Promise<Counts> {
    const { partitionCount } = this.#redis;
    type Answer = readonly [number, number, number, number, ...(readonly (string | number)[])];
    const [answer, fill] = await Promise.all([
      run<Answer>(this.#redis, scripts.counts, partitionCount),
      fillOf(this.#redis),
    ]);
    const [storeTimeMs, inbox, leased, deadLetters, ...queues] = answer;
    const rows = Array.from({ length: queues.length / 4 }, (_, i) => queues.slice(4 * i, 4 * i + 4));
    const column = (place: number): Readonly<Record<string, number>> =>
      Object.fromEntries(rows.map((row) => [row[0]!, Number(row[place])]));
    const oldest = Object.entries(column(3)).filter(([, atMs]) => atMs > 0);
    return {
      storeTimeMs,
      inbox,
      leased,
      deadLetters,
      queued: column(1),
      leasedOf: column(2),
      oldestAtMs: Object.fromEntries(oldest),
      ...(fill === undefined ? {} : { fill }),
    };
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who wrote the text knows what it is
  async #one<Item>(key: string, field: string): Promise<Item | null> {
    const text = await look<string | null>(this.#redis, "HGET", key, field);
    return text === null ? null : (JSON.parse(text) as Item);
  }
}

function startOf({ cursor }: PageQuery): PlaceInTime | undefined {
  return cursor === undefined ? undefined : parseCursor(cursor);
}

/** One more than asked for: that one only tells whether there is another page. */
async function collect<Item>(
  all: Places,
  { limit, sinceMs = Number.NEGATIVE_INFINITY }: PageQuery & { readonly sinceMs?: number },
  find: (name: string) => Promise<Item | null>,
  isAskedFor: (item: Item) => boolean = () => true,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  for await (const places of all) {
    const inTime = places.filter(({ atMs }) => atMs >= sinceMs);
    const found = await Promise.all(inTime.map(({ key }) => find(key)));
    items.push(...found.filter((item) => item !== null).filter(isAskedFor));
    if (items.length > limit || inTime.length < places.length) break;
  }
  return items.slice(0, limit + 1);
}
