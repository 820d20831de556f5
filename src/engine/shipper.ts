import { entityKind, partitionOf } from "../core/entity.ts";
import type { Machine, MachineEvent } from "../core/machine.ts";
import type { Host } from "../host/host.ts";
import { contentHash } from "../json/hash.ts";
import type { Archive, ShippedEntity, Tip } from "../store/archive.ts";
import type { DeadLetter, Header, JournalRecord, Loaded, Store, StoredRecord } from "../store/contract.ts";
import type { Loader } from "./loader.ts";
import type { EngineObserver } from "./observer.ts";
import type { Owner } from "./owner.ts";
import type { ShippingSettings } from "./settings.ts";
import { ShippedNames } from "./shipped-names.ts";
import type { Ripe, Unshipped } from "./unshipped.ts";

/** Entities and characters that go to the archive at once. */
const MAX_ENTITIES = 100;
const MAX_CHARS = 4 * 1024 * 1024;
/** Entries of the list that are read at once. */
const PAGE = 500;
/** How often a partition with nothing to ship says that it has nothing. */
const QUIET_MS = 10_000;
/** How long to leave an archive alone that does not answer. */
const TROUBLE_MS = 1_000;
/** A value that is not in the record itself is named in it like this. What only looks like it is not found, and left out. */
const VALUE_NAME = /"hash":"([0-9a-f]{64})"/g;

/** How the archive is doing, as seen from one engine. */
export interface ShippingState {
  /** Entities that have something that is not in the archive. */
  readonly behind: number;
  /** What is wrong, if anything is. */
  readonly trouble: string | undefined;
}

/**
 * Copies what the owners of this engine have committed into the archive, a little later than that, so that a store that
 * forgets its last seconds has forgotten nothing of it. It decides nothing, and nobody waits for it.
 */
export class Shipper {
  private readonly store: Store;
  private readonly archive: Archive;
  private readonly host: Host;
  private readonly settings: ShippingSettings;
  private readonly machines: ReadonlyMap<string, Machine>;
  private readonly loader: Loader;
  private readonly owners: () => readonly Owner[];
  private readonly observer: EngineObserver;
  private readonly names: ShippedNames;
  private readonly saidAtMs = new Map<number, number>();
  private trouble: string | undefined;

  constructor(parts: {
    readonly store: Store;
    readonly archive: Archive;
    readonly host: Host;
    readonly settings: ShippingSettings;
    readonly machines: ReadonlyMap<string, Machine>;
    readonly loader: Loader;
    readonly owners: () => readonly Owner[];
    readonly observer: EngineObserver;
  }) {
    this.store = parts.store;
    this.archive = parts.archive;
    this.host = parts.host;
    this.settings = parts.settings;
    this.machines = parts.machines;
    this.loader = parts.loader;
    this.owners = parts.owners;
    this.observer = parts.observer;
    this.names = new ShippedNames(parts.store, parts.archive);
  }

  get state(): ShippingState {
    let behind = 0;
    for (const { unshipped } of this.owners()) behind += unshipped?.size ?? 0;
    return { behind, trouble: this.trouble };
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let trouble: string | undefined;
      for (const owner of this.owners()) {
        // One partition that has trouble does not keep the others from it.
        if (!signal.aborted) trouble = (await this.attempt(() => this.shipOwner(owner))) ?? trouble;
      }
      const isFirst = this.owners().some(({ partition }) => partition === 0);
      if (isFirst && !signal.aborted) trouble = (await this.attempt(() => this.names.ship())) ?? trouble;
      if (signal.aborted) return;
      this.settle(trouble);
      if (trouble !== undefined) await this.host.sleep(TROUBLE_MS, signal);
      await this.host.sleep(this.settings.everyMs, signal);
    }
  }

  private async attempt(work: () => Promise<void>): Promise<string | undefined> {
    try {
      await work();
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  private settle(trouble: string | undefined): void {
    if ((trouble === undefined) !== (this.trouble === undefined)) this.observer.archiveChanged?.(trouble);
    this.trouble = trouble;
  }

  private async shipOwner(owner: Owner): Promise<void> {
    const { unshipped } = owner;
    if (!owner.valid || unshipped === null) return;
    if (unshipped.mustRead) await this.readList(unshipped);
    const ripe = unshipped.ripe(this.host.monotonicMs());
    for (let i = 0; i < ripe.length && owner.valid; i += MAX_ENTITIES) {
      await this.shipChunk(owner, unshipped, ripe.slice(i, i + MAX_ENTITIES));
    }
    const said = this.saidAtMs.get(owner.partition) ?? -Infinity;
    if (owner.valid && this.host.monotonicMs() - said >= QUIET_MS) await this.send(owner, unshipped, []);
  }

  private async readList(unshipped: Unshipped): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await this.store.queries.listing({
        list: unshipped.list,
        limit: PAGE,
        ...(cursor !== undefined && { cursor }),
      });
      unshipped.inherit(page.items, this.host.monotonicMs());
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined && unshipped.hasRoom);
    unshipped.wasRead(cursor === undefined);
  }

  /** What the archive does not take is left where it is, and shown; all others go on. */
  private async shipChunk(owner: Owner, unshipped: Unshipped, ripe: readonly Ripe[]): Promise<void> {
    try {
      return await this.shipSome(owner, unshipped, ripe);
    } catch (error) {
      if (ripe.length === 1) throw error;
      // An archive that answers this has something against one of them, not against us.
      await this.archive.owner();
    }
    let failure: unknown;
    for (const one of ripe) {
      try {
        if (owner.valid) await this.shipSome(owner, unshipped, [one]);
      } catch (error) {
        failure = error;
      }
    }
    if (failure !== undefined) throw failure;
  }

  private async shipSome(owner: Owner, unshipped: Unshipped, ripe: readonly Ripe[]): Promise<void> {
    const entities = ripe.map(({ entity }) => entity);
    const tips = await this.archive.tips(entities);
    const loaded = await this.store.journal.load(
      entities.map((entity) => {
        const tip = tips.get(entity);
        return { ...this.place(entity), aboveVersion: tip === undefined ? 0 : tip.firstVersion - 1 };
      }),
    );
    let prepared: Prepared[] = [];
    let chars = 0;
    for (const [i, { entity, letters }] of ripe.entries()) {
      const one = await this.prepare(unshipped, loaded[i]!, tips.get(entity), letters);
      prepared.push(one);
      chars += one.chars;
      if (chars < MAX_CHARS) continue;
      await this.send(owner, unshipped, prepared);
      prepared = [];
      chars = 0;
    }
    if (prepared.length > 0) await this.send(owner, unshipped, prepared);
  }

  /** What is to be said of one entity, read before anything is written: an archive that fails half way has got nothing. */
  private async prepare(
    unshipped: Unshipped,
    loaded: Loaded,
    tip: Tip | undefined,
    letters: boolean,
  ): Promise<Prepared> {
    const { entity } = loaded;
    const { records: found, replaces } = await this.beyond(loaded, tip);
    const bound = unshipped.bound(entity, this.host.monotonicMs());
    const records = found.filter((record) => lastOf(record) <= bound);
    const kept = replaces ? 0 : (tip?.version ?? 0);
    const version = records.length === 0 ? kept : lastOf(records.at(-1)!);
    const isWhole = records.length === found.length;
    const header = await this.headerAt(entity, version);
    return {
      entity,
      records,
      replaces,
      header,
      values: await this.valuesOf(entity, records),
      letters: letters && isWhole ? await this.lettersOf(entity) : null,
      version,
      definitions: await this.definitionsOf(records),
      chars: records.reduce((sum, { text }) => sum + text.length, 0),
    };
  }

  /**
   * The records behind what is kept. A store that went back further than the window, or was restored from a copy, goes on
   * with another history than the one that is kept: then its own is shipped from the beginning.
   */
  private async beyond(
    loaded: Loaded,
    tip: Tip | undefined,
  ): Promise<{ readonly records: readonly JournalRecord[]; readonly replaces: boolean }> {
    if (tip === undefined) return { records: loaded.records, replaces: false };
    const [first, ...rest] = loaded.records;
    const isSame = first?.version === tip.firstVersion && contentHash(first.text) === tip.hash;
    if (isSame) return { records: rest, replaces: false };
    const [whole] = await this.store.journal.load([{ ...this.place(loaded.entity), aboveVersion: 0 }]);
    if (whole!.records.length === 0) return { records: [], replaces: false };
    this.observer.archiveReplaced?.(loaded.entity, tip.version);
    return { records: whole!.records, replaces: true };
  }

  /** The header as of what is shipped: one that says more than the records is cut back to what they are sure to say. */
  private async headerAt(entity: string, version: number): Promise<Header | null> {
    const { partition } = this.place(entity);
    const header = await this.store.queries.header(partition, entity);
    if (header === null || header.version <= version) return header;
    return { ...header, class: "open", status: "RUNNING", endedAtMs: null, version };
  }

  private async valuesOf(entity: string, records: readonly JournalRecord[]): Promise<readonly StoredRecord[]> {
    const hashes = new Set<string>();
    for (const { text } of records) for (const [, hash] of text.matchAll(VALUE_NAME)) hashes.add(hash!);
    return this.found([...hashes].map((hash) => ({ scope: entity, hash })));
  }

  private async definitionsOf(records: readonly JournalRecord[]): Promise<readonly StoredRecord[]> {
    const first = records[0];
    if (first?.version !== 1) return [];
    const machine = this.machines.get(entityKind(first.entity));
    const hash = machine?.definitionOf((JSON.parse(first.text) as MachineEvent[])[0]!);
    if (hash === undefined || this.names.isKept(hash)) return [];
    return this.found([{ scope: "definition", hash }]);
  }

  private async found(keys: readonly { readonly scope: string; readonly hash: string }[]): Promise<StoredRecord[]> {
    if (keys.length === 0) return [];
    const texts = await this.store.records.get(keys);
    return keys.flatMap((key, i) => (typeof texts[i] === "string" ? [{ ...key, text: texts[i] }] : []));
  }

  /** All dead letters it has now. Only the fold knows their names. */
  private async lettersOf(entity: string): Promise<readonly DeadLetter[] | null> {
    const loaded = (await this.loader.load([entity], new Map(), new Map())).get(entity);
    if (loaded?.kind !== "resident") return null;
    const ids = loaded.machine.letters?.(loaded.state) ?? [];
    const found = await Promise.all(ids.map((id) => this.store.queries.deadLetter(id)));
    return found.filter((letter) => letter !== null);
  }

  private async send(owner: Owner, unshipped: Unshipped, prepared: readonly Prepared[]): Promise<void> {
    const { partition, incarnation, epoch } = owner.tenure;
    const definitions = prepared.flatMap((one) => one.definitions);
    if (definitions.length > 0) await this.archive.keep(definitions);
    const outcome = await this.archive.ship({
      partition,
      incarnation,
      epoch,
      timeMs: Math.floor(owner.time.nowMs()),
      behind: Math.max(0, unshipped.size - prepared.length),
      entities: prepared,
    });
    if (outcome === "fenced") return;
    if (outcome === "foreign") throw new Error("the archive belongs to another store: see `millrace recover`");
    this.saidAtMs.set(partition, this.host.monotonicMs());
    this.names.keep(definitions);
    for (const { entity, version, header, records } of prepared) {
      if (owner.valid) unshipped.shipped(entity, version, header);
      this.observer.shipped?.(entity, records.length);
    }
  }

  private place(entity: string): { readonly entity: string; readonly partition: number } {
    return { entity, partition: partitionOf(entity, this.store.capabilities.partitionCount) };
  }
}

interface Prepared extends ShippedEntity {
  /** Up to which version it will be shipped. */
  readonly version: number;
  readonly definitions: readonly StoredRecord[];
  readonly chars: number;
}

function lastOf({ version, count }: JournalRecord): number {
  return version + count - 1;
}
