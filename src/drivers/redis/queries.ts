import type { Counts, DeadLetter, Header, HeaderQuery, Page, Queries } from "../../store/contract.ts";
import { pageOf, parseCursor } from "../../store/page.ts";
import { placesFrom } from "./places.ts";
import { keyOf, type Redis } from "./redis.ts";

export class RedisQueries implements Queries {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async headers(query: HeaderQuery): Promise<Page<Header>> {
    const isAskedFor = (header: Header): boolean =>
      (query.class ?? header.class) === header.class && (query.workflow ?? header.workflow) === header.workflow;
    const find = async (entity: string): Promise<Header | undefined> => {
      const text = await this.#redis.client.hGet(keyOf(this.#redis, "entity", entity), "header");
      const header = text === null ? undefined : (JSON.parse(text) as Header);
      return header !== undefined && isAskedFor(header) ? header : undefined;
    };
    const found = await this.#collect(keyOf(this.#redis, "headers"), query, find);
    return pageOf(found, query.limit, (header) => ({ atMs: header.createdAtMs, key: header.entity }));
  }

  async deadLetters(query: { readonly cursor?: string; readonly limit: number }): Promise<Page<DeadLetter>> {
    const find = async (id: string): Promise<DeadLetter | undefined> => {
      const text = await this.#redis.client.hGet(keyOf(this.#redis, "letters"), id);
      return text === null ? undefined : (JSON.parse(text) as DeadLetter);
    };
    const found = await this.#collect(keyOf(this.#redis, "letters", "at"), query, find);
    return pageOf(found, query.limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async counts(): Promise<Counts> {
    const { client, partitionCount } = this.#redis;
    const inboxKeys = Array.from({ length: partitionCount }, (_, i) => keyOf(this.#redis, "inbox", i));
    const inboxes = await Promise.all(inboxKeys.map((key) => client.xLen(key)));
    const queues = await client.sMembers(keyOf(this.#redis, "queues"));
    const sizes = await Promise.all(queues.map((queue) => client.zCard(keyOf(this.#redis, "queue", queue))));
    const [seconds, microseconds] = await client.sendCommand<readonly [string, string]>(["TIME"]);
    return {
      storeTimeMs: Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000),
      inbox: inboxes.reduce((sum, length) => sum + length, 0),
      queued: Object.fromEntries(queues.map((queue, i) => [queue, sizes[i]!])),
      leased: await client.zCard(keyOf(this.#redis, "leases")),
      deadLetters: await client.hLen(keyOf(this.#redis, "letters")),
    };
  }

  /** One more than asked for: that one only tells whether there is another page. */
  async #collect<Item>(
    key: string,
    { cursor, limit }: { readonly cursor?: string; readonly limit: number },
    find: (name: string) => Promise<Item | undefined>,
  ): Promise<readonly Item[]> {
    const items: Item[] = [];
    const start = cursor === undefined ? undefined : parseCursor(cursor);
    for await (const places of placesFrom(this.#redis, key, "latest", start)) {
      const found = await Promise.all(places.map(({ key }) => find(key)));
      items.push(...found.filter((item) => item !== undefined));
      if (items.length > limit) break;
    }
    return items.slice(0, limit + 1);
  }
}
