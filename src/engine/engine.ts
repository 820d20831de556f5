import { partitionOf } from "../core/entity.ts";
import type { Machine, MachineEvent } from "../core/machine.ts";
import { type Need, needKey } from "../core/machine.ts";
import { type Message, readMessage } from "../core/message.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { Archive } from "../store/archive.ts";
import type { CommitBatch, CommitOutcome, ReadRequest, ReadResult, Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";
import { type BatchBuilder, placed } from "./batch.ts";
import { Blame } from "./blame.ts";
import { Loader, ValueMissing } from "./loader.ts";
import { type EngineObserver, safely } from "./observer.ts";
import { DecisionFailed, type Incoming, Owner } from "./owner.ts";
import { isYoung, mayBeRecalled, Recall } from "./recall.ts";
import type { Orphan } from "./resident.ts";
import { DEFAULT_SETTINGS, DEFAULT_SHIPPING, type EngineSettings } from "./settings.ts";
import type { Notes } from "./shipments.ts";
import { Shipper, type ShippingState } from "./shipper.ts";
import { RoomMaker } from "./room-maker.ts";
import { Tenures } from "./tenures.ts";

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
  // What was read may outlive its use by many quick collections, with all that it holds: so it holds no messages any more.
  read.values?.fill(undefined);
  return { position: read.messages.length === 0 ? null : read.position, messages, rubbish };
}

interface Formed {
  readonly owner: Owner;
  readonly builder: BatchBuilder;
}

/** What came of a batch. Unknown: two tries with the same bytes have brought no answer, and why the second did not. */
type Sent = CommitOutcome | { readonly kind: "unknown"; readonly error: unknown };

/** How long to leave a store alone after it has failed. */
const STORE_TROUBLE_MS = 200;
/** A store without a limit of its own is asked how much it holds once in so many renewals: counting may cost it something. */
const UNLIMITED_RENEWALS = 60;
/** After how long it is asked again while there is more to remove. */
const AT_ONCE_MS = 50;
/** So few are decided in less time than a commit takes; whoever comes until that has ended is worth the time. */
const FEW_MESSAGES = 50;
/** Careful mode ends after this many items that did not kill us. */
const CAREFUL_ITEMS = 20;

/**
 * The shell round the core: reads what came, decides it, commits all of it at once, and only that makes it true.
 *
 * One commit per partition is under way at any time; the next batch forms meanwhile, on memory that is ahead of the
 * store. If the commit fails, that memory is thrown away.
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
  private readonly shipper: Shipper | undefined;
  private readonly recall: Recall | undefined;
  private readonly stopping = new AbortController();
  /** Aborted when nobody should wait for messages any more. */
  private readonly stopWaiting: AbortSignal;
  /** Ends the wait of the read that is under way, or does nothing if it has ended. */
  private stopReading: (() => void) | undefined;
  private carefulTurn = 0;
  private inFlight: Promise<void> = Promise.resolve();
  private isCommitting = false;
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
    // Not `AbortSignal.any`: Node keeps such a signal for ever as long as somebody listens to it.
    const noWait = new AbortController();
    this.stopWaiting = noWait.signal;
    for (const signal of [this.stopping.signal, this.tenures.handingOver]) {
      signal.addEventListener("abort", () => noWait.abort(), { once: true });
    }
    // One listener for all reads, of which there is one at a time: one for each would be put there and removed at every step.
    noWait.signal.addEventListener("abort", () => this.stopReading?.(), { once: true });
    if (archive === undefined || shipping === null) return;
    const { store, host, loader, observer } = this;
    const { notes } = options;
    const owners = (): readonly Owner[] => this.tenures.owners();
    this.recall = new Recall(archive, host, machines);
    this.shipper = new Shipper({ store, archive, host, settings: shipping, machines, loader, owners, observer, notes });
  }

  start(): void {
    const { signal } = this.stopping;
    this.loops = Promise.all([this.work(), this.tenures.run(signal), this.lapse(), this.makeRoom()]);
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
    await this.inFlight;
    await this.tenures.releaseAll();
  }

  private async work(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        const formed = await this.form();
        await this.inFlight;
        const current = formed.filter(({ owner, builder }) => owner.valid && !builder.isEmpty);
        for (const { owner, builder } of formed) if (owner.valid && builder.isEmpty) owner.cameToNothing(builder);
        if (current.length > 0) this.inFlight = this.underWay(current);
      } catch {
        // The store did not answer a read. Nothing was decided on it, so there is nothing to undo.
        await this.host.sleep(STORE_TROUBLE_MS, this.stopping.signal);
      }
    }
  }

  private async underWay(formed: readonly Formed[]): Promise<void> {
    this.isCommitting = true;
    try {
      await this.commit(formed);
    } catch {
      this.distrust(formed);
    } finally {
      this.isCommitting = false;
    }
  }

  /** Our own code failed in the middle of a commit: what is in memory may not be what is stored. */
  private distrust(formed: readonly Formed[]): void {
    for (const { owner } of formed) this.tenures.stepDown(owner, "failed commit");
  }

  // ── forming a batch ───────────────────────────────────────────────────────────────────────────────────────────

  private async form(): Promise<readonly Formed[]> {
    const all = this.tenures.owners();
    if (all.some((owner) => owner.careful || owner.leaving)) await this.inFlight;
    for (const owner of all) if (owner.leaving && owner.valid) await this.tenures.release(owner);
    const owners = this.whoseTurn();
    if (owners.length === 0) {
      await this.tenures.untilTaken(Math.min(this.settings.renewMs, this.settings.idleMs));
      return [];
    }
    for (const owner of owners) if (this.needsWakes(owner, this.datesUpToMs(owner))) await this.fillWakes(owner);
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
   * Few messages came while a commit is under way. What is formed now would leave behind all who come until that has ended:
   * of those who wait for an answer a third would be in each commit, where it can be half of them. Nobody waits longer, as
   * the next commit cannot go out before. Where a read is a round trip it is not made twice.
   */
  private isWorthWaiting(owners: readonly Owner[], reads: readonly ReadResult[]): boolean {
    if (!this.isCommitting || !this.store.capabilities.volatileInbox) return false;
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
      this.blame.giveUp(owner, error);
      return undefined;
    }
  }

  private async decide(
    owner: Owner,
    incoming: Incoming,
    due: readonly string[],
    only?: string,
  ): Promise<BatchBuilder | undefined> {
    await this.bringIn(owner, incoming.messages, due);
    await this.lookForCallers(owner, due);
    if (!owner.valid) return undefined;
    const builder = owner.newBatch();
    builder.definitions = owner.definitions.sightings;
    // What was announced has been survived: that has to be said, also if nothing came of it.
    builder.announcement = only !== undefined;
    builder.item = only === undefined || only === "" ? null : only;
    try {
      owner.take(builder, incoming, due);
      for (;;) {
        const needs = owner.advance(builder, only);
        if (needs.size === 0) break;
        await this.fetch(owner, needs, builder);
        if (!owner.valid) return undefined;
      }
      owner.finish(builder);
      owner.unpin();
    } catch (error) {
      // Memory is ahead of what will be stored: whatever this batch has touched must be read again.
      await this.inFlight;
      owner.abandon(builder);
      throw error;
    }
    if (incoming.position !== null) owner.inFlight = { batch: builder.number, position: incoming.position };
    if (owner.restorable.size > 0) await this.restoreTasks(owner);
    return builder;
  }

  /** Loads what messages and wakes will touch, in one round trip, before anything is decided. */
  private async bringIn(owner: Owner, messages: readonly Message[], due: readonly string[]): Promise<void> {
    owner.pinOthers();
    owner.unknown.clear();
    owner.unanswered.clear();
    owner.definitions.begin();
    const missing = new Set<string>();
    const starts = new Map<string, Message>();
    for (let i = 0; i < messages.length; i++) {
      const message = messages[i]!;
      const { to } = message;
      owner.touch(to);
      if (owner.pin(owner.entities.get(to))) continue;
      missing.add(to);
      if (!starts.has(to) && this.loader.isStart(message)) starts.set(to, message);
    }
    for (const key of due) if (!owner.pin(owner.entities.get(key))) missing.add(key);
    if (missing.size === 0) return;
    if (missing.values().some((key) => owner.released.has(key))) await this.inFlight;
    await this.recallSome(owner, messages, missing);
    if (!owner.valid) return;
    const loaded = await this.loader.load([...missing], starts, owner.suspects, owner.definitions);
    for (const [key, entity] of loaded) {
      if (entity.kind === "unknown" || owner.unanswered.has(key)) {
        owner.unknown.add(key);
        continue;
      }
      owner.pin(entity);
      owner.admit(entity);
      if (entity.kind !== "resident" || entity.machine.liveCount(entity.state) === 0) continue;
      if (this.store.capabilities.volatileTasks) await this.noteTasks(owner, key);
    }
  }

  /** A child is kept for as long as its parent: a retry of that wants of the child what it has done, and not all of it again. */
  private async lookForCallers(owner: Owner, due: readonly string[]): Promise<void> {
    const { retention } = owner;
    retention.deserted.clear();
    const children = retention.expiringChildren(due);
    if (children.size === 0) return;
    try {
      const versions = await this.loader.versions(new Set(children.values()));
      for (const [key, caller] of children) if (versions.get(caller) === 0) retention.deserted.add(key);
    } catch {
      // Nobody has to wait for what is only to be tidied up: it is looked at again.
    }
  }

  /** What messages are meant for and only the archive has is put back first, each by a commit of its own. */
  private async recallSome(owner: Owner, messages: readonly Message[], missing: ReadonlySet<string>): Promise<void> {
    if (this.recall === undefined) return;
    const asking = messages.filter((message) => missing.has(message.to) && mayBeRecalled(message));
    if (asking.length === 0) return;
    const versions = await this.loader.versions(new Set(asking.map(({ to }) => to)));
    const absent = asking.filter(({ to }) => versions.get(to) === 0);
    if (absent.length === 0) return;
    const found = await this.recall.find(new Set(absent.map(({ to }) => to)));
    const keepMs = this.settings.shipping?.keepMs ?? 0;
    for (const message of absent) {
      const { to, reply } = message;
      if (found.get(to) !== undefined) continue;
      if (isYoung(message, owner.tenure.storeTimeMs, owner.time.nowMs(), keepMs)) continue;
      // Who waits for an answer is told to come again. Mail has nobody to tell: it is taken as if nothing were there.
      if (reply !== undefined) owner.unanswered.add(to);
    }
    for (const [key, recalled] of found) {
      if (recalled === undefined || recalled.records.length === 0) continue;
      await this.store.records.put(recalled.values);
      await this.inFlight;
      if (!owner.valid) return;
      await this.commit([{ owner, builder: owner.recalling(key, recalled) }]);
      if (!owner.valid) return;
      this.observer.recalled?.(key);
    }
  }

  /** On a store whose queues died with the process, the state says which tasks should be there. */
  private async noteTasks(owner: Owner, key: string): Promise<void> {
    try {
      for (;;) {
        const entity = owner.entities.get(key);
        if (entity?.kind !== "resident") return;
        const { tasks, needs } = entity.machine.openTasks(entity.state, owner.context(entity));
        if (needs.length > 0) {
          await this.fetch(owner, new Map([[key, needs]]));
          continue;
        }
        entity.fetched.clear();
        if (tasks.length > 0) owner.restorable.set(key, tasks);
        return;
      }
    } catch (error) {
      // Not half admitted: the next try loads it again, and makes its tasks again.
      owner.forget(key);
      throw error;
    }
  }

  /**
   * Puts tasks back that were out when their entity was loaded, and still are after what this batch has decided: the
   * result of some may have been waiting in the inbox. What does not reach the store is tried again with the next batch.
   */
  private async restoreTasks(owner: Owner): Promise<void> {
    for (const [key, tasks] of owner.restorable) {
      const entity = owner.entities.get(key);
      const live = new Set(entity?.kind === "resident" ? entity.machine.liveTokens(entity.state) : []);
      const still = tasks.filter((task) => live.has(task.token));
      try {
        const { partition } = owner;
        if (still.length > 0)
          await this.store.tasks.restore(still.map((task) => placed(task, key, partition, this.store.capabilities)));
        owner.restorable.delete(key);
      } catch {
        return;
      }
    }
  }

  private async fetch(
    owner: Owner,
    needs: ReadonlyMap<string, readonly Need[]>,
    builder?: BatchBuilder,
  ): Promise<void> {
    for (const [key, wanted] of needs) {
      try {
        await this.fetchFor(owner, key, wanted, builder);
      } catch (error) {
        throw error instanceof ValueMissing ? new DecisionFailed(key, error) : error;
      }
    }
  }

  private async fetchFor(owner: Owner, key: string, wanted: readonly Need[], builder?: BatchBuilder): Promise<void> {
    const entity = owner.entities.get(key);
    if (entity?.kind !== "resident") return;
    const { machine } = entity;
    const values = new Map<string, Json>();
    const blobs: string[] = [];
    for (const need of wanted) {
      const fresh = "blob" in need ? owner.freshBlobs.get(`${key} ${need.blob.hash}`) : undefined;
      if (fresh !== undefined) values.set(needKey(need), JSON.parse(fresh) as Json);
      else if ("blob" in need) blobs.push(need.blob.hash);
    }
    const texts = await this.loader.fetchBlobs(key, blobs);
    for (const [i, hash] of blobs.entries()) values.set(hash, JSON.parse(texts[i]!) as Json);
    for (const need of wanted) {
      if ("workflow" in need) {
        const { name, version } = need.workflow;
        values.set(needKey(need), await this.loader.findWorkflow(name, version));
      }
      if (!("past" in need)) continue;
      const { version } = need.past;
      const value = machine.pastValue?.(await this.pastEvent(key, version, builder));
      if (value === undefined) throw new ValueMissing(`the event ${version} brought no value`);
      values.set(needKey(need), value);
    }
    owner.give(key, values);
  }

  /** What this batch has decided is in no journal yet, and what the one before has decided is there when it is committed. */
  private async pastEvent(key: string, version: number, builder: BatchBuilder | undefined): Promise<MachineEvent> {
    const event = builder?.eventAt(key, version) ?? (await this.loader.event(key, version));
    if (event !== undefined) return event;
    await this.inFlight;
    const committed = await this.loader.event(key, version);
    if (committed === undefined) throw new ValueMissing(`the event ${version} is not in the journal`);
    return committed;
  }

  private needsWakes(owner: Owner, nowMs: number): boolean {
    return owner.valid && (owner.horizon?.atMs ?? -Infinity) < nowMs + this.settings.horizonMs / 2;
  }

  /** What waits for a date is stored under that date: it may come before our own time gets there. */
  private datesUpToMs({ time }: Owner): number {
    return time.nowMs() + Math.max(0, time.driftMs);
  }

  private async fillWakes(owner: Owner): Promise<void> {
    const aheadMs = Math.max(0, owner.time.driftMs);
    // Of one moment: what comes up while the store answers is for the next turn.
    const nowMs = this.datesUpToMs(owner);
    while (this.needsWakes(owner, nowMs)) {
      const limit = 1000;
      const untilMs = nowMs + this.settings.horizonMs;
      owner.readingMs = untilMs;
      const due = await this.store.journal.due(owner.partition, untilMs, limit, owner.horizon ?? undefined);
      for (const { entity, atMs } of due) if (!owner.hasFiled(entity)) owner.wakes.file(entity, atMs - aheadMs);
      owner.horizon = due.length === limit ? { ...due.at(-1)! } : { atMs: untilMs, entity: "\uffff" };
      owner.readingMs = -Infinity;
    }
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
      builder.announcement = true;
      return builder;
    }
    const isKnown = owner.suspects.has(item);
    if (owner.announced !== item && !isKnown) {
      for (const key of due) owner.wakes.file(key, owner.time.nowMs());
      owner.announced = item;
      const builder = owner.newBatch();
      builder.announcement = true;
      return builder;
    }
    owner.announced = null;
    if (++owner.carefulItems >= CAREFUL_ITEMS) owner.careful = false;
    const forOthers = due.filter((key) => key !== item);
    for (const key of forOthers) owner.wakes.file(key, owner.time.nowMs());
    const isMessage = messages[0]?.to === item;
    return this.decide(owner, isMessage ? incoming : NOTHING_READ, isMessage ? [] : [item], item);
  }

  // ── committing ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Commits all partitions in one call, and settles whatever comes of it. */
  private async commit(formed: readonly Formed[]): Promise<void> {
    await this.renewExpired(formed);
    const ready: Formed[] = [];
    let isTaken = true;
    for (const one of formed) {
      if (!one.owner.valid) continue;
      if (await this.putBlobs(one)) ready.push(one);
      else isTaken = false;
    }
    const current = ready.filter(({ owner }) => owner.valid);
    if (current.length === 0) return isTaken ? undefined : this.leaveAlone();
    const batches = current.map(({ owner, builder }) => owner.seal(builder));
    const outcomes = await this.send(batches);
    for (const [i, { owner, builder }] of current.entries()) {
      await this.settle(owner, builder, outcomes[i]!);
    }
    isTaken &&= !outcomes.some(({ kind }) => kind === "refused");
    if (!isTaken) await this.leaveAlone();
  }

  /** What the store did not take is formed again at once, and would find it as it is. */
  private leaveAlone(): Promise<void> {
    return this.host.sleep(STORE_TROUBLE_MS, this.stopping.signal);
  }

  /** Blobs are there before the commit that names them. */
  private async putBlobs({ owner, builder }: Formed): Promise<boolean> {
    if (builder.blobs.length === 0) return true;
    try {
      await this.store.records.put(builder.blobs);
      return true;
    } catch (error) {
      await this.blame.refusedValues(owner, builder, error);
      this.refuse(owner);
      return false;
    }
  }

  /** Longer without a renewal than a lease lasts: somebody else may own it by now, and we would not know. */
  private async renewExpired(formed: readonly Formed[]): Promise<void> {
    const nowMs = this.host.monotonicMs();
    const expired = formed.filter(({ owner }) => nowMs >= owner.leaseUntilMs);
    if (expired.length === 0) return;
    try {
      await this.tenures.renewNow();
    } catch {
      for (const { owner } of expired) if (owner.valid) await this.tenures.reacquire(owner);
    }
  }

  private async send(batches: readonly CommitBatch[]): Promise<readonly Sent[]> {
    try {
      return await this.store.journal.commit(batches);
    } catch (error) {
      await this.leaveAlone();
      // No partition fails for a value of another: it is told apart by which one fails alone.
      const parts = error instanceof StoreError ? [batches] : batches.map((batch) => [batch]);
      return (await Promise.all(parts.map((part) => this.resend(part)))).flat();
    }
  }

  private async resend(batches: readonly CommitBatch[]): Promise<readonly Sent[]> {
    try {
      return await this.store.journal.commit(batches);
    } catch (error) {
      await this.leaveAlone();
      // Of several that were sent together nobody knows whose value it is.
      const why = batches.length === 1 ? error : new StoreError("STORE_UNAVAILABLE", "it took none of several batches");
      return batches.map((): Sent => ({ kind: "unknown", error: why }));
    }
  }

  private async settle(owner: Owner, builder: BatchBuilder, outcome: Sent): Promise<void> {
    if (!owner.valid) return;
    switch (outcome.kind) {
      case "committed":
      case "alreadyApplied":
        owner.committed(builder);
        if (builder.orphans.length > 0) this.hurryOrphans(builder.orphans);
        this.blame.noteTaken(owner, builder);
        this.tenures.acknowledge(owner);
        return;
      case "fenced":
        return this.tenures.stepDown(owner, "fenced");
      case "refused":
        return this.refuse(owner);
      case "unknown":
        // Our own commit may still arrive. A new epoch and nonce shut it out; then the store says what is true.
        return this.tenures.reacquire(owner, (fresh) => {
          // Else a message that is always rejected would be tried first by every new owner.
          fresh.carefulItems = owner.carefulItems % 2;
          this.blame.doubt(fresh, builder, outcome.error);
        });
    }
  }

  /** Children go with their parent, as far as they are ours: any other owner notices when it looks for it. */
  private hurryOrphans(orphans: readonly Orphan[]): void {
    const { partitionCount } = this.store.capabilities;
    const owners = new Map(this.tenures.owners().map((owner) => [owner.partition, owner]));
    for (const { key, haste } of orphans) owners.get(partitionOf(key, partitionCount))?.retention.hurry([key], haste);
  }

  /** Definitely not stored: memory is ahead of the truth, and starts anew under the same tenure. */
  private refuse(owner: Owner): void {
    this.tenures.renewMemory(owner);
  }

  private async lapse(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        await this.store.tasks.lapse(1000);
      } catch {
        // The next engine, or the next second, will do it.
      }
      await this.host.sleep(this.settings.renewMs, this.stopping.signal);
    }
  }

  private async makeRoom(): Promise<void> {
    const { retentionMs, keepEnded, renewMs } = this.settings;
    // With an archive nothing is hurried: what is not shipped must stay, and what is goes soon.
    if (retentionMs === null || this.shipper !== undefined) return;
    const laterMs = renewMs * UNLIMITED_RENEWALS;
    const owners = (): readonly Owner[] => this.tenures.owners();
    const settings = { retentionMs, keepEnded, childrenEveryMs: laterMs };
    const roomMaker = new RoomMaker(this.store, owners, settings, this.observer);
    const waitMs = { now: AT_ONCE_MS, soon: renewMs, later: laterMs };
    while (!this.stopping.signal.aborted) {
      // One that does not answer will be as full in a second.
      const when = await roomMaker.makeRoom().catch(() => "soon" as const);
      await this.host.sleep(waitMs[when], this.stopping.signal);
    }
  }
}
