import type { PutOutcome, RecordKey, Records, Registration, StoredRecord } from "../../store/contract.ts";
import type { Memory } from "./memory.ts";

export class MemoryRecords implements Records {
  readonly #memory: Memory;

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

  async publish(name: string, hash: string): Promise<number> {
    const { published } = this.#memory.data;
    const versions = published.get(name) ?? new Map<string, number>();
    published.set(name, versions);
    const version = versions.get(hash) ?? versions.size + 1;
    versions.set(hash, version);
    return version;
  }

  async register(registration: Registration, ttlMs: number): Promise<void> {
    const { leaseClock, data } = this.#memory;
    const nowMs = leaseClock.nowMs();
    for (const [process, { untilMs }] of data.registrations) {
      if (untilMs <= nowMs) data.registrations.delete(process);
    }
    data.registrations.set(registration.process, { registration, untilMs: nowMs + ttlMs });
  }

  async registered(): Promise<readonly Registration[]> {
    const { leaseClock, data } = this.#memory;
    const alive = [...data.registrations.values()].filter(({ untilMs }) => untilMs > leaseClock.nowMs());
    return alive.map(({ registration }) => registration);
  }
}
