import { DEFINITION_SCOPE, entityId, entityKind, partitionOf } from "../core/entity.ts";
import { fold } from "../core/fold.ts";
import { type Machine, type MachineEvent, needKey, type OpenTasks } from "../core/machine.ts";
import type { Message } from "../core/message.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { Archive, KeptName } from "../store/archive.ts";
import type { Header, JournalRecord, Published, Store, Tenure } from "../store/contract.ts";
import { isEmpty } from "../store/is-empty.ts";
import type { BatchBuilder } from "./batch.ts";
import { Owner } from "./owner.ts";
import { putValues, Recall, type Recalled } from "./recall.ts";
import { Resident } from "./resident.ts";
import { DEFAULT_SETTINGS, DEFAULT_SHIPPING } from "./settings.ts";

/** What was found in the archive, and what came of it. */
export interface Recovery {
  /** Executions whose journals end open: they go on. */
  readonly executions: number;
  /** Tasks that were out, and are again. */
  readonly tasks: number;
  /** Calls of child executions that are made again, as nobody knows whether they were heard. */
  readonly calls: number;
  /** Executions that this release cannot read: they are there, and wait for one that can. */
  readonly unread: readonly string[];
  /** Executions that were in the store already, and were left as they are. */
  readonly present: number;
  /** Names of workflows, and definitions. */
  readonly names: number;
  readonly definitions: number;
  /** When each partition was last heard of, and how many of its executions had news then that were not shipped. */
  readonly heard: readonly { readonly partition: number; readonly atMs: number; readonly behind: number }[];
}

export class RecoveryRefused extends Error {
  override readonly name = "RecoveryRefused";
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

export interface RecoveryParts {
  readonly archive: Archive;
  readonly store: Store;
  readonly host: Host;
  readonly machines: readonly Machine[];
  /** Go on though there is something in the store: that stays as it is. */
  readonly force: boolean;
  /** How long the partitions are held by one that has died. */
  readonly leaseMs?: number;
}

const NAME = "recover";
const LEASE_MS = 30_000;
const RENEWALS = 6;
const PAGE = 100;
const MAX_PREPARED = 100;

/**
 * Rebuilds a store that was lost from its archive: whatever was open goes on from its last shipped event, under a new
 * incarnation and with epochs above all that were seen. What has ended stays in the archive, and is read there.
 *
 * All partitions are held meanwhile, and the archive belongs to the new store only at the end: until then no engine starts.
 */
export async function recover(parts: RecoveryParts): Promise<Recovery> {
  const { archive, store, force } = parts;
  const lost = await archive.owner();
  if (lost === null) throw new RecoveryRefused("Nothing was ever shipped to this archive.");
  const { incarnation } = store.capabilities;
  if (incarnation === undefined) throw new RecoveryRefused("Only a store that others can share is rebuilt.");
  if (incarnation === lost && !force) {
    throw new RecoveryRefused("The store is the one that the archive was shipped from: it was not lost.", FORCE);
  }
  if (!force && !(await isEmpty(store))) throw new RecoveryRefused("The store is not empty.", FORCE);
  const rebuilding = new Rebuilding(parts);
  try {
    await rebuilding.hold();
    const recovery = await rebuilding.run();
    await archive.adopt(incarnation);
    return recovery;
  } finally {
    await rebuilding.letGo();
  }
}

const HELD = "stop every engine, and every other recovery";
const FORCE = "--force adds what the archive has and the store has not, and leaves the rest as it is";

interface Folded {
  readonly resident: Resident;
  readonly letters: ReturnType<NonNullable<Machine["lettersLeft"]>>;
}

class Rebuilding {
  private readonly archive: Archive;
  private readonly store: Store;
  private readonly host: Host;
  private readonly leaseMs: number;
  private readonly machines: ReadonlyMap<string, Machine>;
  private readonly recall: Recall;
  private readonly owners = new Map<number, Owner>();
  /** Definitions that are in the store, and the ones that were last made ready. */
  private readonly definitions = new Set<string>();
  private readonly prepared = new Map<string, unknown>();
  private readonly done = new AbortController();
  private readonly unread: string[] = [];
  private executions = 0;
  private tasks = 0;
  private calls = 0;
  private present = 0;

  constructor({ archive, store, host, machines, leaseMs = LEASE_MS }: RecoveryParts) {
    this.archive = archive;
    this.store = store;
    this.host = host;
    this.leaseMs = leaseMs;
    this.machines = new Map(machines.map((machine) => [machine.kind, machine]));
    this.recall = new Recall(archive, host, this.machines);
  }

  /** Takes every partition, so that nobody else decides anything before all is there. */
  async hold(): Promise<void> {
    const seen = new Map((await this.archive.progress()).map((one) => [one.partition, one]));
    const { capabilities } = this.store;
    for (let partition = 0; partition < capabilities.partitionCount; partition++) {
      const { epoch = 0, timeMs = 0 } = seen.get(partition) ?? {};
      const tenure = await this.acquire(partition, epoch);
      // Time does not go back behind what the journals have seen.
      const owned = { ...tenure, lastTimeMs: Math.max(tenure.lastTimeMs, timeMs) };
      const settings = { ...DEFAULT_SETTINGS, shipping: DEFAULT_SHIPPING };
      this.owners.set(partition, new Owner(this.host, settings, capabilities, owned, false));
    }
    void this.renew();
  }

  private async acquire(partition: number, above: number): Promise<Tenure> {
    const untilMs = this.host.monotonicMs() + 2 * this.leaseMs;
    for (;;) {
      const outcome = await this.store.partitions.acquire(partition, NAME, this.leaseMs);
      if (outcome.kind === "held") {
        // One of us that has died lets go by itself.
        if (outcome.by === NAME && this.host.monotonicMs() < untilMs) {
          await this.host.sleep(this.leaseMs / RENEWALS);
          continue;
        }
        throw new RecoveryRefused(`Partition ${partition} of the store is held by ${outcome.by}.`, HELD);
      }
      if (outcome.tenure.epoch > above) return outcome.tenure;
      // Each acquire raises it by one: this is how a store gets beyond the epochs of the one before it.
      await this.store.partitions.release(outcome.tenure);
    }
  }

  private async renew(): Promise<void> {
    while (!this.done.signal.aborted) {
      await this.host.sleep(this.leaseMs / RENEWALS, this.done.signal);
      try {
        const fences = [...this.owners.values()].map(({ fence }) => fence);
        if (!this.done.signal.aborted) await this.store.partitions.renew(fences, this.leaseMs);
      } catch {
        // A commit will find out.
      }
    }
  }

  async letGo(): Promise<void> {
    this.done.abort();
    for (const owner of this.owners.values()) await this.store.partitions.release(owner.fence);
  }

  async run(): Promise<Recovery> {
    const names = await this.putNames();
    for (let after = ""; ;) {
      const headers = await this.archive.open(after, PAGE);
      for (const header of headers) await this.bringBack(header);
      const last = headers.at(-1);
      if (last === undefined) break;
      after = last.entity;
    }
    const heard = (await this.archive.progress()).map(({ partition, timeMs, behind }) => {
      return { partition, atMs: timeMs, behind };
    });
    const { executions, tasks, calls, unread, present } = this;
    return { executions, tasks, calls, unread, present, names, definitions: this.definitions.size, heard };
  }

  /**
   * Names get the numbers they had, those that are gone included: a number stands for one content for ever. The store
   * gives numbers out in order, and again to content that it knows; so all are published, taken away, and those that
   * were not gone published again. What another recovery has begun, which died, is done once more.
   */
  private async putNames(): Promise<number> {
    const kept = await this.archive.names();
    for (const { name, versions } of kept) {
      const { records } = this.store;
      const hashes = hashesByNumber(versions);
      const there = await records.versions(name);
      if (there.length > 0 && (isWhole(there, versions) || !isPartOf(there, hashes))) continue;
      await this.putDefinitions(versions.map(({ hash }) => hash));
      const highest = hashes.length;
      for (const hash of hashes) await records.publish(name, hash);
      if (versions.length === highest && versions.every(({ isGone }) => !isGone)) continue;
      await records.unpublish(name);
      for (const { hash, isGone } of versions) if (!isGone) await records.publish(name, hash);
    }
    return kept.filter(({ versions }) => versions.some(({ isGone }) => !isGone)).length;
  }

  private async putDefinitions(hashes: readonly string[]): Promise<void> {
    const missing = hashes.filter((hash) => !this.definitions.has(hash));
    const keys = missing.map((hash) => ({ scope: DEFINITION_SCOPE, hash }));
    const texts = keys.length === 0 ? [] : await this.archive.records.get(keys);
    const found = keys.flatMap((key, i) => (typeof texts[i] === "string" ? [{ ...key, text: texts[i] }] : []));
    await this.store.records.put(found);
    for (const { hash } of found) this.definitions.add(hash);
  }

  private async definition(machine: Machine, hash: string): Promise<unknown> {
    if (this.prepared.has(hash)) return this.prepared.get(hash);
    await this.putDefinitions([hash]);
    const [text] = await this.archive.records.get([{ scope: DEFINITION_SCOPE, hash }]);
    if (typeof text !== "string") throw new Error("its definition is not in the archive");
    if (this.prepared.size >= MAX_PREPARED) this.prepared.clear();
    const definition = machine.prepareDefinition(hash, text);
    this.prepared.set(hash, definition);
    return definition;
  }

  private async bringBack(header: Header): Promise<void> {
    const { entity } = header;
    const partition = partitionOf(entity, this.store.capabilities.partitionCount);
    if ((await this.store.journal.watch(partition, entity, 0, 0)) > 0) {
      this.present++;
      return;
    }
    const recalled = await this.recall.everythingOf(entity);
    if (recalled.records.length === 0) return;
    await putValues(this.store, recalled.values);
    const owner = this.owners.get(partition)!;
    const builder = owner.newBatch();
    builder.restore(entity, { ...recalled, letters: [] });
    builder.wake(entity, owner.time.nowMs());
    await this.goOn(owner, builder, entity, recalled);
    owner.unshipped!.form(builder, owner.time.nowMs());
    // What a task is given is in no journal if it is large: it is made again with the task.
    await this.store.records.put(builder.blobs);
    const [outcome] = await this.store.journal.commit([owner.seal(builder)]);
    if (outcome?.kind !== "committed") throw new Error(`the store did not take ${entity}: ${outcome?.kind}`);
    owner.committed(builder);
    this.executions++;
  }

  /** All that the store had of it besides its journal: its tasks, its place in lists, its mail. */
  private async goOn(owner: Owner, builder: BatchBuilder, entity: string, recalled: Recalled): Promise<void> {
    try {
      const { resident, letters } = await this.fold(entity, recalled.records);
      const { machine, state } = resident;
      // Not those that were shipped: they may be older than the journal, or of something that it does not say.
      for (const { atMs, ...letter } of letters) builder.deadLetter(entity, letter, atMs);
      const isCalledOff = await this.isCalledOff(resident);
      const given = await this.givenBackTo(resident);
      const { tasks, blobs = [] } = openTasks(owner, resident, recalled);
      builder.add(resident, { events: [], tasks, blobs }, 0, owner.time.nowMs());
      this.calls += sayAgain(owner, builder, resident);
      for (const message of given) builder.send(message);
      if (isCalledOff) builder.send(machine.calledOff!(state));
      const header = machine.header(state);
      if (header !== null) builder.header({ entity, version: machine.versionOf(state), ...header });
      this.tasks += tasks.length;
    } catch {
      // An engine will find out by itself, and leave it alone.
      builder.restore(entity, { ...recalled, records: [], header: null });
      this.unread.push(entity);
    }
  }

  /** Whether its caller was, and may have said so in vain. */
  private async isCalledOff({ machine, state }: Resident): Promise<boolean> {
    const caller = machine.callerOf?.(state) ?? null;
    if (caller === null) return false;
    const header = await this.archive.queries.header(0, caller);
    return header?.status === "CANCELLED";
  }

  /**
   * Whoever has something of it may have given it back, by its own journal, and that was lost; or it is over, or nobody
   * knows of it, and it never will. Without that a limit would have fewer places for ever.
   */
  private async givenBackTo({ key, machine, state }: Resident): Promise<readonly Message[]> {
    const said: Message[] = [];
    for (const [debtor, asks] of machine.debtors?.(state) ?? []) {
      const header = await this.archive.queries.header(0, debtor);
      const own = this.machines.get(entityKind(debtor));
      if (header !== null && own?.gaveBack !== undefined) {
        const [loaded] = await this.archive.journal.load([{ partition: 0, entity: debtor, aboveVersion: 0 }]);
        const events = loaded!.records.flatMap(({ text }) => JSON.parse(text) as MachineEvent[]);
        said.push(...own.gaveBack(entityId(debtor), events, key, asks));
      }
      if (header?.class !== "open") said.push(machine.forgotten!(state, debtor, asks));
    }
    return said;
  }

  private async fold(entity: string, records: readonly JournalRecord[]): Promise<Folded> {
    const machine = this.machines.get(entityKind(entity));
    if (machine === undefined) throw new Error("its kind is unknown");
    if (records.some(({ format }) => format > machine.eventFormat)) throw new Error("a newer release wrote it");
    const [first] = JSON.parse(records[0]!.text) as MachineEvent[];
    const hash = machine.definitionOf(first!);
    const definition = hash === undefined ? undefined : await this.definition(machine, hash);
    const id = entityId(entity);
    const state = fold(machine, machine.create(id, definition), records);
    const isLettered = (machine.letters?.(state) ?? []).length > 0;
    const events = isLettered ? records.flatMap(({ text }) => JSON.parse(text) as MachineEvent[]) : [];
    const letters = isLettered ? (machine.lettersLeft?.(id, definition, events) ?? []) : [];
    return { resident: new Resident(entity, id, machine, state), letters };
  }
}

/** The content of each number from 1 on; the archive need not know all. */
function hashesByNumber(versions: KeptName["versions"]): readonly string[] {
  const byNumber = new Map(versions.map(({ version, hash }) => [version, hash]));
  const highest = Math.max(...byNumber.keys());
  return Array.from({ length: highest }, (_, i) => byNumber.get(i + 1) ?? `unknown-${i + 1}`);
}

function isPartOf(there: readonly Published[], hashes: readonly string[]): boolean {
  return there.every(({ version, hash }) => hashes[version - 1] === hash);
}

function isWhole(there: readonly Published[], versions: KeptName["versions"]): boolean {
  const wanted = versions.filter(({ isGone }) => !isGone);
  const hashes = new Map(there.map(({ version, hash }) => [version, hash]));
  return there.length === wanted.length && wanted.every(({ version, hash }) => hashes.get(version) === hash);
}

/** The tasks that were out: the same again, so that whoever still works on one of them reports what is waited for. */
function openTasks(owner: Owner, resident: Resident, recalled: Recalled): OpenTasks {
  const { machine, state, fetched } = resident;
  for (;;) {
    const open = machine.openTasks(state, owner.context(resident));
    if (open.needs.length === 0) return open;
    for (const need of open.needs) fetched.set(needKey(need), valueOf(machine, recalled, needKey(need)));
  }
}

/** Mail that may have been lost, and lists. Answers how many events that took. */
function sayAgain(owner: Owner, builder: BatchBuilder, resident: Resident): number {
  const { machine, state } = resident;
  let count = 0;
  for (;;) {
    const context = owner.context(resident);
    const { listings = [], ...decision } = machine.recovered?.(state, context) ?? { events: [] };
    const version = machine.versionOf(state) + 1;
    for (const event of decision.events) machine.evolve(state, event);
    // The first time says all lists.
    const said = count === 0 ? { ...decision, listings } : decision;
    builder.add(resident, said, version, owner.time.nowMs());
    count += decision.events.length;
    if (decision.events.length === 0) return count;
  }
}

/** A value that a task is made of: a large one, or the output of an event of the past. */
function valueOf(machine: Machine, { records, values }: Recalled, key: string): Json {
  const large = values.find(({ hash }) => hash === key);
  if (large !== undefined) return JSON.parse(large.text) as Json;
  const version = Number(key.replace("past:", ""));
  const record = records.find((one) => one.version <= version && version < one.version + one.count);
  const event = record && (JSON.parse(record.text) as MachineEvent[])[version - record.version];
  const value = event && machine.pastValue?.(event);
  if (value === undefined) throw new Error(`the value ${key} is not in the archive`);
  return value;
}
