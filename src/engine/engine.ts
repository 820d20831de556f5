import type { Machine } from "../core/machine.ts";
import { type Message, readMessage } from "../core/message.ts";
import type { Host } from "../host/host.ts";
import type { Archive } from "../store/archive.ts";
import type { ReadRequest, ReadResult, Store } from "../store/contract.ts";
import type { BatchBuilder } from "./batch.ts";
import { Blame } from "./blame.ts";
import { Committer, type Formed, STORE_TROUBLE_MS } from "./committer.ts";
import { Loader } from "./loader.ts";
import { type EngineObserver, safely } from "./observer.ts";
import { DecisionFailed, type Incoming, Owner } from "./owner.ts";
import { Recall } from "./recall.ts";
import { DEFAULT_SETTINGS, DEFAULT_SHIPPING, type EngineSettings } from "./settings.ts";
import type { Notes } from "./shipments.ts";
import { Shipper, type ShippingState } from "./shipper.ts";
import { RoomMaker } from "./room-maker.ts";
import { Supply } from "./supply.ts";
import { Tenures } from "./tenures.ts";
import { fillWakes, needsWakes } from "./wake-filling.ts";

export interface EngineOptions {
  readonly store: Store;
  readonly host: Host;
  readonly machines: readonly Machine[];
  readonly settings?: Partial<EngineSettings>;
  readonly observer?: EngineObserver;
  /** Where journals are kept for good, and what goes there with them. */
  readonly archive?: Archive;
  readonly notes?: Notes;
}

const NOTHING_READ: Incoming = { position: null, messages: [], rubbish: [] };

/** Tells the messages of a read from what nobody can make anything of. */
function sort(read: ReadResult): Incoming {
  const messages: Message[] = [];
  const rubbish: string[] = [];
  for (let i = 0; i < read.messages.length; i++) {
    const text = read.messages[i]!;
    const message = (read.values?.[i] as Message | undefined) ?? readMessage(text);
    if (message === undefined) rubbish.push(text);
    else messages.push(message);
  }
  // What was read may stay reachable for many minor collections (scavenges) after its use: so it lets go of the messages.
  read.values?.fill(undefined);
  return { position: read.messages.length === 0 ? null : read.position, messages, rubbish };
}

/** So few are decided in less time than a commit takes; whoever comes until that has ended is worth the time. */
const FEW_MESSAGES = 50;
/** Leases that are ended at a time. */
const MOST_LAPSED = 1000;
/** Careful mode ends after this many items that did not kill us. */
const CAREFUL_ITEMS = 20;

/**
 * The shell round the core: reads what came, decides it, commits all of it at once, and only that makes it true.
 *
 * A commit is under way while the next batch forms, on memory that is ahead of the store. If the commit fails, that memory is
 * thrown away, with whatever was sent behind it.
 */
export class Engine {
  readonly name: string;
  private readonly store: Store;
  private readonly host: Host;
  private readonly settings: EngineSettings;
  private readonly observer: EngineObserver;
  private readonly loader: Loader;
  private readonly tenures: Tenures;
  private readonly blame: Blame;
  private readonly committer: Committer;
  private readonly supply: Supply;
  private readonly shipper: Shipper | undefined;
  private readonly stopping = new AbortController();
  /** Aborted when nobody should wait for messages any more. */
  private readonly stopWaiting: AbortSignal;
  /** Ends the wait of the read that is under way, or does nothing if it has ended. */
  private stopReading: (() => void) | undefined;
  private carefulTurn = 0;
  private loops: Promise<unknown> | undefined;

  constructor(options: EngineOptions) {
    this.store = options.store;
    this.host = options.host;
    const { archive } = options;
    const settings = { ...DEFAULT_SETTINGS, ...options.settings };
    const shipping = archive === undefined ? null : (settings.shipping ?? DEFAULT_SHIPPING);
    this.settings = { ...settings, shipping };
    this.observer = safely(options.observer ?? {});
    this.blame = new Blame(options.store, options.host, this.settings, this.observer);
    this.name = `engine-${options.host.id()}`;
    const machines = new Map(options.machines.map((machine) => [machine.kind, machine]));
    this.loader = new Loader(options.store, machines);
    const { definitions } = this.loader;
    this.tenures = new Tenures(options.store, options.host, this.settings, this.name, this.observer, definitions);
    this.committer = new Committer({
      store: options.store,
      host: options.host,
      tenures: this.tenures,
      blame: this.blame,
      followEntries: settings.followEntries,
      stopping: this.stopping.signal,
    });
    // Not `AbortSignal.any`: Node keeps such a signal for ever as long as somebody listens to it.
    const noWait = new AbortController();
    this.stopWaiting = noWait.signal;
    for (const signal of [this.stopping.signal, this.tenures.handingOver]) {
      signal.addEventListener("abort", () => noWait.abort(), { once: true });
    }
    // One listener for all reads, of which there is one at a time: one for each would be put there and removed at every step.
    noWait.signal.addEventListener("abort", () => this.stopReading?.(), { once: true });
    const { store, host, loader, observer, committer } = this;
    const recall = archive === undefined ? undefined : new Recall(archive, host, machines);
    this.supply = new Supply({ store, loader, committer, recall, keepMs: shipping?.keepMs ?? 0, observer });
    if (archive === undefined || shipping === null) return;
    const { notes } = options;
    const owners = (): readonly Owner[] => this.tenures.owners();
    this.shipper = new Shipper({ store, archive, host, settings: shipping, machines, loader, owners, observer, notes });
  }

  start(): void {
    const { signal } = this.stopping;
    this.loops = Promise.all([this.work(), this.tenures.run(signal), this.lapse(), this.roomMaker()?.run(signal)]);
    // Nobody waits for it, at the end either: it may be asking an archive that does not answer.
    void this.shipper?.run(signal);
  }

  /** How the archive is doing; undefined if there is none. */
  get shipping(): ShippingState | undefined {
    return this.shipper?.state;
  }

  /** How many partitions it owns. */
  get partitionsHeld(): number {
    return this.tenures.owners().length;
  }

  /** Whether it does what it is there for, or stands by to: without its store for longer than a lease it does neither. */
  get isCurrent(): boolean {
    return this.tenures.isCurrent;
  }

  /** Hands everything over to the other engines, if there are any, and goes on with what they do not take. */
  leave(): Promise<void> {
    return this.tenures.leave();
  }

  /** Hands over, finishes the commit under way, gives back what is left, and ends. */
  async stop(): Promise<void> {
    await this.leave();
    this.stopping.abort();
    await this.loops;
    await this.committer.inFlight;
    await this.tenures.releaseAll();
  }

  private async work(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        const formed = await this.form();
        if (formed.length === 0) await this.committer.oldest;
        else if (formed.some(({ builder }) => builder.isEmpty)) await this.committer.inFlight;
        else await this.committer.untilTurnOf(formed);
        const current = formed.filter(({ owner, builder }) => owner.valid && !builder.isEmpty);
        for (const { owner, builder } of formed) if (owner.valid && builder.isEmpty) owner.cameToNothing(builder);
        if (current.length > 0) this.committer.begin(current);
      } catch {
        // The store did not answer a read. Nothing was decided on it, so there is nothing to undo.
        await this.host.sleep(STORE_TROUBLE_MS, this.stopping.signal);
      }
    }
  }

  // ── forming a batch ───────────────────────────────────────────────────────────────────────────────────────────

  private async form(): Promise<readonly Formed[]> {
    const all = this.tenures.owners();
    if (all.some((owner) => owner.careful || owner.leaving)) await this.committer.inFlight;
    for (const owner of all) if (owner.leaving && owner.valid) await this.tenures.release(owner);
    const owners = this.whoseTurn();
    if (owners.length === 0) {
      await this.tenures.untilTaken(Math.min(this.settings.renewMs, this.settings.idleMs));
      return [];
    }
    const { horizonMs } = this.settings;
    for (const owner of owners) if (needsWakes(owner, horizonMs)) await fillWakes(owner, this.store.journal, horizonMs);
    const { maxBatchEntries, maxBatchBytes } = this.store.capabilities;
    const requests = owners.map((owner) => ({
      partition: owner.partition,
      after: owner.inFlight?.position ?? null,
      limit: owner.careful ? 1 : Math.max(1, Math.floor(maxBatchEntries / 4)),
      maxChars: Math.floor(maxBatchBytes / 2),
    }));
    const committed = owners.map((owner) => owner.committedBatch);
    const reads = await this.read(requests, this.idleTime(owners));
    if (reads === undefined || this.isWorthWaiting(owners, reads)) return [];
    const byPartition = new Map(reads.map((read) => [read.partition, read]));
    for (const [i, owner] of owners.entries()) {
      const { partition, limit, maxChars } = requests[i]!;
      const { messages = [], isPartial = false } = byPartition.get(partition) ?? {};
      const chars = messages.reduce((sum, text) => sum + text.length, 0);
      // A read that stopped at a bound says nothing about what lies behind it.
      const isDrained = !isPartial && messages.length < limit && chars < maxChars / 2;
      owner.noteRead({ count: messages.length, isDrained, committedBatch: committed[i]! });
    }
    let trouble = false;
    // All at once: what they load travels together, where a store can do that.
    const builders = await Promise.all(
      owners.map(async (owner): Promise<BatchBuilder | undefined> => {
        try {
          return owner.valid ? await this.formOne(owner, byPartition.get(owner.partition)) : undefined;
        } catch {
          // The store did not answer for this partition. What was formed for the others is in memory: it must go out.
          trouble = true;
          return undefined;
        }
      }),
    );
    const formed = owners.flatMap((owner, i): Formed[] => {
      const builder = builders[i];
      return builder === undefined ? [] : [{ owner, builder }];
    });
    if (trouble && formed.every(({ builder }) => builder.isEmpty))
      await this.host.sleep(STORE_TROUBLE_MS, this.stopping.signal);
    return formed;
  }

  /**
   * Few messages came while a commit is under way, and the next commit cannot go out before that has ended: so more may be waited for
   * at no cost. A batch formed now would leave out everybody who comes until then: of those who wait for an answer a third would be
   * in each commit, instead of half. Not where a read is a round trip, as it would be made twice.
   */
  private isWorthWaiting(owners: readonly Owner[], reads: readonly ReadResult[]): boolean {
    if (!this.committer.isUnderWay || !this.store.capabilities.volatileInbox) return false;
    const count = reads.reduce((sum, { messages }) => sum + messages.length, 0);
    return count > 0 && count < FEW_MESSAGES && owners.every(({ busy }) => busy.size === 0);
  }

  /** undefined = not waited for, since there is something better to do; nothing is known of the inbox then. */
  private read(requests: readonly ReadRequest[], waitMs: number): Promise<readonly ReadResult[] | undefined> {
    const reading = this.store.inbox.read(requests, waitMs);
    if (waitMs === 0 || this.stopWaiting.aborted) return reading;
    return new Promise((resolve, reject) => {
      this.stopReading = () => resolve(undefined);
      reading.then(resolve, reject);
    });
  }

  /**
   * All partitions; but while one of them has announced an item, that one alone. If we die then, it was that item, and
   * not what another partition was doing at the time.
   */
  private whoseTurn(): Owner[] {
    const owners = this.tenures.owners();
    const announced = owners.find((owner) => owner.announced !== null);
    if (announced !== undefined) return [announced];
    const careful = owners.filter((owner) => owner.careful);
    const turn = careful[this.carefulTurn++ % Math.max(1, careful.length)];
    return owners.filter((owner) => !owner.careful || owner === turn);
  }

  /** How long there is nothing to do, as far as we know. */
  private idleTime(owners: readonly Owner[]): number {
    let idleMs = this.settings.idleMs;
    for (const owner of owners) {
      if (owner.busy.size > 0 || owner.unshipped?.hasDone === true) return 0;
      const next = owner.wakes.nextMs();
      if (next !== null) idleMs = Math.min(idleMs, Math.max(0, next - owner.time.nowMs()));
    }
    return Math.ceil(idleMs);
  }

  private async formOne(owner: Owner, read: ReadResult | undefined): Promise<BatchBuilder | undefined> {
    const incoming = read === undefined ? NOTHING_READ : sort(read);
    owner.sweepSome();
    const due = owner.wakes.takeDue(owner.time.nowMs(), owner.careful ? 1 : this.settings.maxWakes);
    // Most of many partitions have nothing to do most of the time.
    if (incoming.position === null && due.length === 0 && owner.isAtRest) return undefined;
    try {
      if (owner.careful) return await this.formCarefully(owner, incoming, due);
      return await this.decide(owner, incoming, [...due, ...owner.absent()]);
    } catch (error) {
      for (const key of due) owner.wakes.file(key, owner.time.nowMs());
      if (!(error instanceof DecisionFailed)) throw error;
      // In memory that is worth nothing any more it may have missed what never came to be.
      if (owner.valid) this.blame.giveUp(owner, error);
      return undefined;
    }
  }

  private async decide(
    owner: Owner,
    incoming: Incoming,
    due: readonly string[],
    only?: string,
  ): Promise<BatchBuilder | undefined> {
    await this.supply.bringIn(owner, incoming.messages, due);
    await this.supply.lookForCallers(owner, due);
    if (!owner.valid) return undefined;
    const builder = owner.newBatch();
    builder.definitions = owner.definitions.sightings;
    // What was announced has been survived: that has to be said, also if nothing came of it.
    builder.mustGoOut = only !== undefined;
    builder.item = only === undefined || only === "" ? null : only;
    try {
      owner.take(builder, incoming, due);
      for (;;) {
        const needs = owner.advance(builder, only);
        if (needs.size === 0) break;
        await this.supply.fetch(owner, needs, builder);
        if (!owner.valid) return undefined;
      }
      owner.finish(builder);
      owner.unpin();
    } catch (error) {
      // Memory is ahead of what will be stored: whatever this batch has touched must be read again.
      await this.committer.inFlight;
      owner.abandon(builder);
      throw error;
    }
    if (incoming.position !== null) owner.inFlight = { batch: builder.number, position: incoming.position };
    if (owner.mayRestore) await this.supply.restoreTasks(owner);
    return builder;
  }

  // ── what kills, what throws ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Something in this partition kills its owner, or is rejected by the store. One item at a time: first a commit that names
   * what comes next, then that alone. Whoever finds the name of its predecessor's last item there knows what to leave alone.
   */
  private async formCarefully(
    owner: Owner,
    incoming: Incoming,
    due: readonly string[],
  ): Promise<BatchBuilder | undefined> {
    const { messages } = incoming;
    if (incoming.rubbish.length > 0) {
      for (const key of due) owner.wakes.file(key, owner.time.nowMs());
      return this.decide(owner, incoming, [], "");
    }
    const sent = messages[0]?.to;
    const waiting = due[0] ?? owner.busy.values().next().value;
    // By turns: where messages never end, nobody would come to what waits, and that may be it.
    const item = owner.announced ?? (owner.carefulItems % 2 === 0 ? (sent ?? waiting) : (waiting ?? sent));
    if (item === undefined) {
      if (++owner.carefulItems < CAREFUL_ITEMS) return undefined;
      owner.careful = false;
      const builder = owner.newBatch();
      builder.mustGoOut = true;
      return builder;
    }
    const isKnown = owner.suspects.has(item);
    if (owner.announced !== item && !isKnown) {
      for (const key of due) owner.wakes.file(key, owner.time.nowMs());
      owner.announced = item;
      const builder = owner.newBatch();
      builder.mustGoOut = true;
      return builder;
    }
    owner.announced = null;
    if (++owner.carefulItems >= CAREFUL_ITEMS) owner.careful = false;
    const forOthers = due.filter((key) => key !== item);
    for (const key of forOthers) owner.wakes.file(key, owner.time.nowMs());
    const isMessage = messages[0]?.to === item;
    return this.decide(owner, isMessage ? incoming : NOTHING_READ, isMessage ? [] : [item], item);
  }

  private async lapse(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        await this.store.tasks.lapse(MOST_LAPSED);
      } catch {
        // The next engine, or the next second, will do it.
      }
      await this.host.sleep(this.settings.renewMs, this.stopping.signal);
    }
  }

  private roomMaker(): RoomMaker | undefined {
    const { store, host, observer } = this;
    const { retentionMs, keepEnded, renewMs } = this.settings;
    // With an archive nothing is hurried: what is not shipped must stay, and what is goes soon.
    if (retentionMs === null || this.shipper !== undefined) return undefined;
    const owners = (): readonly Owner[] => this.tenures.owners();
    return new RoomMaker({ store, host, owners, settings: { retentionMs, keepEnded, renewMs }, observer });
  }
}
