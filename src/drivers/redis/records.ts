import type { RecordKey, Records, Registration, StoredRecord } from "../../store/contract.ts";
import { keyOf, type Redis, run } from "./redis.ts";
import { scripts } from "./scripts.ts";

export class RedisRecords implements Records {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async put(records: readonly StoredRecord[]): Promise<void> {
    const { client } = this.#redis;
    await Promise.all(
      records.map(({ scope, hash, text }) => client.hSetNX(keyOf(this.#redis, "records", scope), hash, text)),
    );
  }

  async get(keys: readonly RecordKey[]): Promise<readonly (string | null)[]> {
    const { client } = this.#redis;
    return Promise.all(keys.map(({ scope, hash }) => client.hGet(keyOf(this.#redis, "records", scope), hash)));
  }

  async publish(name: string, hash: string): Promise<number> {
    return Number(await run<string>(this.#redis, scripts.publish, name, hash));
  }

  async register(registration: Registration, ttlMs: number): Promise<void> {
    await run(this.#redis, scripts.register, ttlMs, registration.process, JSON.stringify(registration));
  }
}
