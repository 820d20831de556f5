import { DEFINITION_SCOPE, entityId, entityKind, partitionOf } from "../core/entity.ts";
import { fold } from "../core/fold.ts";
import type { Machine, MachineEvent } from "../core/machine.ts";
import type { Message } from "../core/message.ts";
import { standingQuarantine } from "../core/standing-quarantine.ts";
import { asVersion } from "../core/workflow-version.ts";
import type { Json } from "../json/json.ts";
import type { Loaded, LoadRequest, Store } from "../store/contract.ts";
import { snapshotText } from "../store/snapshot-text.ts";
import { DefinitionCache, DefinitionUnusable, type StoredDefinitions } from "./definition-cache.ts";
import { type Quarantine, Resident } from "./resident.ts";

/** What came of loading an entity. */
export type LoadResult =
  | Resident
  | Quarantine
  /** Nothing is stored, and the message that names it does not start it. */
  | { readonly kind: "unknown" };

/** Brings entities into memory: snapshot and tail, folded by the machine of their kind. */
export class Loader {
  private readonly store: Store;
  private readonly machines: ReadonlyMap<string, Machine>;
  readonly definitions: DefinitionCache;

  constructor(store: Store, machines: ReadonlyMap<string, Machine>) {
    this.store = store;
    this.machines = machines;
    this.definitions = new DefinitionCache(store);
  }

  /**
   * Loads entities in one round trip.
   *
   * @param starts the first message for each entity that may not exist yet
   * @param raw entities that must not be folded, because that may be what kills us
   * @param stored what whoever starts with a definition knows the store to have
   */
  async load(
    keys: readonly string[],
    starts: ReadonlyMap<string, Message>,
    raw: ReadonlyMap<string, Quarantine["error"]>,
    stored?: StoredDefinitions,
  ): Promise<ReadonlyMap<string, LoadResult>> {
    const results = new Map<string, LoadResult>();
    if (keys.length === 0) return results;
    const loaded = await this.store.journal.load(keys.map((key) => this.request(key)));
    for (const entry of loaded) {
      const start = starts.get(entry.entity);
      const suspicion = raw.get(entry.entity);
      const begun = suspicion === undefined ? this.begun(entry, start, stored) : undefined;
      results.set(entry.entity, begun ?? (await this.resident(entry, start, suspicion, stored)));
    }
    return results;
  }

  /** Of one that begins, as most do, there is nothing to fold; undefined if something has to be waited for, or is wrong. */
  private begun(
    { entity: key, snapshot, records, wakeAtMs }: Loaded,
    start: Message | undefined,
    stored: StoredDefinitions | undefined,
  ): Resident | undefined {
    if (snapshot !== null || records.length > 0 || start === undefined || stored === undefined) return undefined;
    const machine = this.machines.get(entityKind(key));
    const hash = machine?.definitionOf(start.body);
    if (machine === undefined || hash === undefined) return undefined;
    const definition = this.definitions.atHand(machine, hash, stored);
    if (definition === undefined) return undefined;
    const id = entityId(key);
    try {
      return this.finish(key, id, machine, machine.create(id, definition), wakeAtMs, null);
    } catch {
      return undefined;
    }
  }

  /** How far the store's journals of these have come; 0 = nothing is stored. */
  async versions(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
    const { journal } = this.store;
    const watched = [...keys].map(async (key): Promise<readonly [string, number]> => {
      return [key, await journal.watch(this.request(key).partition, key, 0, 0)];
    });
    return new Map(await Promise.all(watched));
  }

  /** Whether this message may bring its entity to life. */
  isStart(message: Message): boolean {
    return this.machines.get(entityKind(message.to))?.isStart(message.body) ?? false;
  }

  /** The texts of values that a decision asked for. One that is gone is a hole in the store, and not to be guessed. */
  async fetchBlobs(key: string, hashes: readonly string[]): Promise<readonly string[]> {
    const texts = await this.store.records.get(hashes.map((hash) => ({ scope: key, hash })));
    return texts.map((text, i) => {
      if (text === null) throw new ValueMissing(`the value ${hashes[i]} is not in the store`);
      return text;
    });
  }

  /** A workflow by its name, as it is published now: what a decision needs to call it. null if there is none. */
  async findWorkflow(name: string, version?: string | number): Promise<Json> {
    const published = await this.store.records.published(name, asVersion(version));
    if (published === null) return null;
    const [text] = await this.store.records.get([{ scope: DEFINITION_SCOPE, hash: published.hash }]);
    if (text === null || text === undefined) return null;
    const { timeout_seconds: seconds, input_schema: schema } = JSON.parse(text) as {
      readonly timeout_seconds?: number;
      readonly input_schema?: Json;
    };
    const input = schema === undefined ? {} : { input_schema: schema };
    return { hash: published.hash, version: published.version, timeout_seconds: seconds ?? 0, ...input };
  }

  /** One event, by its version; undefined if the journal does not have it. */
  async event(key: string, version: number): Promise<MachineEvent | undefined> {
    const [loaded] = await this.store.journal.load([{ ...this.request(key), aboveVersion: version - 1 }]);
    for (const record of loaded!.records) {
      if (record.version <= version && version < record.version + record.count) {
        return (JSON.parse(record.text) as MachineEvent[])[version - record.version]!;
      }
    }
    return undefined;
  }

  private async resident(
    loaded: Loaded,
    start: Message | undefined,
    raw: Quarantine["error"] | undefined,
    stored: StoredDefinitions | undefined,
  ): Promise<LoadResult> {
    const key = loaded.entity;
    const machine = this.machines.get(entityKind(key));
    const version = versionOf(loaded);
    const standing = standingQuarantine(loaded.records);
    const tooNew = machine === undefined || loaded.records.some((record) => record.format > machine.eventFormat);
    if (standing !== undefined) {
      const releasable = standing.error.code === "FORMAT_TOO_NEW" && !tooNew;
      const { parked, error } = standing;
      return quarantine(key, version, error, { parked, releasable, fresh: false, answered: answeredIn(loaded) });
    }
    if (raw !== undefined) return quarantine(key, version, raw, { answered: answeredIn(loaded) });
    if (tooNew) {
      const what = machine === undefined ? "This release does not know its kind" : "Its events are of a newer release";
      const message = `${what}; it is left alone until a release owns it that can read it`;
      return quarantine(key, version, { code: "FORMAT_TOO_NEW", message, retryable: false });
    }
    try {
      return await this.fold(loaded, machine, start, stored);
    } catch (error) {
      if (!(error instanceof FoldError)) throw error;
      return quarantine(key, version, { code: "FOLD_FAILED", message: error.message, retryable: false });
    }
  }

  private async fold(
    loaded: Loaded,
    machine: Machine,
    start: Message | undefined,
    stored: StoredDefinitions | undefined,
  ): Promise<LoadResult> {
    const { entity: key, records, wakeAtMs } = loaded;
    const id = entityId(key);
    const snapshot = loaded.snapshot?.format === machine.snapshotFormat ? loaded.snapshot : null;
    const text = snapshot === null ? null : await snapshotText(this.store.records, key, snapshot.text);
    if (snapshot !== null && text !== null) {
      const hash = inFold(() => machine.definitionOfSnapshot(text));
      const definition = await this.definition(machine, hash);
      if (definition === null) throw new FoldError("its definition is not in the store");
      const folded = inFold(() => fold(machine, machine.restore(id, definition, text), records));
      return this.finish(key, id, machine, folded, wakeAtMs, { version: snapshot.version, chars: text.length });
    }
    const all = loaded.snapshot === null ? records : await this.wholeJournal(key);
    const first = all[0] === undefined ? undefined : inFold(() => (JSON.parse(all[0]!.text) as MachineEvent[])[0]);
    if (first === undefined && start === undefined) return { kind: "unknown" };
    const hash = machine.definitionOf(first ?? start!.body);
    const definition = await this.definition(machine, hash, first === undefined ? stored : undefined);
    if (definition === null && first === undefined) return { kind: "unknown" };
    if (definition === null) throw new FoldError("its definition is not in the store");
    const folded = inFold(() => fold(machine, machine.create(id, definition), all));
    return this.finish(key, id, machine, folded, wakeAtMs, null);
  }

  /** A definition that this release cannot compile stops those who need it, and nobody else. */
  private async definition(machine: Machine, hash: string | undefined, stored?: StoredDefinitions): Promise<unknown> {
    try {
      return await this.definitions.get(machine, hash, stored);
    } catch (error) {
      if (error instanceof DefinitionUnusable) throw new FoldError(error.message, { cause: error });
      throw error;
    }
  }

  private finish(
    key: string,
    id: string,
    machine: Machine,
    state: unknown,
    wakeAtMs: number | null,
    snapshot: { version: number; chars: number } | null,
  ): Resident {
    const resident = new Resident(key, id, machine, state);
    resident.storedWakeMs = wakeAtMs;
    if (machine.isEnded(state)) resident.keepUntilMs = wakeAtMs;
    resident.snapshotVersion = snapshot?.version ?? 0;
    resident.snapshotChars = snapshot?.chars ?? 0;
    if (machine.versionOf(state) > 0) resident.headerStatus = machine.header(state)?.status ?? null;
    // An ended entity with a wake time still has tasks to withdraw: its owner died between the two.
    if (machine.isEnded(state) && wakeAtMs !== null) resident.withdrawing = machine.withdrawn(state);
    return resident;
  }

  private request(key: string): LoadRequest {
    return { entity: key, partition: partitionOf(key, this.store.capabilities.partitionCount) };
  }

  private async wholeJournal(key: string): Promise<Loaded["records"]> {
    const [loaded] = await this.store.journal.load([{ ...this.request(key), aboveVersion: 0 }]);
    return loaded!.records;
  }
}

/** The store has lost something that the journal names. That entity cannot go on; everything else can. */
export class ValueMissing extends Error {
  override readonly name = "ValueMissing";
}

/** The journal cannot be folded: our bug, or a store that was tampered with. That entity stops, nothing else does. */
class FoldError extends Error {
  override readonly name = "FoldError";
}

function inFold<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new FoldError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function quarantine(
  key: string,
  version: number,
  error: Quarantine["error"],
  more: Partial<Pick<Quarantine, "parked" | "releasable" | "fresh" | "answered">> = {},
): Quarantine {
  const none = { parked: [], answered: new Set<string>(), releasable: false };
  return { kind: "quarantine", key, version, error, fresh: true, touchedBy: 0, pinnedBy: 0, ...none, ...more };
}

/** The commands that were applied or refused since the last snapshot. */
function answeredIn({ records }: Loaded): ReadonlySet<string> {
  const answered = new Set<string>();
  for (const { text } of records) {
    if (!text.includes('"commandApplied"') && !text.includes('"commandRefused"')) continue;
    for (const event of JSON.parse(text) as (MachineEvent & { readonly request?: string })[]) {
      const isAnswer = event.kind === "commandApplied" || event.kind === "commandRefused";
      if (isAnswer && event.request !== undefined) answered.add(event.request);
    }
  }
  return answered;
}

function versionOf(loaded: Loaded): number {
  const last = loaded.records.at(-1);
  if (last !== undefined) return last.version + last.count - 1;
  return loaded.snapshot?.version ?? 0;
}
