import type { Published, PutOutcome, RecordKey, Records, Registration, StoredRecord } from "../../store/contract.ts";
import { MAX_VERSIONS } from "../../store/page.ts";
import type { Memory } from "./memory.ts";

/** Who has not said in time that it is alive is looked for once in this time: there may be thousands, and as many who say so. */
const LOOK_FOR_DEAD_MS = 1_000;

export class MemoryRecords implements Records {
  readonly #memory: Memory;
  #lookedAtMs = -Infinity;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async put(records: readonly StoredRecord[], options?: { readonly refusable: boolean }): Promise<PutOutcome> {
    const scopes = this.#memory.data.records;
    if (options?.refusable === true && this.#memory.faults.isFull) return "refused";
    for (const { scope, hash, text } of records) {
      const texts = scopes.get(scope) ?? new Map<string, string>();
      scopes.set(scope, texts);
      if (!texts.has(hash)) texts.set(hash, text);
    }
    return "stored";
  }

  async get(keys: readonly RecordKey[]): Promise<readonly (string | null)[]> {
    return keys.map(({ scope, hash }) => this.#memory.data.records.get(scope)?.get(hash) ?? null);
  }

  async has({ scope, hash }: RecordKey): Promise<boolean> {
    return this.#memory.data.records.get(scope)?.has(hash) === true;
  }

  async publish(name: string, hash: string): Promise<number> {
    const { published, unpublished } = this.#memory.data;
    const versions = published.get(name) ?? new Map<string, number>();
    published.set(name, versions);
    const version = versions.get(hash) ?? versions.size + 1;
    versions.set(hash, version);
    unpublished.get(name)?.delete(hash);
    return version;
  }

  async published(name: string, version?: number | string): Promise<Published | null> {
    const isAskedFor = (one: Published): boolean =>
      version === undefined || (typeof version === "number" ? one.version : one.hash) === version;
    return publishedVersions(this.#memory, name).find(isAskedFor) ?? null;
  }

  async versions(name: string): Promise<readonly Published[]> {
    return publishedVersions(this.#memory, name).slice(0, MAX_VERSIONS);
  }

  async unpublish(name: string): Promise<void> {
    const { published, unpublished } = this.#memory.data;
    const versions = published.get(name);
    if (versions !== undefined) unpublished.set(name, new Set(versions.keys()));
  }

  async register(registration: Registration, ttlMs: number): Promise<void> {
    const { leaseClock, data } = this.#memory;
    const nowMs = leaseClock.steadyMs();
    if (nowMs - this.#lookedAtMs >= LOOK_FOR_DEAD_MS) this.#forgetDead(nowMs);
    data.registrations.set(registration.process, { registration, untilMs: nowMs + ttlMs });
  }

  #forgetDead(nowMs: number): void {
    const { registrations } = this.#memory.data;
    this.#lookedAtMs = nowMs;
    for (const [process, { untilMs }] of registrations) if (untilMs <= nowMs) registrations.delete(process);
  }

  async registered(): Promise<readonly Registration[]> {
    const { leaseClock, data } = this.#memory;
    const alive = [...data.registrations.values()].filter(({ untilMs }) => untilMs > leaseClock.steadyMs());
    return alive.map(({ registration }) => registration);
  }
}

/** What is published under a name now, the highest number first. */
export function publishedVersions({ data }: Memory, name: string): readonly Published[] {
  const gone = data.unpublished.get(name);
  const published = [...(data.published.get(name) ?? [])].filter(([hash]) => gone?.has(hash) !== true);
  return published.map(([hash, version]) => ({ version, hash })).sort((a, b) => b.version - a.version);
}
