import type { Answer, Decision, Machine, MachineEvent, TaskDraft } from "../core/machine.ts";
import type { Message, ReplyAddress } from "../core/message.ts";
import { messageText } from "../core/message.ts";
import { DEFINITION_SCOPE, partitionOf } from "../core/entity.ts";
import type {
  Capabilities,
  CommitBatch,
  Cut,
  DeadLetter,
  Fence,
  Header,
  JournalRecord,
  Listing,
  Outgoing,
  Position,
  Reply,
  Snapshot,
  StoredRecord,
  Task,
} from "../store/contract.ts";
import type { Recalled } from "./recall.ts";
import type { Entity, Orphan, Resident, Written } from "./resident.ts";

const NONE: ReadonlySet<string> = new Set();

/** The latest that every store can hold. */
const LATEST_MS = Number.MAX_SAFE_INTEGER;

/** What of the store matters to a batch. */
type BatchStore = Pick<Capabilities, "partitionCount" | "sameProcess">;

/** Who has decided something. */
type Decider = Pick<Resident, "key" | "state" | "written"> & {
  readonly machine: Pick<Machine, "eventFormat" | "eventText">;
};

/** What its owner says of a batch when it is sent. */
interface Seal {
  readonly fence: Fence;
  readonly id: string;
  readonly behind: string | undefined;
  readonly timeMs: number;
  readonly suspect: string | null;
}

/** A batch while it is being formed: what one commit of one partition will hold. */
export class BatchBuilder {
  readonly number: number;
  readonly partition: number;
  consumed: Position | null = null;
  /** Who is in memory and was touched by it, each once: who touches it notes on itself by which batch it was touched last. */
  readonly entities: Entity[] = [];
  /** Of those, in the order in which they were sent something, who goes on when all is taken. */
  next: Resident[] = [];
  /** Who was touched by its name alone. */
  private readonly named = new Set<string>();
  readonly tasks: Task[] = [];
  /** Entities that were let out of quarantine only to be cancelled. */
  readonly cancelled: Set<string> = new Set();
  readonly revoke: string[] = [];
  readonly replies: Reply[] = [];
  readonly blobs: StoredRecord[] = [];
  /** Entities that are removed with all that belongs to them. */
  readonly purge: string[] = [];
  /** Whom those had called. */
  readonly orphans: Orphan[] = [];
  /** Definitions that the store was seen to have, for what this batch starts with them. */
  definitions: ReadonlySet<string> = NONE;
  /** Of a careful owner: it is sent even if it is empty, since what its owner is about to do, or has survived, is said by the commit itself. */
  mustGoOut = false;
  /** Whom alone it is about, of a careful owner. */
  item: string | null = null;
  /** It was sent while another was under way. */
  isBehind = false;
  /** How many messages it has that begin something. */
  starts = 0;

  private readonly store: BatchStore;
  private readonly records: Written[] = [];
  /** Their places by name, of as many as there were when somebody last asked: few ask, and there is one for nearly every step. */
  private readonly recordOf = new Map<string, Written>();
  private recordsNamed = 0;
  /** The events of one of them, read again, and how many they were then. */
  private reread: {
    readonly record: Written;
    readonly count: number;
    readonly events: readonly MachineEvent[];
  } | null = null;
  private readonly headers = new Map<string, Header>();
  readonly wakes: Map<string, number | null> = new Map();
  private readonly snapshots: Snapshot[] = [];
  private readonly restored: JournalRecord[] = [];
  private readonly restoredEntities: string[] = [];
  private readonly mail: Outgoing[] = [];
  private readonly deadLetters = new Map<string, DeadLetter>();
  private readonly discard = new Set<string>();
  private readonly listings: Listing[] = [];
  private readonly cuts: Cut[] = [];
  private readonly broughtDefinitions = new Set<string>();
  private eventCount = 0;
  private chars = 0;

  constructor(number: number, partition: number, store: BatchStore) {
    this.number = number;
    this.partition = partition;
    this.store = store;
  }

  /** Entries so far; the store bounds them, and a batch that reaches the bound leaves the rest to the next. */
  get entries(): number {
    return this.eventCount + this.tasks.length + this.revoke.length + this.mail.length + this.snapshots.length;
  }

  get size(): number {
    return this.chars;
  }

  get isEmpty(): boolean {
    return (
      this.consumed === null &&
      !this.mustGoOut &&
      this.records.length === 0 &&
      this.restored.length === 0 &&
      this.wakes.size === 0 &&
      this.snapshots.length === 0 &&
      this.revoke.length === 0 &&
      this.purge.length === 0 &&
      this.listings.length === 0 &&
      this.cuts.length === 0 &&
      this.replies.length === 0
    );
  }

  /** Adds a decision's events and effects. `firstVersion` is the version of its first event. */
  add(by: Decider, decision: Decision<MachineEvent>, firstVersion: number, nowMs: number): void {
    const { key, machine, state } = by;
    const { eventFormat } = machine;
    const { events, tasks, revoke, mail, blobs, deadLetters, discard, listings } = decision;
    for (let i = 0; i < events.length; i++) {
      const text = machine.eventText?.(state, events[i]!) ?? JSON.stringify(events[i]);
      const before = by.written?.batch === this.number ? by.written : undefined;
      by.written = this.write(before, key, text, firstVersion + i, eventFormat);
    }
    // Asked one by one: most decisions have none of these, and there are several for each step.
    if (tasks !== undefined) {
      for (const task of tasks) {
        this.tasks.push(placed(task, key, this.partition, this.store));
        this.chars += task.chars;
      }
    }
    if (revoke !== undefined) this.revoke.push(...revoke);
    if (mail !== undefined) for (const message of mail) this.send(message);
    if (blobs !== undefined) {
      for (const blob of blobs) this.blob({ scope: key, ...blob });
    }
    if (deadLetters !== undefined) for (const letter of deadLetters) this.deadLetter(key, letter, nowMs);
    if (discard !== undefined) for (const id of discard) this.discardLetter(id);
    if (listings !== undefined) for (const one of listings) this.listings.push({ ...one, entity: key, atMs: nowMs });
  }

  /** Every item of a map that is a graph brings the definition of that graph. */
  private blob(record: StoredRecord): void {
    if (record.scope === DEFINITION_SCOPE) {
      if (this.broughtDefinitions.has(record.hash)) return;
      this.broughtDefinitions.add(record.hash);
    }
    this.blobs.push(record);
    this.chars += record.text.length;
  }

  /** Events that the shell has to say of an entity, whatever its kind is. */
  events(key: string, events: readonly MachineEvent[], firstVersion: number, format: number): void {
    this.named.add(key);
    for (const [i, event] of events.entries()) {
      this.write(this.record(key), key, JSON.stringify(event), firstVersion + i, format);
    }
  }

  private write(before: Written | undefined, entity: string, text: string, version: number, format: number): Written {
    this.chars += text.length;
    this.eventCount++;
    if (before === undefined) {
      const record: Written = { entity, batch: this.number, version, format, count: 1, text: `[${text}` };
      this.records.push(record);
      return record;
    }
    before.count++;
    before.text += `,${text}`;
    return before;
  }

  private record(key: string): Written | undefined {
    for (; this.recordsNamed < this.records.length; this.recordsNamed++) {
      const record = this.records[this.recordsNamed]!;
      this.recordOf.set(record.entity, record);
    }
    return this.recordOf.get(key);
  }

  /** Everybody whom it touched, by name. */
  touched(): ReadonlySet<string> {
    return this.entities.length === 0 ? this.named : new Set([...this.entities.map(({ key }) => key), ...this.named]);
  }

  /** Those of them who need not be in memory. */
  touchedByName(): ReadonlySet<string> {
    return this.named;
  }

  /** Puts an entity back as it was shipped: what it says here is no news to anybody. */
  restore(entity: string, { records, header, letters }: Recalled): void {
    this.named.add(entity);
    this.restoredEntities.push(entity);
    // Not spread: a large execution has more records than a call may have arguments.
    for (const record of records) this.restored.push(record);
    const first = records[0]?.version ?? 1;
    if (first > 1) this.cut(entity, first);
    if (header !== null) this.headers.set(entity, header);
    for (const letter of letters) this.deadLetters.set(letter.id, letter);
  }

  hasEvents(key: string): boolean {
    return this.record(key) !== undefined;
  }

  /** Whose events it holds, and which. */
  *written(): Generator<{ readonly entity: string; readonly first: number; readonly last: number }, void> {
    for (const { entity, version, count } of this.records) {
      yield { entity, first: version, last: version + count - 1 };
    }
  }

  /** Whose dead letters come with it, and whose may go: those who say that letters go have events that say why. */
  *lettered(): Generator<string, void> {
    for (const { entity } of this.deadLetters.values()) yield entity;
    if (this.discard.size > 0) for (const { entity } of this.records) yield entity;
  }

  listing(listing: Listing): void {
    this.listings.push(listing);
  }

  /** An event of this batch, by its version; undefined if it holds none such. */
  eventAt(key: string, version: number): MachineEvent | undefined {
    const record = this.record(key);
    if (record === undefined || version < record.version || version >= record.version + record.count) return undefined;
    // Asked for many in a row, as a rule.
    if (this.reread?.record !== record || this.reread.count !== record.count) {
      this.reread = { record, count: record.count, events: JSON.parse(`${record.text}]`) as MachineEvent[] };
    }
    return this.reread.events[version - record.version];
  }

  deadLetter(key: string, letter: Omit<DeadLetter, "entity" | "atMs">, atMs: number): void {
    this.discard.delete(letter.id);
    this.deadLetters.set(letter.id, { ...letter, entity: key, atMs });
  }

  /** What one batch says of a letter is what it said last: a store does not know in which order it was said. */
  discardLetter(id: string): void {
    this.deadLetters.delete(id);
    this.discard.add(id);
  }

  reply(address: ReplyAddress | undefined, answer: Answer | undefined): void {
    if (address === undefined || answer === undefined) return;
    const { process, request } = address;
    // Of a refusal the state has a part, with what its sender is told; they are few.
    const isInHand = this.store.sameProcess === true && "ok" in answer;
    this.replies.push(
      isInHand ? { process, request, text: "", answer } : { process, request, text: JSON.stringify(answer) },
    );
  }

  send(message: Message): void {
    const text = messageText(message);
    this.chars += text.length;
    this.mail.push({ partition: partitionOf(message.to, this.store.partitionCount), start: false, text });
  }

  header(header: Header): void {
    this.headers.set(header.entity, header);
  }

  /** The same of somebody who may have nothing else to do with this batch. */
  wakeByName(key: string, atMs: number | null): void {
    this.named.add(key);
    this.wake(key, atMs);
  }

  /**
   * Stores hold whole milliseconds, and what one of them refuses would be decided and refused for ever; but a handler may ask to
   * be called again after any time. To look too early costs nothing.
   */
  wake(key: string, atMs: number | null): void {
    this.wakes.set(key, atMs === null ? null : Math.min(Math.floor(atMs), LATEST_MS));
  }

  /** What its journal has below this version goes. */
  cut(entity: string, belowVersion: number): void {
    this.cuts.push({ entity, belowVersion });
  }

  snapshot(snapshot: Snapshot): void {
    this.snapshots.push(snapshot);
    this.chars += snapshot.text.length;
  }

  /** The batch as it goes to the store. Built once: a resend carries the same bytes. */
  seal({ fence, id, behind, timeMs, suspect }: Seal): CommitBatch {
    const records: JournalRecord[] = [...this.restored];
    for (let i = 0; i < this.records.length; i++) {
      const { entity, version, count, format, text } = this.records[i]!;
      records.push({ entity, version, count, format, text: `${text}]` });
    }
    const wakes: CommitBatch["wakes"][number][] = [];
    this.wakes.forEach((atMs, entity) => wakes.push({ entity, atMs }));
    return {
      fence,
      id,
      ...(behind !== undefined && { behind }),
      timeMs,
      consumed: this.consumed,
      records,
      headers: [...this.headers.values()],
      wakes,
      snapshots: this.snapshots,
      tasks: this.tasks,
      revoke: this.revoke,
      mail: this.mail,
      replies: this.replies,
      discard: [...this.discard],
      deadLetters: [...this.deadLetters.values()],
      ...(this.listings.length > 0 && { listings: this.listings }),
      purge: this.purge,
      ...(this.cuts.length > 0 && { cut: this.cuts }),
      ...(this.restoredEntities.length > 0 && { restored: this.restoredEntities }),
      suspect,
    };
  }
}

/** A task as a store takes it. */
export function placed(draft: TaskDraft, entity: string, partition: number, { sameProcess }: BatchStore): Task {
  if (sameProcess === true) return new TaskInHand(draft, entity, partition);
  const { token, queue, priority, text } = draft;
  return { token, entity, partition, queue, priority, text };
}

/** A task that stays in the process: nobody need write it down. */
class TaskInHand implements Task {
  readonly token: string;
  readonly entity: string;
  readonly partition: number;
  readonly queue: string;
  readonly priority: number;
  readonly #draft: TaskDraft;

  constructor(draft: TaskDraft, entity: string, partition: number) {
    this.token = draft.token;
    this.entity = entity;
    this.partition = partition;
    this.queue = draft.queue;
    this.priority = draft.priority;
    this.#draft = draft;
  }

  get text(): string {
    return this.#draft.text;
  }

  value(): unknown {
    return this.#draft.value();
  }
}
