import type {
  Counts,
  DeadLetter,
  DeadLetterQuery,
  EntityKey,
  Header,
  HeaderQuery,
  Listed,
  ListingQuery,
  Page,
  PageQuery,
  PublishedWorkflow,
  Queries,
} from "../../store/contract.ts";
import { namedPageOf, pageOf, parseCursor } from "../../store/page.ts";
import { fillOf } from "./memory-use.ts";
import { placesFrom } from "./places.ts";
import { keyOf, type Redis, run } from "./redis.ts";
import { scripts } from "./scripts.ts";

export class RedisQueries implements Queries {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async headers(query: HeaderQuery): Promise<Page<Header>> {
    const isAskedFor = (header: Header): boolean =>
      (query.class ?? header.class) === header.class && (query.workflow ?? header.workflow) === header.workflow;
    const find = (entity: string): Promise<Header | null> => this.header(0, entity);
    const found = await this.#collect(keyOf(this.#redis, "headers"), query, find, isAskedFor);
    return pageOf(found, query.limit, (header) => ({ atMs: header.createdAtMs, key: header.entity }));
  }

  async header(_partition: number, entity: EntityKey): Promise<Header | null> {
    return this.#one<Header>(keyOf(this.#redis, "entity", entity), "header");
  }

  async deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>> {
    const isAskedFor = (letter: DeadLetter): boolean =>
      (query.queue ?? letter.queue) === letter.queue &&
      (query.class ?? letter.class) === letter.class &&
      (query.entity ?? letter.entity) === letter.entity;
    const find = (id: string): Promise<DeadLetter | null> => this.deadLetter(id);
    const found = await this.#collect(keyOf(this.#redis, "letters", "at"), query, find, isAskedFor);
    return pageOf(found, query.limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async deadLetter(id: string): Promise<DeadLetter | null> {
    return this.#one<DeadLetter>(keyOf(this.#redis, "letters"), id);
  }

  async listing(query: ListingQuery): Promise<Page<Listed>> {
    const find = (id: string): Promise<Listed | null> => this.listed(query.list, id);
    const found = await this.#collect(keyOf(this.#redis, "listing", query.list), query, find);
    return pageOf(found, query.limit, (listed) => ({ atMs: listed.atMs, key: listed.id }));
  }

  async listed(list: string, id: string): Promise<Listed | null> {
    const stored = await this.#redis.client.hGet(keyOf(this.#redis, "list", list), id);
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
    const { client, partitionCount } = this.#redis;
    const inboxKeys = Array.from({ length: partitionCount }, (_, i) => keyOf(this.#redis, "inbox", i));
    const inboxes = await Promise.all(inboxKeys.map((key) => client.xLen(key)));
    const queues = await client.sMembers(keyOf(this.#redis, "queues"));
    const sizes = await Promise.all(queues.map((queue) => client.zCard(keyOf(this.#redis, "queue", queue))));
    const [seconds, microseconds] = await client.sendCommand<readonly [string, string]>(["TIME"]);
    const fill = await fillOf(client);
    return {
      storeTimeMs: Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000),
      inbox: inboxes.reduce((sum, length) => sum + length, 0),
      queued: Object.fromEntries(queues.map((queue, i) => [queue, sizes[i]!])),
      leased: await client.zCard(keyOf(this.#redis, "leases")),
      deadLetters: await client.hLen(keyOf(this.#redis, "letters")),
      ...(fill === undefined ? {} : { fill }),
    };
  }

  /** One more than asked for: that one only tells whether there is another page. */
  async #collect<Item>(
    key: string,
    { cursor, limit, sinceMs = Number.NEGATIVE_INFINITY }: PageQuery & { readonly sinceMs?: number },
    find: (name: string) => Promise<Item | null>,
    isAskedFor: (item: Item) => boolean = () => true,
  ): Promise<readonly Item[]> {
    const items: Item[] = [];
    const start = cursor === undefined ? undefined : parseCursor(cursor);
    for await (const places of placesFrom(this.#redis, key, "latest", start)) {
      const inTime = places.filter(({ atMs }) => atMs >= sinceMs);
      const found = await Promise.all(inTime.map(({ key }) => find(key)));
      items.push(...found.filter((item) => item !== null).filter(isAskedFor));
      if (items.length > limit || inTime.length < places.length) break;
    }
    return items.slice(0, limit + 1);
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who wrote the text knows what it is
  async #one<Item>(key: string, field: string): Promise<Item | null> {
    const text = await this.#redis.client.hGet(key, field);
    return text === null ? null : (JSON.parse(text) as Item);
  }
}
