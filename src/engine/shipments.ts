import { DEFINITION_SCOPE, entityId, entityKind, partitionOf } from "../core/entity.ts";
import type { Machine, MachineEvent } from "../core/machine.ts";
import type { Host } from "../host/host.ts";
import { contentHash } from "../json/hash.ts";
import type { ShippedEntity, Tip } from "../store/archive.ts";
import type { DeadLetter, Header, JournalRecord, Listed, Loaded, Store, StoredRecord } from "../store/contract.ts";
import type { Loader } from "./loader.ts";
import type { EngineObserver } from "./observer.ts";
import type { Unshipped } from "./unshipped.ts";

/** A value that is not in the record itself is named in it like this. What only looks like it is not found, and left out. */
const VALUE_NAME = /"hash":"([0-9a-f]{64})"/g;

/** The names of records that belong to a journal and are not named in it, each by the number of its part. */
export type Notes = (records: readonly JournalRecord[]) => readonly ((part: number) => string)[];

/** What is to be shipped of one entity. */
export interface Prepared extends ShippedEntity {
  /** Up to which version it will be shipped, and where the record begins that holds it. */
  readonly version: number;
  readonly lastRecord: number;
  readonly definitions: readonly StoredRecord[];
  readonly chars: number;
}

export interface ShipmentParts {
  readonly store: Store;
  readonly host: Host;
  readonly machines: ReadonlyMap<string, Machine>;
  readonly loader: Loader;
  readonly observer: EngineObserver;
  readonly notes: Notes | undefined;
  /** Definitions that the archive has for sure. */
  readonly isKept: (hash: string) => boolean;
}

/** Reads from the store what the archive is to have of an entity. */
export class Shipments {
  private readonly store: Store;
  private readonly host: Host;
  private readonly machines: ReadonlyMap<string, Machine>;
  private readonly loader: Loader;
  private readonly observer: EngineObserver;
  private readonly notes: Notes | undefined;
  private readonly isKept: (hash: string) => boolean;

  constructor(parts: ShipmentParts) {
    this.store = parts.store;
    this.host = parts.host;
    this.machines = parts.machines;
    this.loader = parts.loader;
    this.observer = parts.observer;
    this.notes = parts.notes;
    this.isKept = parts.isKept;
  }

  /** What is to be said of one entity, read before anything is written: an archive that fails half way has got nothing. */
  async prepare(unshipped: Unshipped, loaded: Loaded, tip: Tip | undefined, letters: boolean): Promise<Prepared> {
    const { entity } = loaded;
    const { records: found, replaces } = await this.beyond(loaded, tip);
    const bound = unshipped.bound(entity, this.host.monotonicMs());
    const records = found.filter((record) => lastOf(record) <= bound);
    const kept = replaces ? undefined : tip;
    const last = records.at(-1);
    const version = last === undefined ? (kept?.version ?? 0) : lastOf(last);
    const isWhole = records.length === found.length;
    const header = await this.headerAt(entity, version);
    const values = await this.valuesOf(entity, records);
    return {
      entity,
      records,
      replaces,
      header,
      values,
      letters: letters && isWhole ? await this.lettersOf(entity) : null,
      listings: this.listingsOf(entity, records),
      entries: await this.entriesOf(entity, records, version),
      version,
      lastRecord: last?.version ?? kept?.firstVersion ?? 0,
      definitions: await this.definitionsOf(records),
      chars: [...records, ...values].reduce((sum, { text }) => sum + text.length, 0),
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

  private async valuesOf(entity: string, records: readonly JournalRecord[]): Promise<StoredRecord[]> {
    const hashes = new Set<string>();
    for (const { text } of records) for (const [, hash] of text.matchAll(VALUE_NAME)) hashes.add(hash!);
    return this.found([...hashes].map((hash) => ({ scope: entity, hash })));
  }

  /** What stands beside a journal without being named in it, such as what handlers have logged: the parts of each in turn. */
  async notesOf(entity: string): Promise<readonly StoredRecord[]> {
    const [loaded] = await this.store.journal.load([{ ...this.place(entity), aboveVersion: 0 }]);
    const found: StoredRecord[] = [];
    let open = this.notes?.(loaded!.records) ?? [];
    for (let part = 0; open.length > 0; part++) {
      const keys = open.map((name) => ({ scope: entity, hash: name(part) }));
      const parts = await this.found(keys);
      found.push(...parts);
      const names = new Set(parts.map(({ hash }) => hash));
      open = open.filter((name) => names.has(name(part)));
    }
    return found;
  }

  private async definitionsOf(records: readonly JournalRecord[]): Promise<readonly StoredRecord[]> {
    const first = records[0];
    if (first?.version !== 1) return [];
    const machine = this.machines.get(entityKind(first.entity));
    const hash = machine?.definitionOf((JSON.parse(first.text) as MachineEvent[])[0]!);
    if (hash === undefined || this.isKept(hash)) return [];
    return this.found([{ scope: DEFINITION_SCOPE, hash }]);
  }

  /** The lists as the last of these records leaves them. Few events say anything of them, and each says all. */
  private listingsOf(entity: string, records: readonly JournalRecord[]): readonly Listed[] | null {
    const machine = this.machines.get(entityKind(entity));
    if (machine?.lastingLists === undefined) return null;
    for (const { text } of records.toReversed()) {
      // Most records need not be read for it.
      if (!text.includes('"labels":')) continue;
      for (const event of (JSON.parse(text) as MachineEvent[]).toReversed()) {
        const lists = machine.lastingLists(entityId(entity), event);
        if (lists !== undefined) {
          return lists.flatMap(({ list, id, text: shown }) =>
            shown === null ? [] : [{ list, id, entity, atMs: event.atMs, text: shown }],
          );
        }
      }
    }
    return null;
  }

  /** What these records have left on other lists, as it stands there. Only the whole journal tells under which names. */
  private async entriesOf(
    entity: string,
    records: readonly JournalRecord[],
    version: number,
  ): Promise<readonly Listed[]> {
    const machine = this.machines.get(entityKind(entity));
    if (machine?.lastingEntries === undefined || !records.some(({ text }) => mayTellDecision(text))) return [];
    const [whole] = await this.store.journal.load([{ ...this.place(entity), aboveVersion: 0 }]);
    const events = whole!.records
      .filter((record) => lastOf(record) <= version)
      .flatMap(({ text }) => JSON.parse(text) as MachineEvent[]);
    const count = records.reduce((sum, record) => sum + record.count, 0);
    const places = machine.lastingEntries(entityId(entity), events, events.length - count);
    const found = await Promise.all(places.map(({ list, id }) => this.store.queries.listed(list, id)));
    return found.filter((listed) => listed !== null);
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

  place(entity: string): { readonly entity: string; readonly partition: number } {
    return { entity, partition: partitionOf(entity, this.store.capabilities.partitionCount) };
  }
}

/** Whether a record may tell what somebody made of a proposal: the decision stands in it beside what came of it. */
function mayTellDecision(text: string): boolean {
  return text.includes('"command":"decideReview"');
}

function lastOf({ version, count }: JournalRecord): number {
  return version + count - 1;
}
