import type { StoreError } from "./store-error.ts";

/**
 * The store contract: six small roles. A driver keeps what the core decided and holds guards, never rules.
 * Every text the engine hands over (records, messages, tasks, snapshots) is opaque to the driver.
 * docs/commit-protocol.md and docs/task-protocol.md tell why each rule is there; store/conformance proves a driver.
 * This is format 3. Format 1 was frozen after three real stores had carried it (docs/decisions/0003-contract-spikes.md);
 * format 2 added lists and what was published, format 3 journals that are cut. Whatever changes next is another format.
 */
export interface Store {
  readonly capabilities: Capabilities;
  readonly partitions: Partitions;
  readonly inbox: Inbox;
  readonly journal: Journal;
  readonly tasks: Tasks;
  readonly records: Records;
  readonly queries: Queries;
  /**
   * Resolves when the data that was opened is not there any more, or other data is: nothing may go on, and every call
   * rejects with this. Left out where that cannot happen unnoticed.
   */
  readonly lost?: Promise<StoreError>;
  /**
   * Whoever waits is answered at once, with nothing (a `watch` with the version as it was). A call that comes later and
   * has something to do rejects. Closing again does nothing.
   */
  close(): Promise<void>;
}

export interface Capabilities {
  readonly name: string;
  /** Fixed when the store is created. */
  readonly partitionCount: number;
  /** Of the fences of this store; left out where nobody but this process can have it. */
  readonly incarnation?: string;
  /**
   * One process at a time has the store, by a lock that ends with it: what an earlier one held is free as soon as the
   * store is opened again, and nobody waits for its lease. Without it several share the store.
   */
  readonly exclusive?: boolean;
  /** Tasks live in the process only: after a restart the owner puts them back from the state. */
  readonly volatileTasks: boolean;
  /**
   * Tasks and results never leave this process: where they are handed over as values, nobody writes their texts. Left out
   * where others may have them.
   */
  readonly sameProcess?: true;
  /** Messages from outside live in the process only, their sender waits for the commit. Mail is durable everywhere. */
  readonly volatileInbox: boolean;
  /**
   * A second batch of a partition may be sent while one is under way: both are carried out, and answered, in the order in which
   * they were sent. Left out where calls may overtake each other.
   */
  readonly queuesCommits?: true;
  /** Entries (records, tasks, revokes, mail, …) one batch may hold, and their bytes. */
  readonly maxBatchEntries: number;
  readonly maxBatchBytes: number;
}

/** `kind/id`, such as `execution/0198…`. The unit of state; hashed to a partition. */
export type EntityKey = string;

// ── partitions ────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Leases, here and of tasks, and registrations are judged by a clock of the store that does not go back, as far as the
 * store has looked: a wall clock that is set back an hour would keep a dead owner's lease alive for that hour. A jump is
 * only seen by looking before and after it; a renew looks, and an engine renews once a second. In a store that is part of
 * the process the time does not count for which that stood still, as nobody could renew anything then.
 */
export interface Partitions {
  /** Takes a free or lapsed partition: epoch + 1, a new nonce, so that every commit of an earlier owner is fenced. */
  acquire(partition: number, owner: string, leaseMs: number): Promise<AcquireOutcome>;
  /**
   * Makes a tenure of its own owner new: epoch + 1 and a new nonce, after a commit whose outcome is unknown. Only the
   * holder of the current nonce may, whether or not its lease has run out; anybody else is answered `held`, even if
   * nobody holds it (`by` is empty then). The owner is alive, so this is no strike and keeps `suspect`.
   */
  reacquire(fence: Fence, leaseMs: number): Promise<AcquireOutcome>;
  /** One call for all partitions of an engine. A partition that is no longer ours answers `lost`. */
  renew(fences: readonly Fence[], leaseMs: number): Promise<RenewOutcome>;
  /** Gives a partition back cleanly: the fence fits nothing any more. A stale fence changes nothing. */
  release(fence: Fence): Promise<void>;
}

/** Who may write, and what comes next: a commit is a compare-and-set on all of it. */
export interface Fence {
  readonly partition: number;
  /** Drawn when the store was created. Another one means the data is not the data we knew. */
  readonly incarnation: string;
  /** Rises with every acquire. */
  readonly epoch: number;
  /** Drawn at every acquire, so that an epoch issued twice after a loss of data still does not match. */
  readonly nonce: string;
  /** How many batches this partition has committed; the next one takes this number. */
  readonly seq: number;
}

export interface Tenure extends Fence {
  /** Partition time of the last commit; time never goes back behind it. */
  readonly lastTimeMs: number;
  readonly storeTimeMs: number;
  /**
   * Tenures in a row that ended neither by a release nor after a commit without a suspect: something here kills its
   * owner. A release ends the row: 0, and no suspect.
   */
  readonly strikes: number;
  /** What the owner before us was about to handle when it vanished (see CommitBatch.suspect). */
  readonly suspect: string | null;
}

export type AcquireOutcome =
  | { readonly kind: "acquired"; readonly tenure: Tenure }
  | { readonly kind: "held"; readonly by: string };

export interface RenewOutcome {
  readonly storeTimeMs: number;
  readonly partitions: readonly (
    | { readonly kind: "held"; readonly partition: number; readonly seq: number }
    | { readonly kind: "lost"; readonly partition: number }
  )[];
}

// ── inbox ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Inbox {
  /**
   * Appends in order, per partition. Starts are refused when the partition's inbox is too full, or the store; nothing
   * else ever is. The limit is about that many: senders need not wait for each other, so several at once may exceed it
   * by what they carry.
   */
  append(messages: readonly Outgoing[]): Promise<readonly AppendOutcome[]>;
  /**
   * The oldest messages of each partition that no commit has consumed, beyond `after`. Waits up to `waitMs` while all
   * are empty. Where there are more than `limit`, starts may stand behind the rest, if some of them come with every read.
   */
  read(requests: readonly ReadRequest[], waitMs: number): Promise<readonly ReadResult[]>;
  /** Replies for this process, each at most once; waits up to `waitMs`. Best effort: the journal is the truth. */
  replies(process: string, waitMs: number): Promise<readonly Reply[]>;
}

export interface Outgoing {
  readonly partition: number;
  /** A start may be refused; a command or a result may not. */
  readonly start: boolean;
  readonly text: string;
  /** The same as a value, for a store of the same process. It has no text then, and nobody changes it any more. */
  readonly message?: unknown;
  /** About how long its text would be. */
  readonly messageChars?: number;
}

/** A start is refused by an inbox that is `overloaded`, or by a store that is `full`. */
export type AppendOutcome = "appended" | "overloaded" | "full";

export interface ReadRequest {
  readonly partition: number;
  /**
   * The position of the newest batch that was formed and is not committed. A driver may leave out the messages this names, or all
   * up to its last if they become visible in order. Where commits are queued, the batch before it may not be committed either: such a
   * store also leaves out what the position names after which this one was read. null reads from the beginning.
   */
  readonly after: Position | null;
  readonly limit: number;
  /** Stop before the message that would exceed this many characters in all; the first one is always given. */
  readonly maxChars: number;
}

export interface ReadResult {
  readonly partition: number;
  readonly messages: readonly string[];
  /** In the same places, those that were handed over as values (see Settlement.message). They have no text. The list is the reader's. */
  readonly values?: unknown[];
  /** Names exactly the messages of this result; goes back to the store in the commit that consumes them. */
  readonly position: Position;
  /** These were at hand, or all that fitted, and nobody has looked what else there is. */
  readonly isPartial?: true;
}

/** A driver's own notion (a stream id, a list of row ids, an offset); opaque to the engine. */
export type Position = { readonly driver: string; readonly value: unknown };

// ── journal ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Journal {
  /**
   * Commits each batch whole or not at all, all in one call, at most one for a partition. An outcome is definite;
   * a rejected promise means *unknown*, for every batch of the call. What lies in the machine is a `StoreError`: of anything
   * else, again and again while the store answers, the values are suspected.
   */
  commit(batches: readonly CommitBatch[]): Promise<readonly CommitOutcome[]>;
  load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]>;
  /**
   * Entities whose wake time is at or before `beforeMs`, in order of (time, entity), beyond `after`: an owner walks
   * forward through them and looks at none twice.
   */
  due(partition: number, beforeMs: number, limit: number, after?: Wake): Promise<readonly Wake[]>;
  /** The entity's version once it is above `aboveVersion`, or as it is after `waitMs`. 0 = unknown entity. */
  watch(
    partition: number,
    entity: EntityKey,
    aboveVersion: number,
    waitMs: number,
    options?: WatchOptions,
  ): Promise<number>;
}

export interface WatchOptions {
  /** Only the end matters: a driver may go on waiting while the entity's header is of the class `open`. */
  readonly end?: boolean;
}

export interface CommitBatch {
  readonly fence: Fence;
  /** Drawn for every batch built; a resend of the same bytes carries the same id. */
  readonly id: string;
  /**
   * The batch that was under way when this one was sent, in a store that queues commits. If another was committed last, this
   * one was decided on what never came to be, and is fenced.
   */
  readonly behind?: string;
  /** Partition time; not below the last batch's. */
  readonly timeMs: number;
  /**
   * What the inbox may forget: the messages of the one read this batch was formed from, if there was one. In a store that
   * can lose what it has acknowledged they may be gone, and then the batch is fenced.
   */
  readonly consumed: Position | null;
  readonly records: readonly JournalRecord[];
  readonly headers: readonly Header[];
  /** null = nothing to wake for. */
  readonly wakes: readonly { readonly entity: EntityKey; readonly atMs: number | null }[];
  readonly snapshots: readonly Snapshot[];
  readonly tasks: readonly Task[];
  /**
   * Tokens of tasks to withdraw, those of this very batch included: gone if nobody has them, else their worker is told
   * at its next heartbeat. An unknown token is nothing.
   */
  readonly revoke: readonly string[];
  /** Messages to other entities, appended to their inboxes by this very commit; never refused, starts included. */
  readonly mail: readonly Outgoing[];
  readonly replies: readonly Reply[];
  /**
   * Ids of dead letters that are gone with this commit: replay and discard are commands to the owner. An unknown id is
   * nothing; one that is also in `deadLetters` is there afterwards.
   */
  readonly discard: readonly string[];
  /** The same id again replaces. */
  readonly deadLetters: readonly DeadLetter[];
  /** What lists show besides headers; of several with one list and id the last counts. Without it there are none. */
  readonly listings?: readonly Listing[];
  /**
   * Journal, snapshot, wake time, header, records and listings of these go, after everything else the batch says of
   * them. New `records` of an entity do not come in one batch with its purge: that is the engine's duty, and no driver
   * sorts it out.
   */
  readonly purge: readonly EntityKey[];
  /** Journals that lose their beginning, after everything else the batch says of them. Without it there are none. */
  readonly cut?: readonly Cut[];
  /** Entities that are put back as they were once: what the batch says of them is no news, and nothing to a store. */
  readonly restored?: readonly EntityKey[];
  /**
   * Set by an owner in careful mode before it touches something that may kill it. Such a commit keeps `strikes`;
   * any other commit clears both.
   */
  readonly suspect: string | null;
}

export type CommitOutcome =
  | { readonly kind: "committed" }
  /** This very batch was committed before: our own resend. */
  | { readonly kind: "alreadyApplied" }
  /** Another owner, epoch, nonce or sequence number: our memory is not the truth any more. */
  | { readonly kind: "fenced" }
  /**
   * Nothing was written, for a reason that lies in the store (full, read-only). It may hold for every batch of the call,
   * one that would have been fenced included.
   */
  | { readonly kind: "refused"; readonly reason: string };

/**
 * The events of one entity in one commit. `version` is the number of its first event, counted from 1, and has to be the
 * next: a gap or an overlap is a bug of ours, and a driver that notices rejects the commit.
 */
export interface JournalRecord {
  readonly entity: EntityKey;
  readonly version: number;
  readonly count: number;
  readonly format: number;
  readonly text: string;
}

/**
 * The records of an entity go that end before this version; one that holds events on both sides stays whole. Of very many
 * a driver may leave the newest for a later cut. That something is left is the engine's duty. An entity of which there is
 * nothing may begin at this version, and at no other but 1.
 */
export interface Cut {
  readonly entity: EntityKey;
  readonly belowVersion: number;
}

/** What lists show of an entity. Written when it is accepted and when its class changes. */
export interface Header {
  readonly entity: EntityKey;
  readonly class: HeaderClass;
  readonly status: string;
  readonly workflow: string;
  readonly tenant: string;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  readonly version: number;
}

export type HeaderClass = "open" | "endedWell" | "endedBadly";

/** A cache of a fold: the state after `version` events. Of an unknown format it is ignored. */
export interface Snapshot {
  readonly entity: EntityKey;
  readonly version: number;
  readonly format: number;
  readonly text: string;
}

export interface LoadRequest {
  /** Where the entity lives. A driver need not find it under another. */
  readonly partition: number;
  readonly entity: EntityKey;
  /**
   * Only events above this version, and no snapshot; without it the newest snapshot and what came after. A record that
   * holds events on both sides comes whole.
   */
  readonly aboveVersion?: number;
  /**
   * Together with `aboveVersion`: beyond this many characters the newer records may be left for another load, so that a long
   * journal is not in memory as a whole. A driver may give all of them.
   */
  readonly maxChars?: number;
}

export interface Loaded {
  readonly entity: EntityKey;
  readonly snapshot: Snapshot | null;
  readonly records: readonly JournalRecord[];
  readonly wakeAtMs: number | null;
}

export interface Wake {
  readonly entity: EntityKey;
  readonly atMs: number;
}

export interface Reply {
  readonly process: string;
  readonly request: string;
  readonly text: string;
  /** The same as a value, for a store of the same process. It has no text then, and nobody changes it any more. */
  readonly answer?: unknown;
}

export interface DeadLetter {
  readonly id: string;
  readonly class: "poison" | "exhausted";
  readonly queue: string;
  readonly entity: EntityKey;
  readonly atMs: number;
  readonly text: string;
}

/**
 * An entry of a named list, such as the reviews that are open: found without folding the executions it comes from. It
 * goes with the purge of its entity.
 */
export interface Listing {
  readonly list: string;
  /** Names it within its list; the same again replaces, whoever wrote it. */
  readonly id: string;
  readonly entity: EntityKey;
  readonly atMs: number;
  /** null takes it off the list; one that is not there is nothing. */
  readonly text: string | null;
}

/** One that is on its list. */
export interface Listed extends Listing {
  readonly text: string;
}

// ── tasks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Tasks {
  /**
   * Up to `max` tasks in all, queues in the order given, within a queue those of higher priority first, then the
   * oldest; waits up to `waitMs` for one.
   */
  lease(request: LeaseRequest): Promise<readonly LeasedTask[]>;
  /** Extends the leases named and no others, and posts what those that are still ours have to say. */
  heartbeat(beats: readonly Heartbeat[], leaseMs: number): Promise<HeartbeatOutcome>;
  /** Removes the task and appends the result to its partition's inbox in one step. */
  settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]>;
  /**
   * Does the same with `deliveryLost` for tasks whose lease ran out; a revoked one is removed without a word. Never
   * hands a task to anybody. Answers how many it removed.
   */
  lapse(limit: number): Promise<number>;
  /** Volatile queues only: puts a task back that a restart has dropped; a task still there is left alone. */
  restore(tasks: readonly Task[]): Promise<void>;
}

export interface Task {
  /** Names the dispatch: nonce, execution, generation, node instance, attempt, delivery. */
  readonly token: string;
  readonly entity: EntityKey;
  readonly partition: number;
  readonly queue: string;
  /** An integer from −1,000 to 1,000. */
  readonly priority: number;
  readonly text: string;
  /** What the text says, in the same process: one that belongs to whoever asks. */
  value?(): unknown;
}

export interface LeaseRequest {
  readonly worker: string;
  /** It is in another process, and does not die with this one. */
  readonly isFar?: boolean;
  readonly queues: readonly string[];
  readonly max: number;
  readonly leaseMs: number;
  readonly waitMs: number;
}

export interface LeasedTask extends Task {
  /** The driver's name for it, opaque. */
  readonly ref: string;
  /** Where every lease has a token of its own: one name for all leases of the same dispatch. */
  readonly dispatch?: string;
  /** Where secrets were filled in before it came here: their values, which must not appear in anything that is reported. */
  readonly secrets?: readonly string[];
}

export interface Heartbeat {
  readonly ref: string;
  readonly token: string;
  /** That the handler is running, for the owner; once, when it is first reported. */
  readonly started?: { readonly partition: number; readonly text: string };
}

/** Both name tasks by their tokens. */
export interface HeartbeatOutcome {
  /** Not ours any more: lapsed or settled. */
  readonly lost: readonly string[];
  readonly cancelled: readonly string[];
}

export interface Settlement {
  readonly ref: string;
  readonly token: string;
  readonly partition: number;
  readonly outcome: "completed" | "failed" | "handedBack";
  /** The message for the owner. */
  readonly text: string;
  /** The same as a value, for a store of the same process. It has no text then, and nobody changes it any more. */
  readonly message?: unknown;
  /** About how long its text would be. */
  readonly messageChars?: number;
}

/**
 * settled: removed and posted. posted: the task was gone, but a completion is posted all the same, for the owner to
 * judge. stale: the task was gone, and a failure or hand-back of a lost delivery means nothing.
 */
export type SettleOutcome = "settled" | "posted" | "stale";

// ── records ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Records {
  /**
   * Immutable bytes by (scope, hash); putting them again changes nothing. The scope is an entity key or `definition`.
   * Only what is `refusable` may be refused by a store that is too full, all of it: a start's input, a definition. An
   * output, a config or a snapshot never is, as nothing could end then, and a full store would never empty. Where not even
   * that can be written (a disk without any room, a read-only server) it rejects with a `StoreError`, and the same is put
   * again later. Rejected with anything else by a store that takes other records, a value counts as one it never takes.
   */
  put(records: readonly StoredRecord[], options?: { readonly refusable: boolean }): Promise<PutOutcome>;
  get(keys: readonly RecordKey[]): Promise<readonly (string | null)[]>;
  /**
   * Whether `get` would find it, for whoever has the text: a definition of 100,000 nodes is 37 MB on each part of its way.
   * Where a driver has no such thing it is read.
   */
  has?(key: RecordKey): Promise<boolean>;
  /**
   * The version of this content under this name: the same again for the same hash, else the next number. Atomic. A number
   * stands for one content for ever, also beyond `unpublish`.
   */
  publish(name: string, hash: string): Promise<number>;
  /** The version with this number, or with this hash; without either the one with the highest number. */
  published(name: string, version?: number | string): Promise<Published | null>;
  /** The highest number first; at most 1,000. */
  versions(name: string): Promise<readonly Published[]>;
  /**
   * The name and all its versions are gone until they are published again; the definitions stay. An unknown name is
   * nothing.
   */
  unpublish(name: string): Promise<void>;
  /** Says that a process is alive, and what it serves. Over a restart of the store if it is for a minute or longer. */
  register(registration: Registration, ttlMs: number): Promise<void>;
  /** Who is alive now. */
  registered(): Promise<readonly Registration[]>;
}

export type PutOutcome = "stored" | "refused";

export interface RecordKey {
  readonly scope: string;
  readonly hash: string;
}

export interface StoredRecord extends RecordKey {
  readonly text: string;
}

export interface Published {
  readonly version: number;
  readonly hash: string;
}

export interface Registration {
  readonly process: string;
  readonly role: "engine" | "worker";
  readonly text: string;
}

// ── queries ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Queries {
  /** Newest first by creation. */
  headers(query: HeaderQuery): Promise<Page<Header>>;
  /** `partition` is where the entity lives. A driver need not find it under another. */
  header(partition: number, entity: EntityKey): Promise<Header | null>;
  /** Newest first. */
  deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>>;
  deadLetter(id: string): Promise<DeadLetter | null>;
  /** Newest first. */
  listing(query: ListingQuery): Promise<Page<Listed>>;
  listed(list: string, id: string): Promise<Listed | null>;
  /** One for each name that is published, with its highest version, in order of the names' bytes in UTF-8. */
  workflows(query: PageQuery): Promise<Page<PublishedWorkflow>>;
  counts(): Promise<Counts>;
}

/** Filters go together: what is answered passes all that are given. */
export interface PageQuery {
  /** Of the page before. It stays good whatever comes or goes meanwhile. */
  readonly cursor?: string;
  readonly limit: number;
}

export interface HeaderQuery extends PageQuery {
  readonly class?: HeaderClass;
  readonly workflow?: string;
  /** Created then or later. */
  readonly sinceMs?: number;
}

export interface DeadLetterQuery extends PageQuery {
  readonly queue?: string;
  readonly class?: DeadLetter["class"];
  readonly entity?: EntityKey;
}

export interface ListingQuery extends PageQuery {
  readonly list: string;
}

export interface PublishedWorkflow extends Published {
  readonly name: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly cursor: string | null;
  /** Why this page may lack some that belong on it: what only the archive has, while that does not answer. */
  readonly incomplete?: Incomplete;
}

export type Incomplete = "archive_unavailable";

export interface Counts {
  readonly storeTimeMs: number;
  readonly inbox: number;
  readonly queued: Readonly<Record<string, number>>;
  readonly leased: number;
  readonly deadLetters: number;
  /**
   * How many entities have ended that no other has called (`isCalled`), of a moment not long ago. Left out by a store for
   * which counting them is dear.
   */
  readonly ended?: number;
  /** How many open entities belong to a workflow, likewise: executions, not limits. */
  readonly open?: number;
  /** Tasks that workers have, by queue; a queue without any may be left out. Left out whole: nobody knows. */
  readonly leasedOf?: Readonly<Record<string, number>>;
  /** When the task that has waited longest in each queue came into it, by the store's clock. As `leasedOf`. */
  readonly oldestAtMs?: Readonly<Record<string, number>>;
  /**
   * How full the store is, from 0 to 1 and a little beyond, where it has a limit of its own. At 0.6 ended executions go
   * before their time, oldest first; at 0.75 new work is refused. Left out: nobody knows, or there is no limit.
   */
  readonly fill?: number;
  /** There is so little room left that starts are refused, whatever `fill` says. Left out: there is room, or nobody knows. */
  readonly isFull?: boolean;
}
