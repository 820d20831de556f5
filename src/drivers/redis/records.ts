import type { Published, PutOutcome, RecordKey, Records, Registration, StoredRecord } from "../../store/contract.ts";
import { MAX_VERSIONS } from "../../store/page.ts";
import { StoreError } from "../../store/store-error.ts";
import { isFull, keyOf, look, type Redis, run, runCall, scriptCall, whyRefused } from "./redis.ts";
import { scripts } from "./scripts.ts";

/** Members, each before its score. */
type Scored = readonly string[];

export class RedisRecords implements Records {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async put(records: readonly StoredRecord[], options?: { readonly refusable: boolean }): Promise<PutOutcome> {
    if (records.length === 0) return "stored";
    const isRefusable = options?.refusable === true;
    const script = isRefusable ? scripts.putRefusable : scripts.put;
    // Not spread: a call may have more of these than a function can take.
    const call = scriptCall(this.#redis, script);
    for (const { scope, hash, text } of records) call.push(scope, hash, text);
    try {
      await runCall(this.#redis, script, call);
      return "stored";
    } catch (error) {
      if (isRefusable && isFull(error)) return "refused";
      const reason = whyRefused(error);
      throw reason === undefined ? error : new StoreError("STORE_UNAVAILABLE", `Redis: ${reason}`, { cause: error });
    }
  }

  async get(keys: readonly RecordKey[]): Promise<readonly (string | null)[]> {
    const redis = this.#redis;
    return Promise.all(
      keys.map(({ scope, hash }) => look<string | null>(redis, "HGET", keyOf(redis, "records", scope), hash)),
    );
  }

  async publish(name: string, hash: string): Promise<number> {
    return Number(await run<string>(this.#redis, scripts.publish, name, hash));
  }

  async published(name: string, version?: number | string): Promise<Published | null> {
    const key = keyOf(this.#redis, "versions", name);
    if (typeof version === "string") {
      const number = await look<string | null>(this.#redis, "ZSCORE", key, version);
      return number === null ? null : { version: Number(number), hash: version };
    }
    const only = String(version);
    const [found] =
      version === undefined
        ? await this.#newest(key, 1)
        : publishedIn(await look<Scored>(this.#redis, "ZRANGE", key, only, only, "BYSCORE", "WITHSCORES"));
    return found ?? null;
  }

  async versions(name: string): Promise<readonly Published[]> {
    return this.#newest(keyOf(this.#redis, "versions", name), MAX_VERSIONS);
  }

  async unpublish(name: string): Promise<void> {
    await run(this.#redis, scripts.unpublish, name);
  }

  async register(registration: Registration, ttlMs: number): Promise<void> {
    await run(this.#redis, scripts.register, ttlMs, registration.process, JSON.stringify(registration));
  }

  async registered(): Promise<readonly Registration[]> {
    const alive = await run<readonly string[]>(this.#redis, scripts.register, 0);
    return alive.map((text) => JSON.parse(text) as Registration);
  }

  async #newest(key: string, count: number): Promise<readonly Published[]> {
    return publishedIn(await look<Scored>(this.#redis, "ZRANGE", key, "0", String(count - 1), "REV", "WITHSCORES"));
  }
}

function publishedIn(found: Scored): readonly Published[] {
  return Array.from({ length: found.length / 2 }, (_, i) => ({
    version: Number(found[2 * i + 1]),
    hash: found[2 * i]!,
  }));
}
