import { DEFINITION_SCOPE } from "../core/entity.ts";
import type { Machine } from "../core/machine.ts";
import type { Store } from "../store/contract.ts";

/** How many characters of definitions stay compiled; the ones used longest ago leave. */
const MAX_CHARS = 64 * 1024 * 1024;

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
}

/** How many definitions a tenure remembers as stored; beyond that it looks again. */
const MOST_PROVEN = 10_000;

/**
 * Which definitions the store has, as far as one tenure can know. A store that loses what it has acknowledged may lose a
 * definition and nothing else, and no fence tells. So it is seen for the batch that starts something with it: that batch
 * is fenced if the start it takes in is gone. Once that is committed a store that goes back behind it loses the commit
 * too, and fences whatever comes next. A look for a batch that was never committed proves nothing to a later one.
 */
export class StoredDefinitions {
  private readonly proven = new Set<string>();
  private seen = new Set<string>();

  /** What was seen for the batch being formed. */
  get sightings(): ReadonlySet<string> {
    return this.seen;
  }

  /** Another batch is being formed. What the one before has seen is its own, also if that is nothing. */
  begin(): void {
    this.seen = new Set();
  }

  has(hash: string): boolean {
    return this.proven.has(hash) || this.seen.has(hash);
  }

  saw(hash: string): void {
    this.seen.add(hash);
  }

  /** The batch is committed that these were seen for. */
  prove(sightings: ReadonlySet<string>): void {
    if (sightings.size === 0) return;
    if (this.proven.size > MOST_PROVEN) this.proven.clear();
    for (const hash of sightings) this.proven.add(hash);
  }
}

/** Definitions made ready to run, by content hash: immutable, so never out of date. */
export class DefinitionCache {
  private readonly store: Store;
  private readonly entries = new Map<string, Entry>();
  private chars = 0;
  private latest = "";

  constructor(store: Store) {
    this.store = store;
  }

  /**
   * null if the store has no such definition; undefined if none is needed. Whoever starts with it says what is known to be
   * stored: nobody may be told that an execution is accepted which no other owner could load.
   */
  async get(machine: Machine, hash: string | undefined, stored?: StoredDefinitions): Promise<unknown> {
    if (hash === undefined) return undefined;
    const key = `${machine.kind}:${hash}`;
    const cached = this.use(key);
    if (cached !== undefined) {
      if (stored?.has(hash) === false) {
        await this.store.records.put([{ scope: DEFINITION_SCOPE, hash, text: cached.text }]);
        stored.saw(hash);
      }
      return cached.prepared;
    }
    const [text] = await this.store.records.get([{ scope: DEFINITION_SCOPE, hash }]);
    if (text === null || text === undefined) return null;
    const prepared = prepare(machine, hash, text);
    stored?.saw(hash);
    this.entries.set(key, { prepared, hash, text });
    this.latest = key;
    this.chars += text.length;
    for (const [oldest, entry] of this.entries) {
      if (this.chars <= MAX_CHARS || oldest === key) break;
      this.entries.delete(oldest);
      this.chars -= entry.text.length;
    }
    return prepared;
  }

  /** The same where nothing has to be waited for; undefined where something has. */
  atHand(machine: Machine, hash: string, stored: StoredDefinitions): unknown {
    return stored.has(hash) ? this.use(`${machine.kind}:${hash}`)?.prepared : undefined;
  }

  private use(key: string): Entry | undefined {
    const cached = this.entries.get(key);
    // The one that was used last is so again, most of the time.
    if (cached !== undefined && this.latest !== key) {
      this.entries.delete(key);
      this.entries.set(key, cached);
      this.latest = key;
    }
    return cached;
  }

  /** Writes everything again. Harmless where it is still there. */
  async putAll(): Promise<void> {
    const records = [...this.entries.values()].map(({ hash, text }) => ({ scope: DEFINITION_SCOPE, hash, text }));
    if (records.length > 0) await this.store.records.put(records);
  }
}
