import type { Machine } from "../core/machine.ts";
import type { Store } from "../store/contract.ts";

/** How many characters of definitions stay compiled; the ones used longest ago leave. */
const MAX_CHARS = 64 * 1024 * 1024;

export const DEFINITION_SCOPE = "definition";

/** A definition that is there and cannot be made ready: written by a newer release, or tampered with. */
export class DefinitionUnusable extends Error {
  override readonly name = "DefinitionUnusable";
}

function prepare(machine: Machine, hash: string, text: string): unknown {
  try {
    return machine.prepareDefinition(hash, text);
  } catch (error) {
    throw new DefinitionUnusable(`its definition ${hash} cannot be used: ${String(error)}`, { cause: error });
  }
}

interface Entry {
  readonly prepared: unknown;
  readonly hash: string;
  readonly text: string;
  /** How many doubts there had been when the store last had it. */
  storedAt: number;
}

/** Definitions made ready to run, by content hash: immutable, so never out of date. */
export class DefinitionCache {
  private readonly store: Store;
  private readonly entries = new Map<string, Entry>();
  private chars = 0;
  private doubts = 0;

  constructor(store: Store) {
    this.store = store;
  }

  /** null if the store has no such definition; undefined if none is needed. Whoever starts with it needs it stored. */
  async get(machine: Machine, hash: string | undefined, forStart: boolean): Promise<unknown> {
    if (hash === undefined) return undefined;
    const { doubts } = this;
    const key = `${machine.kind}:${hash}`;
    const cached = this.entries.get(key);
    if (cached !== undefined) {
      this.entries.delete(key);
      this.entries.set(key, cached);
      if (forStart && cached.storedAt < doubts) {
        await this.store.records.put([{ scope: DEFINITION_SCOPE, hash, text: cached.text }]);
        cached.storedAt = doubts;
      }
      return cached.prepared;
    }
    const [text] = await this.store.records.get([{ scope: DEFINITION_SCOPE, hash }]);
    if (text === null || text === undefined) return null;
    const prepared = prepare(machine, hash, text);
    this.entries.set(key, { prepared, hash, text, storedAt: doubts });
    this.chars += text.length;
    for (const [oldest, entry] of this.entries) {
      if (this.chars <= MAX_CHARS || oldest === key) break;
      this.entries.delete(oldest);
      this.chars -= entry.text.length;
    }
    return prepared;
  }

  /**
   * Between two tenures the store may have gone back, and we need not notice: nothing of ours may be missing but the
   * definition that we remember. Nobody may be told that an execution is accepted which no other owner could load.
   */
  doubt(): void {
    this.doubts++;
  }

  /** Writes everything again. Harmless where it is still there. */
  async putAll(): Promise<void> {
    const records = [...this.entries.values()].map(({ hash, text }) => ({ scope: DEFINITION_SCOPE, hash, text }));
    if (records.length > 0) await this.store.records.put(records);
  }
}
