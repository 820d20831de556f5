import type { BlobRef } from "../expression/scope.ts";
import type { Json } from "../json/json.ts";
import type { Message } from "./message.ts";
import type { PastRef } from "./value.ts";

/** A definition that is in this process, whether or not a store has it. */
export interface DefinitionAtHand {
  readonly chars: number;
  text(): string;
  /** As `prepareDefinition` does. */
  prepare(): unknown;
}

/**
 * A kind of entity: how its state is decided, changed, kept and woken. The engine shell runs any of them alike. An
 * execution is one; a gate (a limit, a breaker, a budget) and a cached result are the others.
 */
export interface Machine<State = unknown, Event extends MachineEvent = MachineEvent> {
  readonly kind: string;
  /** Formats of events this code can fold; it writes the highest. */
  readonly eventFormat: number;
  readonly snapshotFormat: number;
  /** Which definition the state needs, from the message that starts it or from its first event; undefined if none. */
  definitionOf(first: Message["body"] | Event): string | undefined;
  /** Whether this message may bring an entity to life; any other for an unknown one is dropped. */
  isStart(body: Message["body"]): boolean;
  /** The state before the first event. `definition` is the stored text that `definitionOf` asked for, made ready. */
  create(id: string, definition: unknown): State;
  prepareDefinition(hash: string, text: string): unknown;
  /** The text that a definition was made ready from, where it can be had from that; elsewhere it has to be kept. */
  textOfDefinition?(definition: unknown): (() => string) | undefined;
  /** A definition that this process has already, so that it need not be read; of small ones it is not known. */
  definitionAtHand?(hash: string): DefinitionAtHand | undefined;

  /** Never changes the state. */
  decide(state: State, message: Message, context: Context): Decision<Event>;
  /** What follows from the state and the time alone: at most `context.maxEvents` events, called until none comes. */
  advance(state: State, context: Context): Decision<Event>;
  /** Proves that everything that waits has something to wait for, and sets going what has not. */
  sweep?(state: State, context: Context): Decision<Event>;
  /**
   * What has to be said again after everything but the journals was lost: mail and lists. Called until no events come.
   */
  recovered?(state: State, context: Context): Decision<Event>;
  /** All lists that its entity stays on when only the archive has it; undefined if the event says nothing of them. */
  lastingLists?(id: string, event: Event): readonly ListingDraft[] | undefined;
  /**
   * Places on lists of other entities that stay when this entity is only in the archive, as far as events after the first `before` may
   * have put something there. `events` are all there are, from the first on.
   */
  lastingEntries?(id: string, events: readonly Event[], before: number): readonly ListPlace[];
  /** Who has called it and waits for it; null if nobody does. */
  callerOf?(state: State): string | null;
  /** Whom it has called, as far as it still knows: they have to stay no longer than it does. */
  called?(state: State): readonly string[];
  /** The message that calls it off, sent again when its caller was called off and the first may have been lost. It may be taken twice. */
  calledOff?(state: State): Message;
  /** Who has something of it, and by which asks. */
  debtors?(state: State): ReadonlyMap<string, readonly number[]>;
  /** What it has to hear of a debtor from which nothing more will come. */
  forgotten?(state: State, debtor: string, asks: readonly number[]): Message;
  /** Which of these asks a journal says were given back to whom, said again. To hear it twice is the same. */
  gaveBack?(id: string, events: readonly Event[], to: string, asks: readonly number[]): readonly Message[];
  /** The only thing that changes the state. */
  evolve(state: State, event: Event): void;
  /** What `JSON.stringify` says of an event, where there is a faster way to it. */
  eventText?(state: State, event: Event): string;
  /** Throws if the state contradicts itself. `whole` checks everything, else only what the last events touched. */
  check(state: State, whole: boolean): void;

  /** True while `advance` has something to do that no time or message must bring. */
  hasWork(state: State): boolean;
  /** The next moment at which time alone changes something. */
  nextWakeMs(state: State): number | null;
  /** The same by the store's clock, for what waits for a date. */
  nextCalendarMs?(state: State): number | null;
  /** Tokens of the tasks that are out. */
  liveTokens(state: State): readonly string[];
  /** How many tasks are out, by queue. */
  liveTasks(state: State): LiveTasks;
  /** How many that is in all. */
  liveCount(state: State): number;
  /** Every task that should exist now, made from the state. */
  openTasks(state: State, context: Context): OpenTasks;
  /** Tokens of tasks that nobody should work on any more; a cause for revoking, harmless twice. */
  withdrawn(state: State): readonly string[];
  isEnded(state: State): boolean;
  /** Since when nothing more is to be expected of it, so that it may be removed some time later; null while it lives. */
  idleSinceMs?(state: State): number | null;
  /** When nobody has any use for it any more, however long others are kept: it is removed then, and never shipped. */
  expiresAtMs?(state: State): number | null;
  /** What it has to say when it is removed for good. */
  farewell?(state: State): readonly Message[];
  /** Dead letters it has written, which go when it is removed. */
  letters?(state: State): readonly string[];
  /** These letters as a journal leaves them, made from it alone. */
  lettersLeft?(
    id: string,
    definition: unknown,
    events: readonly Event[],
  ): readonly (DeadLetterDraft & { readonly atMs: number })[];
  /** What lists of executions show of it; null if it has no business there. */
  header(state: State): EntityHeader | null;
  /** The status in it, without the rest, where that costs less. */
  listedAs?(state: State): string;
  versionOf(state: State): number;

  snapshot(state: State): string;
  /** The same text piece by piece, where it may be long. */
  snapshotPieces?(state: State): Iterable<string>;
  restore(id: string, definition: unknown, text: string): State;
  definitionOfSnapshot(text: string): string | undefined;
  /**
   * An event that holds all that the state is, and changes nothing of it: what came before may be removed from the
   * journal. null if that is not worth it yet. Only a kind that lives for ever has such events.
   */
  renewal?(state: State, atMs: number, everyEvents: number): Event | null;
  isRenewal?(event: Event): boolean;
  /** The version of the last such event; 0 if there was none. */
  renewedVersion?(state: State): number;
  /** The value that a need of the past names, in the event that brought it. A kind that has no such needs has none. */
  pastValue?(event: Event): Json | undefined;
}

export interface LiveTasks extends Iterable<[string, number]> {
  readonly size: number;
  get(queue: string): number | undefined;
  has(queue: string): boolean;
  forEach(visit: (count: number, queue: string) => void): void;
  /** Which have changed since this was last asked; undefined if all have to be looked at. */
  takeChanged?(): ReadonlySet<string> | undefined;
}

export interface MachineEvent {
  readonly kind: string;
  readonly atMs: number;
}

/** All that a decision may know beyond state and message. Fixed for a batch, so that replaying a batch repeats it. */
export interface Context {
  /** Partition time: durations count in it; it never goes back. */
  readonly nowMs: number;
  /**
   * Deadlines up to here may fire. Behind `nowMs` while messages wait to be read: a result that was posted in time must
   * not lose against the deadline of its task only because its owner was away.
   */
  readonly deadlineMs: number;
  /** The store's clock: calendar moments are judged by it. */
  readonly calendarMs: number;
  /** The owner's nonce, which goes into the tokens of what it dispatches. */
  readonly nonce: string;
  readonly maxEvents: number;
  /** Uniform in [0, 1). */
  random(): number;
  /** How many more tasks this queue may take now. */
  room(queue: string): number;
  /** A value that was fetched for this decision, by `hash` or `past:version`; undefined if it was not. */
  fetched(key: string): Json | undefined;
}

export interface Decision<Event> {
  readonly events: readonly Event[];
  /** The answer for whoever sent the message. */
  readonly reply?: Answer;
  /** Tasks that go out with these events, by index into `events`. */
  readonly tasks?: readonly TaskDraft[];
  readonly mail?: readonly Message[];
  /** To be written before the commit that names them. */
  readonly blobs?: readonly BlobDraft[];
  readonly revoke?: readonly string[];
  readonly deadLetters?: readonly DeadLetterDraft[];
  /** Ids of dead letters that are gone. */
  readonly discard?: readonly string[];
  readonly listings?: readonly ListingDraft[];
  /** Values that must be fetched before more can be decided. */
  readonly needs?: readonly Need[];
  /** Queues that had no room for what is ready. */
  readonly blocked?: readonly string[];
}

/** Bytes of the entity that decides, unless they are for another scope: a child, a parent, the definitions. */
export interface BlobDraft {
  readonly hash: string;
  readonly text: string;
  readonly scope?: string;
}

/** Something open that people look for without knowing the execution: a review. Without text it is gone. */
export interface ListingDraft extends ListPlace {
  readonly text: string | null;
}

/** Where something stands. */
export interface ListPlace {
  readonly list: string;
  readonly id: string;
}

/**
 * What a decision has to have at hand. A workflow by name gives `{hash, version, timeout_seconds, input_schema?}` of the
 * version that is current when it is asked for, or null.
 */
export type Need =
  | { readonly blob: BlobRef }
  | { readonly past: PastRef }
  | { readonly workflow: { readonly name: string; readonly version?: string | number } };

export function needKey(need: Need): string {
  if ("blob" in need) return need.blob.hash;
  if ("past" in need) return `past:${need.past.version}`;
  return `workflow:${need.workflow.name}@${need.workflow.version ?? ""}`;
}

export interface OpenTasks {
  readonly tasks: readonly TaskDraft[];
  readonly needs: readonly Need[];
  /** What is too large for a task itself, and was written before it was first put out. */
  readonly blobs?: readonly BlobDraft[];
}

export interface TaskDraft {
  readonly token: string;
  readonly queue: string;
  readonly priority: number;
  /** About as long as the text, without making it. */
  readonly chars: number;
  /** Made when it is asked for. */
  readonly text: string;
  /** What the text says, new for everybody who asks. */
  value(): unknown;
}

export interface DeadLetterDraft {
  readonly id: string;
  readonly class: "poison" | "exhausted";
  readonly queue: string;
  readonly text: string;
}

/** What an API process tells its caller. */
export type Answer =
  | { readonly ok: Json }
  | { readonly refused: string; readonly execution?: Json; readonly errors?: Json; readonly detail?: string };

export interface EntityHeader {
  readonly class: "open" | "endedWell" | "endedBadly";
  readonly status: string;
  readonly workflow: string;
  readonly tenant: string;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
}
