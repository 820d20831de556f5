import type {
  DeadLetter,
  EntityKey,
  Header,
  Journal,
  JournalRecord,
  Listed,
  Published,
  Queries,
  Records,
  StoredRecord,
} from "./contract.ts";

/**
 * A cold store behind the one that works: journals are copied there record by record and stay for good. It takes no
 * part in deciding anything; it may be away, and nothing but what needs it waits. docs/archive.md tells the whole.
 */
export interface Archive extends ColdReads {
  /** The last record that is kept of each; one of which nothing is kept is not in the answer. */
  tips(entities: readonly EntityKey[]): Promise<ReadonlyMap<EntityKey, Tip>>;
  /** Keeps all of it or nothing. Again is the same as once. */
  ship(shipment: Shipment): Promise<ShipOutcome>;
  /** Keeps records that belong to no execution. */
  keep(records: readonly StoredRecord[]): Promise<void>;
  /** Keeps what stands under a name, with the numbers it has there; what is kept and not given is gone. */
  keepPublished(name: string, versions: readonly Published[]): Promise<void>;
  /** Keeps that these are all names there are. */
  keepNames(names: readonly string[]): Promise<void>;
  /** How far each partition has come. */
  progress(): Promise<readonly Progress[]>;
  /** From now on it belongs to another store: one that was rebuilt from it. */
  adopt(incarnation: string): Promise<void>;
  /** Which store it belongs to; null before anything was shipped. */
  owner(): Promise<string | null>;
  /** All names, with every number that was ever given out under them. */
  names(): Promise<readonly KeptName[]>;
  /** Everything kept under one scope. */
  scope(scope: string): Promise<readonly StoredRecord[]>;
  /** The entities behind `after` in order of their names whose journals end open, as far as their headers tell. */
  open(after: EntityKey, limit: number): Promise<readonly Header[]>;
  close(): Promise<void>;
}

/** What can be read of any store without taking part in it. */
export interface ColdReads {
  readonly journal: Pick<Journal, "load">;
  readonly records: Pick<Records, "get">;
  readonly queries: Pick<Queries, "headers" | "header" | "deadLetters" | "deadLetter" | "listing">;
}

/** The last record of a journal: its last event's version, and its text's hash, so that two histories are told apart. */
export interface Tip {
  readonly firstVersion: number;
  readonly version: number;
  readonly hash: string;
}

/** What the owner of a partition has to say. */
export interface Shipment {
  readonly partition: number;
  /** Of the owner's tenure: one that was replaced meanwhile has nothing to say any more. */
  readonly incarnation: string;
  readonly epoch: number;
  readonly timeMs: number;
  /** Entities that have something that is not shipped, after this. */
  readonly behind: number;
  readonly entities: readonly ShippedEntity[];
}

export interface ShippedEntity {
  readonly entity: EntityKey;
  /** Follow what is kept without a gap, unless they replace it. */
  readonly records: readonly JournalRecord[];
  /** What is kept of its journal tells another history, which is none any more. */
  readonly replaces: boolean;
  readonly header: Header | null;
  /** The values its records name. */
  readonly values: readonly StoredRecord[];
  /** All it has now; null if they have not changed. */
  readonly letters: readonly DeadLetter[] | null;
  /** All lists that it stays on by what it is; null if they have not changed. */
  readonly listings: readonly Listed[] | null;
  /** What has come on other lists with these records, beside what is kept there. */
  readonly entries: readonly Listed[];
}

/**
 * - `fenced`: a later owner of this partition has shipped.
 * - `foreign`: the archive belongs to another store.
 */
export type ShipOutcome = "shipped" | "fenced" | "foreign";

export interface Progress {
  readonly partition: number;
  readonly epoch: number;
  readonly timeMs: number;
  readonly behind: number;
}

export interface KeptName {
  readonly name: string;
  readonly versions: readonly (Published & { readonly isGone: boolean })[];
}
