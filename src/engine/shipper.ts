import type { Host } from "../host/host.ts";
import type { Archive } from "../store/archive.ts";
import type { Store } from "../store/contract.ts";
import type { EngineObserver } from "./observer.ts";
import type { Owner } from "./owner.ts";
import type { ShippingSettings } from "./settings.ts";
import { type Prepared, type ShipmentParts, Shipments } from "./shipments.ts";
import { ShippedNames } from "./shipped-names.ts";
import type { Ripe, Unshipped } from "./unshipped.ts";

/** Entities and characters that go to the archive at once. */
const MAX_ENTITIES = 100;
const MAX_CHARS = 4 * 1024 * 1024;
/** Of these, how many are read from the store at a time. */
const AT_ONCE = 20;
/** Entries of the list that are read at once. */
const PAGE = 500;
/** How often a partition with nothing to ship says that it has nothing. */
const QUIET_MS = 10_000;
/** How long after the end of something its notes are shipped, and of how many that is remembered. */
const NOTES_MS = 2_000;
const MAX_ENDED = 100_000;
/** How long to leave an archive alone that does not answer. */
const TROUBLE_MS = 1_000;

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
  private readonly owners: () => readonly Owner[];
  private readonly observer: EngineObserver;
  private readonly names: ShippedNames;
  private readonly shipments: Shipments;
  private readonly saidAtMs = new Map<number, number>();
  /** What was shipped to its end, and when: its notes follow. */
  private readonly ended = new Map<string, number>();
  private trouble: string | undefined;

  constructor(
    parts: Omit<ShipmentParts, "isKept"> & {
      readonly archive: Archive;
      readonly settings: ShippingSettings;
      readonly owners: () => readonly Owner[];
    },
  ) {
    this.store = parts.store;
    this.archive = parts.archive;
    this.host = parts.host;
    this.settings = parts.settings;
    this.owners = parts.owners;
    this.observer = parts.observer;
    this.names = new ShippedNames(parts.store, parts.archive);
    this.shipments = new Shipments({ ...parts, isKept: (hash) => this.names.isKept(hash) });
  }

  get state(): ShippingState {
    let behind = 0;
    for (const { unshipped } of this.owners()) behind += unshipped?.size ?? 0;
    return { behind, trouble: this.trouble };
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let trouble: string | undefined;
      // Before what calls them: an execution that comes back without the names it calls can only fail.
      const isFirst = this.owners().some(({ partition }) => partition === 0);
      if (isFirst) trouble = await this.attempt(() => this.names.ship());
      for (const owner of this.owners()) {
        // One partition that has trouble does not keep the others from it.
        if (!signal.aborted) trouble = (await this.attempt(() => this.shipOwner(owner))) ?? trouble;
      }
      if (!signal.aborted) trouble = (await this.attempt(() => this.shipNotes())) ?? trouble;
      if (signal.aborted) return;
      this.settle(trouble);
      if (trouble !== undefined) await this.host.sleep(TROUBLE_MS, signal);
      await this.host.sleep(this.settings.everyMs, signal);
    }
  }

  /** What is written beside a journal may come a little after its end, and nobody says when it is complete. */
  private async shipNotes(): Promise<void> {
    const beforeMs = this.host.monotonicMs() - NOTES_MS;
    for (const [entity, endedAtMs] of this.ended) {
      if (endedAtMs > beforeMs) return;
      await this.archive.keep(await this.shipments.notesOf(entity));
      this.ended.delete(entity);
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
        return { ...this.shipments.place(entity), aboveVersion: tip === undefined ? 0 : tip.firstVersion - 1 };
      }),
    );
    let prepared: Prepared[] = [];
    let chars = 0;
    for (let i = 0; i < ripe.length; i += AT_ONCE) {
      const some = ripe.slice(i, i + AT_ONCE).map(({ entity, letters }, k) => {
        return this.shipments.prepare(unshipped, loaded[i + k]!, tips.get(entity), letters);
      });
      for (const one of await Promise.all(some)) {
        prepared.push(one);
        chars += one.chars;
      }
      if (chars < MAX_CHARS) continue;
      await this.send(owner, unshipped, prepared);
      prepared = [];
      chars = 0;
    }
    if (prepared.length > 0) await this.send(owner, unshipped, prepared);
  }

  private async send(owner: Owner, unshipped: Unshipped, prepared: readonly Prepared[]): Promise<void> {
    const { partition, incarnation, epoch } = owner.tenure;
    const definitions = prepared.flatMap((one) => one.definitions);
    if (definitions.length > 0) await this.archive.keep(definitions);
    // Somebody else may own it by now, and we would not know: what we say of it would not be all that there is.
    if (!owner.valid || this.host.monotonicMs() >= owner.leaseUntilMs) return;
    const outcome = await this.archive.ship({
      partition,
      incarnation,
      epoch,
      timeMs: Math.floor(owner.time.nowMs()),
      behind: unshipped.behindAfter(prepared),
      entities: prepared,
    });
    if (outcome === "fenced") return;
    if (outcome === "foreign") this.observer.archiveForeign?.();
    if (outcome === "foreign") throw new Error("the archive belongs to another store: see `millrace recover`");
    this.saidAtMs.set(partition, this.host.monotonicMs());
    this.names.keep(definitions);
    for (const { entity, version, header, records, lastRecord } of prepared) {
      if (owner.valid) unshipped.shipped(entity, version, header, lastRecord);
      if (header !== null && header.class !== "open" && this.ended.size < MAX_ENDED) {
        this.ended.set(entity, this.host.monotonicMs());
      }
      this.observer.shipped?.(entity, records.length);
    }
  }
}
