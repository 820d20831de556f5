import { DEFINITION_SCOPE } from "../core/entity.ts";
import type { DefinitionAtHand, Machine } from "../core/machine.ts";
import type { Store } from "../store/contract.ts";

/** How many characters of definitions stay compiled; the ones used longest ago leave. */
const MAX_CHARS = 64 * 1024 * 1024;

/** A definition that is there and cannot be made ready: written by a newer release, or tampered with. */
export class DefinitionUnusable extends Error {
  override readonly name = "DefinitionUnusable";
}

function prepare(hash: string, definition: DefinitionAtHand): unknown {
  try {
    return definition.prepare();
  } catch (error) {
    throw new DefinitionUnusable(`its definition ${hash} cannot be used: ${String(error)}`, { cause: error });
  }
}

interface Entry {
  readonly prepared: unknown;
  readonly hash: string;
  /** How long its text is. */
  readonly chars: number;
  /** A function where what was made ready holds all that the text does: a long one is not kept beside it. */
  readonly text: string | (() => string);
}

function textOf({ text }: Entry): string {
  return typeof text === "string" ? text : text();
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
        await this.putAgain(cached);
        stored.saw(hash);
      }
      return cached.prepared;
    }
    const here = machine.definitionAtHand?.(hash);
    const isHere = here !== undefined && (await this.isStored(hash));
    const found = isHere ? here : await this.read(machine, hash);
    if (found === null) return null;
    const prepared = prepare(hash, found);
    stored?.saw(hash);
    const text = machine.textOfDefinition?.(prepared) ?? found.text();
    // Two who ask at the same moment both come here.
    this.chars -= this.entries.get(key)?.chars ?? 0;
    this.entries.set(key, { prepared, hash, chars: found.chars, text });
    this.latest = key;
    this.chars += found.chars;
    for (const [oldest, entry] of this.entries) {
      if (this.chars <= MAX_CHARS || oldest === key) break;
      this.entries.delete(oldest);
      this.chars -= entry.chars;
    }
    return prepared;
  }

  private async read(machine: Machine, hash: string): Promise<DefinitionAtHand | null> {
    const [text] = await this.store.records.get([{ scope: DEFINITION_SCOPE, hash }]);
    if (text === null || text === undefined) return null;
    return { chars: text.length, text: () => text, prepare: () => machine.prepareDefinition(hash, text) };
  }

  /** False also where a store cannot tell without reading it. */
  private async isStored(hash: string): Promise<boolean> {
    return (await this.store.records.has?.({ scope: DEFINITION_SCOPE, hash })) === true;
  }

  /** A long one is not written again only to find that it is there. */
  private async putAgain(entry: Entry): Promise<void> {
    const { hash, text } = entry;
    if (typeof text !== "string" && (await this.isStored(hash))) return;
    await this.store.records.put([{ scope: DEFINITION_SCOPE, hash, text: textOf(entry) }]);
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
    const records = Array.from(this.entries.values(), (entry) => ({
      scope: DEFINITION_SCOPE,
      hash: entry.hash,
      text: textOf(entry),
    }));
    if (records.length > 0) await this.store.records.put(records);
  }
}
