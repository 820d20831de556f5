import { type MachineEvent, type Need, needKey, type OpenTasks } from "../core/machine.ts";
import type { Message } from "../core/message.ts";
import type { Json } from "../json/json.ts";
import type { Store } from "../store/contract.ts";
import { type BatchBuilder, placed } from "./batch.ts";
import type { Committer } from "./committer.ts";
import { type Loader, ValueMissing } from "./loader.ts";
import type { EngineObserver } from "./observer.ts";
import { DecisionFailed, type Owner } from "./owner.ts";
import { ownLetter } from "./quarantine.ts";
import { isYoung, mayBeRecalled, putValues, type Recall } from "./recall.ts";
import type { Resident } from "./resident.ts";

interface SupplyParts {
  readonly store: Store;
  readonly loader: Loader;
  readonly committer: Committer;
  /** undefined = there is no archive. */
  readonly recall: Recall | undefined;
  /** How long what is in the archive is kept in the store as well. */
  readonly keepMs: number;
  readonly observer: EngineObserver;
}

/** Brings into memory what an owner needs to decide: entities, values that states only name, and what the archive has. */
export class Supply {
  private readonly store: Store;
  private readonly loader: Loader;
  private readonly committer: Committer;
  private readonly recall: Recall | undefined;
  private readonly keepMs: number;
  private readonly observer: EngineObserver;

  constructor({ store, loader, committer, recall, keepMs, observer }: SupplyParts) {
    this.store = store;
    this.loader = loader;
    this.committer = committer;
    this.recall = recall;
    this.keepMs = keepMs;
    this.observer = observer;
  }

  /** Loads what messages and wakes will touch, in one round trip, before anything is decided. */
  async bringIn(owner: Owner, messages: readonly Message[], due: readonly string[]): Promise<void> {
    owner.pinOthers();
    owner.unknown.clear();
    owner.unanswered.clear();
    owner.definitions.begin();
    const missing = new Set<string>();
    const starts = new Map<string, Message>();
    for (let i = 0; i < messages.length; i++) {
      const message = messages[i]!;
      const { to } = message;
      if (ownLetter(message) !== undefined) continue;
      owner.touch(to);
      if (owner.pin(owner.entities.get(to))) continue;
      missing.add(to);
      if (!starts.has(to) && this.loader.isStart(message)) starts.set(to, message);
    }
    for (const key of due) if (!owner.pin(owner.entities.get(key))) missing.add(key);
    if (missing.size === 0) return;
    if (missing.values().some((key) => owner.released.has(key))) await this.committer.inFlight;
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
  async lookForCallers(owner: Owner, due: readonly string[]): Promise<void> {
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
    for (const message of absent) {
      const { to, reply } = message;
      if (found.get(to) !== undefined) continue;
      if (isYoung(message, owner.tenure.storeTimeMs, owner.time.nowMs(), this.keepMs)) continue;
      // Who waits for an answer is told to come again. Mail has nobody to tell: it is taken as if nothing were there.
      if (reply !== undefined) owner.unanswered.add(to);
    }
    for (const [key, recalled] of found) {
      if (recalled === undefined || recalled.records.length === 0) continue;
      await putValues(this.store, recalled.values);
      await this.committer.inFlight;
      if (!owner.valid) return;
      await this.committer.alone({ owner, builder: owner.recalling(key, recalled) });
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
        const { tasks, needs } = openTasks(owner, entity);
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
  async restoreTasks(owner: Owner): Promise<void> {
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

  async fetch(owner: Owner, needs: ReadonlyMap<string, readonly Need[]>, builder?: BatchBuilder): Promise<void> {
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
    await this.committer.inFlight;
    const committed = await this.loader.event(key, version);
    if (committed === undefined) throw new ValueMissing(`the event ${version} is not in the journal`);
    return committed;
  }
}

function openTasks(owner: Owner, entity: Resident): OpenTasks {
  try {
    return entity.machine.openTasks(entity.state, owner.context(entity));
  } catch (error) {
    throw new DecisionFailed(entity.key, error);
  }
}
