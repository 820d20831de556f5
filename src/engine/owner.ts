import type { Context, Decision, MachineEvent, Need, TaskDraft } from "../core/machine.ts";
import { needKey } from "../core/machine.ts";
import type { Message } from "../core/message.ts";
import { SlotMap } from "../core/slot-map.ts";
import { contentHash } from "../json/hash.ts";
import type { Json } from "../json/json.ts";
import type { Host } from "../host/host.ts";
import type { Capabilities, CommitBatch, Fence, Position, Tenure } from "../store/contract.ts";
import { BatchBuilder } from "./batch.ts";
import { DeadlineBound, type ReadNote } from "./deadline-bound.ts";
import { keepEntity, type Keeping } from "./keep-entity.ts";
import { DecisionContext } from "./decision-context.ts";
import { StoredDefinitions } from "./definition-cache.ts";
import { PartitionTime } from "./partition-time.ts";
import { formatSuspicion, GUILTY_DEATHS, readSuspicion } from "./suspicion.ts";
import {
  isCancelled,
  isCommand,
  isResult,
  ownLetter,
  parkMessage,
  quarantineEvents,
  releaseQuarantine,
} from "./quarantine.ts";
import type { Recalled } from "./recall.ts";
import type { Entity, Quarantine, Resident } from "./resident.ts";
import { Retention } from "./retention.ts";
import type { EngineSettings } from "./settings.ts";
import { TaskWindow } from "./task-window.ts";
import { Unshipped } from "./unshipped.ts";
import { mustStoreWake, wakeBound, wakeTime } from "./wake-bound.ts";
import { WakeHeap } from "./wake-heap.ts";

/** Thrown when an entity's decision threw; the batch being formed is given up, and the entity counted. */
export class DecisionFailed extends Error {
  override readonly name = "DecisionFailed";
  readonly key: string;

  constructor(key: string, cause: unknown) {
    super(cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause), { cause });
    this.key = key;
  }
}

/** The answer to what may be about something that only the archive has. */
const ARCHIVE_AWAY = {
  refused: "STORE_UNAVAILABLE",
  detail: "The archive does not answer, and this may be about something that is only there. Nothing was changed.",
} as const;

/** How many residents are looked at after a commit for ones that may leave. */
const MAX_EXAMINED = 500;

/** How many residents are swept with one batch. */
const SWEPT_AT_ONCE = 20;

const NO_NEEDS: readonly Need[] = [];

/** What one read brought. */
export interface Incoming {
  /** null if it brought nothing. */
  readonly position: Position | null;
  readonly messages: readonly Message[];
  /** Texts that are no messages. */
  readonly rubbish: readonly string[];
}

/**
 * The memory of one partition during one tenure: the entities, their wakes, the tasks out. Everything here can be
 * thrown away and had again from the store; nothing here is told to anybody before it is committed.
 */
export class Owner {
  readonly partition: number;
  readonly tenure: Tenure;
  readonly time: PartitionTime;
  readonly entities: SlotMap<string, Entity> = new SlotMap();
  readonly wakes: WakeHeap = new WakeHeap();
  /** Entities with something to do that no message or time must bring. */
  readonly busy: Set<string> = new Set();
  /** Of those the ones that are not in memory, or in quarantine. */
  private readonly absentees: Set<string> = new Set();
  /** Values of batches that are not committed, by entity and hash: the store does not have them yet. */
  readonly freshBlobs: Map<string, string> = new Map();
  /** Set when another engine wants a share: it is given back as soon as nothing of it is under way. */
  leaving = false;
  /** Tasks to put back into a volatile queue, by entity, as they were when it was loaded. */
  readonly restorable: Map<string, readonly TaskDraft[]> = new Map();
  /** What the batch being formed was to touch, and the store has nothing of. */
  readonly unknown: Set<string> = new Set();
  /** Of those, the ones of which the archive was to be asked, and did not answer. */
  readonly unanswered: Set<string> = new Set();
  /** Entities that left memory in a batch that is not committed yet: what the store has of them is out of date. */
  readonly released: Map<string, number> = new Map();
  /** Entities to be loaded without being folded, and why. */
  readonly suspects: Map<string, Quarantine["error"]> = new Map();
  readonly definitions: StoredDefinitions = new StoredDefinitions();
  /** Sequence number of the next batch. */
  seq: number;
  committedBatch = 0;
  /** Until when, by our monotonic clock, nobody else can have taken the partition. */
  leaseUntilMs: number;
  /** How many batches are sealed and not settled; of a store that queues commits there may be two. */
  underWay = 0;
  private sealedLast = "";
  /** The newest batch that was formed, and what it consumes, until it is committed: the next read begins behind that. */
  inFlight: { readonly batch: number; readonly position: Position } | null = null;
  /** Up to where in partition time the wakes of the store are filed here. */
  horizon: { atMs: number; entity: string } | null = null;
  /** Up to where they are being read: what is stored meanwhile may be in what is read, or not. */
  readingMs = -Infinity;
  /** Set while each item is announced in the store before it is touched: something here kills its owner. */
  careful: boolean;
  announced: string | null = null;
  /** How often each item was the last thing an owner of this partition did. */
  readonly deaths: ReadonlyMap<string, number>;
  carefulItems = 0;
  /** What the archive does not have yet; null if there is no archive. */
  readonly unshipped: Unshipped | null;
  readonly retention: Retention;
  /** How many entities may stay in memory. */
  maxResidents: number;
  /** False once this memory must not be used any more. */
  valid = true;

  private readonly host: Host;
  private readonly settings: EngineSettings;
  private readonly capabilities: Capabilities;
  private readonly keeping: Keeping;
  private readonly window: TaskWindow;
  private readonly given: DecisionContext;
  private readonly repaired: (key: string, count: number) => void;
  private batchNumber = 0;
  /** Which forming of a batch has pinned what it will touch; 0 if none has at present. */
  private pinning = 0;
  private pinnings = 0;
  /** The time of the batch being formed: one for all its decisions. */
  private batchMs = 0;
  private batchCalendarMs = 0;
  private nextSweepMs = -Infinity;
  private readonly deadlines = new DeadlineBound();

  constructor(
    host: Host,
    settings: EngineSettings,
    capabilities: Capabilities,
    tenure: Tenure,
    predecessorDied: boolean = true,
    repaired: (key: string, count: number) => void = () => {},
  ) {
    this.host = host;
    this.settings = settings;
    this.maxResidents = settings.maxResidents;
    this.repaired = repaired;
    this.capabilities = capabilities;
    this.partition = tenure.partition;
    this.tenure = tenure;
    this.seq = tenure.seq;
    this.time = new PartitionTime(host, tenure.lastTimeMs, tenure.storeTimeMs);
    this.batchMs = this.time.nowMs();
    this.batchCalendarMs = this.time.calendarMs();
    this.leaseUntilMs = host.monotonicMs() + settings.leaseMs;
    this.window = new TaskWindow(settings.window, (key) => this.rouse(key));
    this.given = new DecisionContext(host, this.window, tenure.nonce, settings.maxEvents);
    this.unshipped = settings.shipping === null ? null : new Unshipped(tenure.partition, settings.shipping);
    this.keeping = { snapshotEvents: settings.snapshotEvents, unshipped: this.unshipped };
    this.retention = new Retention(this, settings.retentionMs);
    this.retention.batchMs = this.batchMs;
    this.careful = tenure.strikes >= 3 || tenure.suspect !== null;
    this.deaths = readSuspicion(tenure.suspect, predecessorDied);
    for (const [key, count] of this.deaths) {
      if (count < GUILTY_DEATHS) continue;
      const message = `${count} owners of its partition died while they handled it`;
      this.suspects.set(key, { code: "KILLED_ITS_OWNER", message, retryable: false });
      this.rouse(key);
    }
  }

  get fence(): Fence {
    const { partition, incarnation, epoch, nonce } = this.tenure;
    return { partition, incarnation, epoch, nonce, seq: this.seq };
  }

  newBatch(): BatchBuilder {
    this.batchMs = this.time.nowMs();
    this.batchCalendarMs = this.time.calendarMs();
    this.retention.batchMs = this.batchMs;
    return new BatchBuilder(++this.batchNumber, this.partition, this.capabilities);
  }

  /** There are more tasks to be sent out than may be out. */
  get hasNoRoom(): boolean {
    return this.window.isWaitedFor;
  }

  seal(builder: BatchBuilder): CommitBatch {
    const suspicion = { next: this.announced, deaths: this.deaths };
    const suspect = this.careful ? formatSuspicion(suspicion) : null;
    const id = this.host.id();
    const behind = this.underWay > 0 ? this.sealedLast : undefined;
    const fence = { ...this.fence, seq: this.seq + this.underWay };
    this.underWay++;
    this.sealedLast = id;
    builder.isBehind = behind !== undefined;
    return builder.seal({ fence, id, behind, timeMs: this.time.nowMs(), suspect });
  }

  /** For the next decision about this entity, and until another is asked for. */
  context(resident: Resident): Context {
    const { given } = this;
    given.nowMs = this.batchMs;
    given.calendarMs = this.batchCalendarMs;
    given.deadlineMs = this.deadlines.upToMs(resident.key, this.batchMs);
    given.resident = resident;
    return given;
  }

  /** Nothing would come of a batch that nothing was read for: nobody has anything to do, to dispatch or to take off. */
  get isAtRest(): boolean {
    const { busy, restorable, careful, window, unshipped } = this;
    return !careful && busy.size === 0 && restorable.size === 0 && !window.isWaitedFor && unshipped?.hasDone !== true;
  }

  /** The result of a task that seems to be out may wait behind what was read: who puts it back before that is read has it done again. */
  get mayRestore(): boolean {
    return this.restorable.size > 0 && this.deadlines.hasReadAll;
  }

  noteRead(note: ReadNote): void {
    this.deadlines.noteRead(note, this.time.nowMs());
  }

  // Loops over a whole batch use an index, here and wherever batches are handed on: they run once for hundreds of steps, too seldom to be
  // optimised, and until then `for … of` allocates an object for each step.

  /** Takes what was read and is due: whom it concerns must be in memory by now. */
  take(builder: BatchBuilder, incoming: Incoming, due: readonly string[]): void {
    const { messages } = incoming;
    builder.consumed = incoming.position;
    for (const text of incoming.rubbish) this.throwOut(builder, text);
    for (let i = 0; i < messages.length; i++) this.takeMessage(builder, messages[i]!);
    for (const key of due) this.takeWake(builder, key);
  }

  /** What cannot be read is nobody's message. It is kept where people look, and holds nobody up. */
  private throwOut(builder: BatchBuilder, text: string): void {
    const error = { code: "MESSAGE_UNREADABLE", message: "Nobody can read this entry of the inbox", retryable: false };
    const letter = { id: `inbox:${contentHash(text).slice(0, 32)}`, class: "poison" as const, queue: "inbox" };
    const key = `inbox/${this.partition}`;
    builder.deadLetter(key, { ...letter, text: JSON.stringify({ error, text }) }, this.time.nowMs());
  }

  private takeMessage(builder: BatchBuilder, message: Message): void {
    const letter = ownLetter(message);
    if (letter !== undefined) {
      builder.discardLetter(letter);
      return builder.reply(message.reply, { ok: {} });
    }
    const entity = this.entities.get(message.to);
    if (entity === undefined && this.released.has(message.to)) {
      // It was let go earlier in this batch: behind what was parked for it, like everything that came after.
      if (!builder.cancelled.has(message.to) || !isResult(message)) builder.send(message);
      else builder.reply(message.reply, { refused: "STALE_ATTEMPT" });
      return;
    }
    if (entity === undefined) {
      // A start without its definition, or a message for something purged; anything else has to be in memory by now.
      if (!this.unknown.has(message.to)) throw new Error(`${message.to} was not brought in`);
      const isUnanswered = this.unanswered.has(message.to);
      builder.reply(message.reply, isUnanswered ? ARCHIVE_AWAY : { refused: "NOT_FOUND" });
      return;
    }
    this.mark(builder, entity);
    if (entity.kind === "quarantine") {
      if (message.body.kind === "release") this.release(builder, entity, message);
      else if (entity.releasable) this.release(builder, { ...entity, parked: [...entity.parked, message] }, undefined);
      else if (isCancelled(message, entity)) {
        // Results are not tried again, as one of them is what could not be decided: they come for something that is over. Nor are
        // those behind it: read together with the cancel they would undo it, and it would be let go again, for ever.
        builder.cancelled.add(entity.key);
        this.release(builder, { ...entity, parked: [message, ...entity.parked.filter(isCommand)] }, undefined);
      } else parkMessage(builder, entity, message, this.time.nowMs());
      return;
    }
    if (message.body.kind === "start") builder.starts++;
    const decision = this.decide(entity, message);
    this.apply(builder, entity, decision);
    builder.reply(message.reply, decision.reply);
    if (entity.goesOnIn === builder.number) return;
    entity.goesOnIn = builder.number;
    builder.next.push(entity);
  }

  /**
   * Entities with something to do that have to be brought in, or let out of quarantine, before they can. Those in memory
   * go on by themselves as far as there is room; to touch each of them in every batch until then would cost more than
   * what they do, and the store knows since they were last touched that they have to be looked at.
   */
  absent(): Iterable<string> {
    return this.absentees;
  }

  private rouse(key: string): void {
    this.busy.add(key);
    if (this.entities.get(key)?.kind !== "resident") this.absentees.add(key);
  }

  private rest(key: string): void {
    this.busy.delete(key);
    if (this.absentees.size > 0) this.absentees.delete(key);
  }

  /** From now on others are pinned than before. */
  pinOthers(): void {
    this.pinning = ++this.pinnings;
  }

  unpin(): void {
    this.pinning = 0;
  }

  /** What the batch being formed will touch must not leave memory before it is used. False if there is nothing to pin. */
  pin(entity: Entity | undefined): boolean {
    if (entity === undefined) return false;
    entity.pinnedBy = this.pinning;
    return true;
  }

  private isPinned({ pinnedBy }: Entity): boolean {
    return this.pinning > 0 && pinnedBy === this.pinning;
  }

  /** The batch has something to do with it. Said several times for each step, and looked up once. */
  private mark(builder: BatchBuilder, entity: Entity): void {
    if (entity.touchedBy === builder.number) return;
    entity.touchedBy = builder.number;
    builder.entities.push(entity);
  }

  private takeWake(builder: BatchBuilder, key: string): void {
    const entity = this.entities.get(key);
    if (entity === undefined) {
      if (!this.unknown.has(key) && !this.released.has(key)) throw new Error(`${key} was not brought in`);
      this.rest(key);
      this.retention.hurried.delete(key);
      return;
    }
    this.mark(builder, entity);
    if (entity.kind === "quarantine") {
      if (entity.releasable) this.release(builder, entity, undefined);
      else quarantineEvents(builder, entity, this.time.nowMs());
      this.rest(key);
      this.retention.hurried.delete(key);
      return;
    }
    if (this.purge(builder, entity)) return;
    this.busy.add(key);
  }

  private purge(builder: BatchBuilder, entity: Resident): boolean {
    if (!this.retention.remove(builder, entity)) return false;
    this.forget(entity.key);
    this.released.set(entity.key, builder.number);
    return true;
  }

  /** A batch that puts an entity back that was removed here, to stay for as long as if it had been shipped now. */
  recalling(entity: string, recalled: Recalled): BatchBuilder {
    const builder = this.newBatch();
    builder.restore(entity, recalled);
    builder.wake(entity, this.batchMs + (this.settings.shipping?.keepMs ?? 0));
    return builder;
  }

  /** The next batch loads it anew. Its wake time in the store has stood all the while. */
  private release(builder: BatchBuilder, entity: Quarantine, message: Message | undefined): void {
    if (entity.version === 0) {
      // It never came to life: there is nothing to release, only somebody to believe again. What is behind this is for the next batch.
      this.forget(entity.key);
      this.released.set(entity.key, builder.number);
      this.suspects.delete(entity.key);
      builder.reply(message?.reply, { refused: "NOT_FOUND" });
      return;
    }
    releaseQuarantine(builder, entity, message, this.time.nowMs());
    this.forget(entity.key);
    this.suspects.delete(entity.key);
    this.released.set(entity.key, builder.number);
    this.deadlines.hold(entity.key, builder.number);
    // Mail brings it back, and is read first; without any, it has to be looked at for its own sake.
    if (entity.parked.length === 0) this.wakes.file(entity.key, this.time.nowMs());
  }

  /** Lets every busy entity go on for as long as the batch has room. Answers what has to be fetched first. */
  advance(builder: BatchBuilder, only?: string): Map<string, readonly Need[]> {
    const needs = new Map<string, readonly Need[]>();
    do {
      this.advanceBusy(builder, only, needs);
      this.advanceNext(builder, only, needs);
    } while (only === undefined && this.window.passRoomOn() && !this.isFull(builder));
    return needs;
  }

  private advanceBusy(builder: BatchBuilder, only: string | undefined, needs: Map<string, readonly Need[]>): void {
    // Whoever becomes busy meanwhile stands behind these, and has its turn the next time.
    let left = this.busy.size;
    for (const key of this.busy) {
      if (left-- === 0 || this.isFull(builder)) break;
      if (only !== undefined && key !== only) continue;
      const entity = this.entities.get(key);
      // Let through while it was not in memory: the next batch brings it in.
      if (entity === undefined) continue;
      this.rest(key);
      if (entity.kind === "quarantine") continue;
      this.mark(builder, entity);
      this.goOn(builder, entity, needs);
    }
  }

  /** Those that were sent something, behind those that were busy before. Nearly all go on at once, and never stand among these. */
  private advanceNext(builder: BatchBuilder, only: string | undefined, needs: Map<string, readonly Need[]>): void {
    const { next, number } = builder;
    builder.next = [];
    for (let i = 0; i < next.length; i++) {
      const entity = next[i]!;
      if (entity.goesOnIn !== number || !entity.isHeld) continue;
      const mayGoOn = !this.isFull(builder) && (only === undefined || entity.key === only);
      if (mayGoOn) this.goOn(builder, entity, needs);
      else this.busy.add(entity.key);
    }
  }

  private goOn(builder: BatchBuilder, entity: Resident, needs: Map<string, readonly Need[]>): void {
    entity.goesOnIn = 0;
    const wanted = this.advanceOne(builder, entity);
    if (wanted.length > 0) needs.set(entity.key, wanted);
    this.withdraw(builder, entity);
  }

  /**
   * The last step of forming a batch: header, snapshot and wake time of everything it touched. An entity whose turn to
   * advance did not come is woken for it, also by an owner that never heard of it.
   */
  finish(builder: BatchBuilder): void {
    this.unshipped?.form(builder, this.batchMs);
    const { entities } = builder;
    for (let i = 0; i < entities.length; i++) {
      const entity = entities[i]!;
      if (entity.kind === "resident" && entity.isHeld) this.keep(builder, entity);
    }
    const limit = Math.ceil(this.capabilities.maxBatchEntries / 4);
    this.unshipped?.takeOff(builder, this.batchMs, limit, (key, untilMs) =>
      this.retention.keepUntil(builder, key, untilMs),
    );
  }

  private advanceOne(builder: BatchBuilder, entity: Resident): readonly Need[] {
    this.sweep(builder, entity);
    for (;;) {
      if (this.isFull(builder)) {
        this.busy.add(entity.key);
        return NO_NEEDS;
      }
      const decision = this.follow(entity);
      this.apply(builder, entity, decision);
      if (decision.blocked !== undefined) for (const queue of decision.blocked) this.window.block(queue, entity.key);
      if (decision.events.length > 0 || this.renew(builder, entity)) continue;
      const missing = decision.needs?.filter((need) => !entity.fetched.has(needKey(need))) ?? NO_NEEDS;
      if (missing.length === 0) entity.fetched.clear();
      return missing;
    }
  }

  /** What lives for ever says from time to time all that it is, so that its journal need not grow for ever. */
  private renew(builder: BatchBuilder, entity: Resident): boolean {
    const event = entity.machine.renewal?.(entity.state, this.batchMs, this.settings.renewEvents) ?? null;
    if (event === null) return false;
    this.apply(builder, entity, { events: [event] });
    return true;
  }

  /** After a load, and from time to time: does everything that waits have something to wait for? */
  private sweep(builder: BatchBuilder, entity: Resident): void {
    const { machine } = entity;
    if (machine.sweep === undefined || this.batchMs < entity.sweptAtMs + this.settings.sweepMs) return;
    entity.sweptAtMs = this.batchMs;
    const decision = this.proved(entity);
    if (decision.events.length === 0) return;
    this.apply(builder, entity, decision);
    this.repaired(entity.key, decision.events.length);
  }

  /** Lets those be looked at that have not been for long, a few at a time. */
  sweepSome(): void {
    const nowMs = this.time.nowMs();
    if (nowMs < this.nextSweepMs) return;
    const dueBefore = nowMs - this.settings.sweepMs;
    let found = 0;
    for (const [key, entity] of this.entities) {
      if (entity.kind !== "resident" || entity.machine.sweep === undefined || entity.sweptAtMs > dueBefore) continue;
      this.busy.add(key);
      if (++found >= SWEPT_AT_ONCE) return;
    }
    // All were looked at; nobody is due before another tenth of the time has passed.
    this.nextSweepMs = nowMs + this.settings.sweepMs / 10;
  }

  /** The calendar was set, or we have slept: what waits for a date is filed anew. */
  moveDates(): void {
    this.horizon = null;
    for (const [key, entity] of this.entities) {
      if (entity.kind !== "resident" || (entity.machine.nextCalendarMs?.(entity.state) ?? null) === null) continue;
      const atMs = wakeTime(entity, this.time.nowMs(), this.time.calendarMs());
      if (atMs !== null) this.wakes.file(key, atMs);
    }
  }

  private isFull(builder: BatchBuilder): boolean {
    const { maxBatchEntries, maxBatchBytes } = this.capabilities;
    return builder.entries + this.settings.maxEvents > maxBatchEntries || builder.size * 2 > maxBatchBytes;
  }

  /** Evolves the state, then lets the batch know. Nothing of it is visible to anybody until the commit. */
  private apply(builder: BatchBuilder, entity: Resident, decision: Decision<MachineEvent>): void {
    const { machine, state } = entity;
    const wasEnded = machine.isEnded(state);
    // Some answers change nothing about who gives them: they are mail alone.
    if (decision.events.length > 0 || (decision.mail?.length ?? 0) > 0) {
      const firstVersion = machine.versionOf(state) + 1;
      this.evolve(entity, decision.events);
      if (decision.blobs !== undefined) {
        for (const { hash, text, scope } of decision.blobs) this.freshBlobs.set(`${scope ?? entity.key} ${hash}`, text);
      }
      this.add(builder, entity, decision, firstVersion);
      this.window.count(entity);
    }
    if (!wasEnded && machine.isEnded(state)) entity.withdrawing = machine.withdrawn(state);
  }

  // Whatever throws in here concerns one entity, which is left alone after some tries. Each by itself and not one function
  // that is given what to do: there are several of these calls for every step.

  private decide(entity: Resident, message: Message): Decision<MachineEvent> {
    try {
      return entity.machine.decide(entity.state, message, this.context(entity));
    } catch (error) {
      throw new DecisionFailed(entity.key, error);
    }
  }

  private follow(entity: Resident): Decision<MachineEvent> {
    try {
      return entity.machine.advance(entity.state, this.context(entity));
    } catch (error) {
      throw new DecisionFailed(entity.key, error);
    }
  }

  private proved(entity: Resident): Decision<MachineEvent> {
    try {
      return entity.machine.sweep!(entity.state, this.context(entity));
    } catch (error) {
      throw new DecisionFailed(entity.key, error);
    }
  }

  private evolve(entity: Resident, events: readonly MachineEvent[]): void {
    const { machine, state } = entity;
    try {
      for (const event of events) machine.evolve(state, event);
      machine.check(state, this.settings.checkWhole);
    } catch (error) {
      throw new DecisionFailed(entity.key, error);
    }
  }

  /** What it has decided may be too deep, or too long, to be written. */
  private add(builder: BatchBuilder, entity: Resident, decision: Decision<MachineEvent>, firstVersion: number): void {
    try {
      builder.add(entity, decision, firstVersion, this.batchMs);
    } catch (error) {
      throw new DecisionFailed(entity.key, error);
    }
  }

  /** After the end: what is still queued or running is called back, a slice at a time. */
  private withdraw(builder: BatchBuilder, entity: Resident): void {
    if (entity.withdrawing.length === 0) return;
    const room = Math.max(1, this.capabilities.maxBatchEntries - builder.entries);
    builder.revoke.push(...entity.withdrawing.slice(0, room));
    entity.withdrawing = entity.withdrawing.slice(room);
    if (entity.withdrawing.length > 0) this.busy.add(entity.key);
  }

  /** Header, snapshot and wake time of an entity that this batch has touched. */
  private keep(builder: BatchBuilder, entity: Resident): void {
    const version = entity.machine.versionOf(entity.state);
    if (version === 0) return;
    try {
      keepEntity(builder, entity, version, this.keeping);
    } catch (error) {
      throw new DecisionFailed(entity.key, error);
    }
    this.fileWake(builder, entity);
  }

  private get readMs(): number {
    return Math.max(this.horizon?.atMs ?? -Infinity, this.readingMs);
  }

  private fileWake(builder: BatchBuilder, entity: Resident): void {
    // Here it is busy, or blocked until there is room: only its timers need a wake. Another owner knows neither.
    const timerMs = wakeTime(entity, this.batchMs, this.batchCalendarMs);
    if (timerMs !== null) this.wakes.file(entity.key, timerMs);
    const expiresMs = this.retention.expiryOf(entity);
    const wakeMs = wakeBound(entity, this.batchMs, this.capabilities.volatileTasks, expiresMs);
    const { horizonMs } = this.settings;
    if (mustStoreWake(entity, wakeMs, horizonMs, Math.max(this.readMs, this.batchMs + horizonMs))) {
      entity.storedWakeMs = wakeMs;
      builder.wake(entity.key, wakeMs);
    }
    this.fileExpiry(entity, expiresMs);
  }

  /** The store has it looked at before it may be removed; that is noted here only if it will not be read there again. */
  private fileExpiry({ key, storedWakeMs }: Resident, expiresMs: number | null): void {
    if (expiresMs !== null && (storedWakeMs ?? expiresMs) <= this.readMs) this.wakes.file(key, expiresMs);
  }

  /** The commit is durable: memory and store agree up to here. */
  committed(builder: BatchBuilder): void {
    this.seq++;
    this.underWay--;
    this.committedBatch = builder.number;
    if (this.inFlight?.batch === builder.number) this.inFlight = null;
    this.dropFreshBlobs(builder);
    this.definitions.prove(builder.definitions);
    this.unshipped?.committed(builder, this.host.monotonicMs());
    for (const [key, batch] of this.released) if (batch === builder.number) this.released.delete(key);
    this.letAllGo(builder);
    this.fileStored(builder);
    this.shrink();
  }

  /** Nothing came of the batch, and all that were before it are committed. Who was only looked at need not stay. */
  cameToNothing(builder: BatchBuilder): void {
    this.letAllGo(builder);
  }

  private letAllGo(builder: BatchBuilder): void {
    const { entities } = builder;
    for (let i = 0; i < entities.length; i++) {
      const entity = entities[i]!;
      if (entity.kind === "resident") this.letGo(builder, entity);
    }
    for (const key of builder.touchedByName()) {
      const entity = this.entities.get(key);
      if (entity?.kind === "resident") this.letGo(builder, entity);
    }
  }

  /** What is over leaves memory. */
  private letGo(builder: BatchBuilder, entity: Resident): void {
    const { key } = entity;
    // Its text would be kept for as long as it is.
    if (entity.written?.batch === builder.number) entity.written = null;
    if (!entity.machine.isEnded(entity.state) || entity.withdrawing.length > 0 || !entity.isHeld) return;
    if (entity.touchedBy > builder.number || this.isPinned(entity)) return;
    // What is to be removed as soon as its tasks are called back is looked at once more.
    if (entity.machine.hasWork(entity.state) || this.retention.hurried.has(key)) return;
    this.forget(key);
    this.wakes.drop(key);
    this.fileExpiry(entity, this.retention.expiryOf(entity));
  }

  /** What the store has been told to have looked at, and was read up to there while it was not told yet. */
  private fileStored({ wakes }: BatchBuilder): void {
    const { readMs } = this;
    // By `forEach`, which makes no pairs.
    wakes.forEach((atMs, key) => {
      if (atMs !== null && atMs <= readMs && !this.hasFiled(key)) this.wakes.file(key, atMs);
    });
  }

  /** What is in memory has filed its timers; but nothing of when it may go, nor has it taken back what it said of that. */
  hasFiled(key: string): boolean {
    const entity = this.entities.get(key);
    if (entity?.kind !== "resident") return entity !== undefined;
    return entity.machine.renewal === undefined && this.retention.expiryOf(entity) === null;
  }

  /** Lets the entities leave that have been idle longest. Their wake times are in the store. */
  private shrink(): void {
    let excess = this.entities.size - this.maxResidents;
    if (excess <= 0) return;
    let examined = 0;
    for (const [key, entity] of this.entities) {
      if (excess <= 0 || ++examined > MAX_EXAMINED) return;
      // Whoever may not leave now goes to the back, so that the next look meets others.
      this.touch(key);
      if (entity.touchedBy > this.committedBatch || this.busy.has(key) || this.isPinned(entity)) continue;
      if (entity.kind === "resident" && !this.mayLeave(entity)) continue;
      this.passivate(key);
      excess--;
    }
  }

  private mayLeave(entity: Resident): boolean {
    const { machine, state } = entity;
    if (entity.withdrawing.length > 0) return false;
    if (machine.hasWork(state)) return this.window.isBlocked(entity.key) && machine.liveCount(state) === 0;
    return !(this.capabilities.volatileTasks && machine.liveCount(state) > 0);
  }

  /** Leaves memory, but not its place among those who wait for room: when its turn comes it is loaded again. */
  private passivate(key: string): void {
    const entity = this.entities.get(key);
    this.entities.delete(key);
    this.rest(key);
    if (entity?.kind !== "resident") return;
    entity.isHeld = false;
    this.window.uncount(entity);
  }

  /** The batch will not be stored: what it touched is not the truth, and is read again when it is next needed. */
  abandon(builder: BatchBuilder): void {
    this.dropFreshBlobs(builder);
    this.unshipped?.forget();
    for (const key of builder.touched()) {
      this.forget(key);
      if (this.released.get(key) === builder.number) this.released.delete(key);
      this.wakes.file(key, this.time.nowMs());
    }
  }

  private dropFreshBlobs(builder: BatchBuilder): void {
    for (const { scope, hash } of builder.blobs) this.freshBlobs.delete(`${scope} ${hash}`);
  }

  forget(key: string): void {
    this.window.drop(key);
    this.passivate(key);
  }

  /** A loaded entity takes its place; what it still has to do is done first. */
  admit(entity: Entity): void {
    this.entities.set(entity.key, entity);
    if (entity.kind === "quarantine") {
      if (entity.fresh || entity.releasable) this.rouse(entity.key);
      return;
    }
    this.absentees.delete(entity.key);
    // What has just come to life was not loaded: there is nothing that could have been lost on the way.
    if (entity.machine.versionOf(entity.state) === 0) entity.sweptAtMs = this.batchMs;
    this.busy.add(entity.key);
    this.window.count(entity);
  }

  /**
   * Moves an entity to the young end of the order in which entities leave memory. While none is going to leave, the order
   * is of no use to anybody, and this happens with every message.
   */
  touch(key: string): void {
    if (this.entities.size < this.maxResidents / 2) return;
    const entity = this.entities.get(key);
    if (entity === undefined) return;
    this.entities.delete(key);
    this.entities.set(key, entity);
  }

  give(key: string, values: ReadonlyMap<string, Json>): void {
    const entity = this.entities.get(key);
    if (entity?.kind !== "resident") return;
    for (const [name, value] of values) entity.fetched.set(name, value);
    this.busy.add(key);
  }
}
