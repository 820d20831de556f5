import type {
  CommitBatch,
  CommitOutcome,
  EntityKey,
  Journal,
  JournalRecord,
  Loaded,
  LoadRequest,
  Snapshot,
  Task,
  Wake,
  WatchOptions,
} from "../../store/contract.ts";
import { StoreError } from "../../store/store-error.ts";
import type { Line } from "./connection.ts";
import { linesOf, pushCommit } from "./commit-arguments.ts";
import { inboxKeys, partitionsOf } from "./inbox.ts";
import type { KnownPartitions } from "./known-partitions.ts";
import { placesFrom } from "./places.ts";
import { handedOf } from "./position.ts";
import { checkPartition, keyOf, type Redis, run, runCall, scriptCall, whyRefused } from "./redis.ts";
import { scripts } from "./scripts.ts";
import type { Reservation } from "./seats.ts";
import { bellOf, type RedisTasks } from "./tasks.ts";
import { isPlain, Transaction } from "./transaction.ts";
import type { Standing, VersionHints } from "./version-hints.ts";
import type { WatchedStanding } from "./watched-standing.ts";
import { ErrorReply } from "./wire/reply-reader.ts";

/** Entities in one script, as many as one may take its time for. */
const MOST_LOADED = 50;

/** What an outcome of commit.lua means to those who wait for its tasks. */
const SEATED = {
  committed: "leased",
  queued: "on their lines",
  alreadyApplied: "not there",
  alreadyLeased: "not there",
  fenced: "not there",
} as const;

const KINDS = {
  committed: "committed",
  queued: "committed",
  alreadyApplied: "alreadyApplied",
  alreadyLeased: "alreadyApplied",
  fenced: "fenced",
} as const;

const DONE: Promise<CommitOutcome> = Promise.resolve({ kind: "committed" });
/** Entries in one transaction, as many as one may take its time for. */
const MOST_TOGETHER = 2000;
/** Of the batches of a commit: where more of them need scripts both together cost more than scripts alone. */
const MOSTLY = 0.9;
const PAUSE_AFTER_REFUSAL_MS = 1000;

const HALF_WRITTEN =
  "Redis has run a part of a commit: somebody has put other values under keys of this store, or taken a right away, while it was in use. " +
  "Start again when that is mended; what is damaged is put into quarantine";

/** What a journal shares with other roles of its store. */
interface JournalParts {
  readonly hints: VersionHints;
  readonly tasks: RedisTasks;
  readonly known: KnownPartitions;
  readonly standing: WatchedStanding;
  /** So many records in one commit are the sign of a flood. */
  readonly floodRecords: number;
}

/** A batch that is about to be committed. */
interface Draft {
  readonly batch: CommitBatch;
  /** Its tasks, by line. */
  readonly lines: ReadonlyMap<string, readonly Task[]>;
  readonly reserved: Reservation;
}

export class RedisJournal implements Journal {
  readonly #redis: Redis;
  readonly #hints: VersionHints;
  readonly #tasks: RedisTasks;
  readonly #known: KnownPartitions;
  readonly #standing: WatchedStanding;
  readonly #floodRecords: number;
  #refusedAtMs = -Infinity;

  constructor(redis: Redis, { hints, tasks, known, standing, floodRecords }: JournalParts) {
    this.#floodRecords = floodRecords;
    this.#redis = redis;
    this.#hints = hints;
    this.#tasks = tasks;
    this.#known = known;
    this.#standing = standing;
  }

  async commit(batches: readonly CommitBatch[]): Promise<readonly CommitOutcome[]> {
    if (batches.length === 0) return [];
    for (const { fence, mail } of batches)
      for (const { partition } of [fence, ...mail]) checkPartition(this.#redis, partition);
    const line = await this.#redis.connection.line();
    await this.#standing.looked();
    // It broke meanwhile. Whoever waited for it has waited long enough.
    if (!line.isUsable) throw new StoreError("STORE_UNAVAILABLE", "The store cannot be reached: the connection broke");
    const drafts = batches.map((batch) => this.#draft(batch));
    const standing = this.#standing;
    const { host, waiting } = this.#redis;
    const plain = drafts.filter((draft) => this.#isPlain(draft));
    const swift = this.#isRefused() ? [] : atMost(this.#covered(line, plain), MOST_TOGETHER);
    const others = drafts.filter((draft) => !swift.includes(draft));
    // Sent in one go: the client writes all commands of one turn together.
    const transacting = swift.length > 0 && this.#transact(line, swift);
    const committing = Promise.all(others.map((draft) => this.#commitOne(draft)));
    for (const { mail } of batches) waiting.hint(inboxKeys(this.#redis, partitionsOf(mail)));
    const isFlood = this.#isFlood(plain, drafts.length);
    if (isFlood) for (const { batch, lines } of plain) standing.want(batch, lines, host.monotonicMs());
    // Behind the transaction. A script ends the watch as well, and the next one begins when it has been answered.
    if (others.length === 0 && isFlood) standing.watch(line, this.#redis);
    else standing.end();
    const [byScript, isDone] = await Promise.all([committing, transacting]);
    // A transaction that was not run has written nothing, and a script tells why.
    if (!isDone) standing.end();
    const bySwift = await Promise.all(swift.map((draft) => (isDone ? DONE : this.#commitOne(draft))));
    if (isFlood && (others.length > 0 || !isDone)) standing.watch(line, this.#redis);
    const outcomes = new Map([...zip(others, byScript), ...zip(swift, bySwift)]);
    return drafts.map((draft) => outcomes.get(draft)!);
  }

  #draft(batch: CommitBatch): Draft {
    const lines = linesOf(batch.tasks);
    return { batch, lines, reserved: this.#redis.seats.reserve(lines, batch.revoke) };
  }

  #isPlain({ batch, lines, reserved }: Draft): boolean {
    const known = this.#known.of(batch.fence.partition);
    try {
      return reserved.counts.size === 0 && isPlain(batch, lines, known, this.#redis.connection.age);
    } catch {
      // Whatever is wrong with it is told where it is made the arguments of a script, and those who wait for its tasks hear of it.
      return false;
    }
  }

  /**
   * A look pays where many share it. A step that somebody waits for is answered after all that was sent with it: there a script, which
   * needs no look, is sooner.
   */
  #isFlood(plain: readonly Draft[], batches: number): boolean {
    const records = plain.reduce((sum, { batch }) => sum + batch.records.length, 0);
    return records >= this.#floodRecords && plain.length >= batches * MOSTLY;
  }

  #covered(line: Line, drafts: readonly Draft[]): readonly Draft[] {
    const { incarnation } = this.#redis;
    return drafts.filter(({ batch, lines }) => this.#standing.covers(line, batch, lines, incarnation));
  }

  /** Whether the server has run it; else it has written nothing. */
  async #transact(line: Line, drafts: readonly Draft[]): Promise<boolean> {
    const known = this.#known;
    const transaction = new Transaction(this.#redis);
    for (const { batch, lines } of drafts) transaction.add(batch, lines, known.of(batch.fence.partition));
    const transacting = line.transact(transaction.commands());
    for (const { lines, reserved } of drafts) this.#hintOf(lines, reserved);
    const outcome = await transacting;
    // Some of it is written and some is not, as somebody has put other values where ours have to be: nothing here can be relied on.
    if (outcome === "failed") throw this.#redis.lose(HALF_WRITTEN);
    if (outcome === "refused") this.#refusedAtMs = this.#redis.host.monotonicMs();
    if (outcome !== "done") return false;
    for (const { batch } of drafts) {
      known.committed(batch);
      this.#tasks.handOver.decided(handedOf(batch.consumed), "committed");
    }
    return true;
  }

  /** A server that has just refused a transaction, as it is full or this user may not do all of it, takes scripts only. */
  #isRefused(): boolean {
    return this.#redis.host.monotonicMs() - this.#refusedAtMs < PAUSE_AFTER_REFUSAL_MS;
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    const parts = Array.from({ length: Math.ceil(requests.length / MOST_LOADED) }, (_, i) =>
      requests.slice(i * MOST_LOADED, (i + 1) * MOST_LOADED),
    );
    return (await Promise.all(parts.map((part) => this.#load(part)))).flat();
  }

  async due(partition: number, beforeMs: number, limit: number, after?: Wake): Promise<readonly Wake[]> {
    const start = after === undefined ? undefined : { atMs: after.atMs, key: after.entity };
    const due: Wake[] = [];
    for await (const places of placesFrom(this.#redis, `wakes:${partition}`, "earliest", start)) {
      due.push(...places.filter(({ atMs }) => atMs <= beforeMs).map(({ atMs, key }) => ({ entity: key, atMs })));
      if (due.length >= limit || (places.at(-1)?.atMs ?? 0) > beforeMs) break;
    }
    return due.slice(0, limit);
  }

  async watch(
    partition: number,
    entity: EntityKey,
    aboveVersion: number,
    waitMs: number,
    { end = false }: WatchOptions = {},
  ): Promise<number> {
    const read = async (): Promise<Standing> => {
      const [version, isOpen] = await run<readonly [number, number]>(
        this.#redis,
        scripts.version,
        entity,
        end ? "1" : "0",
      );
      return { version, isOpen: isOpen === 1 };
    };
    const isEnough = ({ version, isOpen }: Standing): boolean => version > aboveVersion && !(end && isOpen);
    return this.#hints.until(partition, entity, { waitMs, read, isEnough });
  }

  async #load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    type Answer = readonly (readonly [string, string, ...(readonly string[])] | null)[];
    const call = scriptCall(this.#redis, scripts.load);
    call.push(String(requests.length));
    for (const { entity } of requests) call.push(entity);
    for (const { partition, aboveVersion } of requests) call.push(String(partition), String(aboveVersion ?? ""));
    const answer = await runCall<Answer>(this.#redis, scripts.load, call);
    return answer.map((found, i) => {
      const { entity, partition } = requests[i]!;
      if (found === null) {
        const nothing = { entity, snapshot: null, records: [], wakeAtMs: null };
        this.#known.loaded(partition, nothing, false);
        return nothing;
      }
      const [snapshot, wake, ...records] = found;
      const loaded = {
        entity,
        snapshot: snapshot === "" ? null : snapshotOf(entity, snapshot),
        records: records.map((text) => recordOf(entity, text)),
        wakeAtMs: wake === "" ? null : Number(wake),
      };
      this.#known.loaded(partition, loaded, true);
      return loaded;
    });
  }

  async #commitOne({ batch, lines, reserved }: Draft): Promise<CommitOutcome> {
    const { seats, clock } = this.#redis;
    try {
      const call = scriptCall(this.#redis, scripts.commit);
      pushCommit(call, batch, { lines, reserved, nowMs: clock.nowMs() });
      const committing = runCall<keyof typeof KINDS>(this.#redis, scripts.commit, call);
      this.#hintOf(lines, reserved);
      const outcome = await committing;
      const kind = KINDS[outcome];
      if (kind !== "fenced") this.#known.committed(batch);
      this.#tasks.handOver.decided(handedOf(batch.consumed), kind);
      seats.decide(reserved, SEATED[outcome]);
      await this.#settleDoubt(batch, outcome === "alreadyLeased");
      return { kind };
    } catch (error) {
      const reason = whyRefused(error);
      if (reason === undefined) seats.doubt(batch.id, reserved);
      else seats.decide(reserved, "not there");
      if (reason !== undefined) return { kind: "refused", reason };
      throw isOfOneEntity(error, this.#redis) ? error : faultOf(error);
    }
  }

  /** Those who look at this moment may have looked too soon for what goes on a line. */
  #hintOf(lines: ReadonlyMap<string, readonly Task[]>, { counts }: Reservation): void {
    for (const [line, tasks] of lines)
      if ((counts.get(line) ?? 0) < tasks.length) this.#redis.waiting.hint([bellOf(this.#redis, tasks[0]!.queue)]);
  }

  /**
   * A batch that was committed when nobody heard of it has leased its tasks to nobody. If it has put them on their lines
   * instead, whoever has one of them since is its holder.
   */
  async #settleDoubt({ id }: CommitBatch, hasLeased: boolean): Promise<void> {
    const tasks = this.#redis.seats.settleDoubt(id);
    if (tasks.length === 0 || !hasLeased) return;
    try {
      await this.#tasks.free(tasks);
    } catch {
      // Their leases run out.
    }
  }
}

/** The first of them that have no more entries together, and always one. */
function atMost(drafts: readonly Draft[], most: number): readonly Draft[] {
  let entries = 0;
  const end = drafts.findIndex(
    ({ batch }, i) => (entries += batch.records.length + batch.headers.length + batch.tasks.length) > most && i > 0,
  );
  return end === -1 ? drafts : drafts.slice(0, end);
}

function zip(
  drafts: readonly Draft[],
  outcomes: readonly CommitOutcome[],
): readonly (readonly [Draft, CommitOutcome])[] {
  return drafts.map((draft, i) => [draft, outcomes[i]!]);
}

/** What is wrong with the journal of one entity is nobody else's trouble. */
function isOfOneEntity(error: unknown, redis: Redis): boolean {
  if (!(error instanceof ErrorReply)) return false;
  return (
    error.message.startsWith("VERSION ") || error.message.startsWith(`FOREIGN the key ${keyOf(redis, "journal", "")}`)
  );
}

/** By its name, so that nobody's values are suspected of it: a key that is not ours, a right that we lack. */
function faultOf(error: unknown): unknown {
  if (!(error instanceof ErrorReply)) return error;
  return new StoreError("STORE_INVALID", `Redis: ${error.message}`, { cause: error });
}

function snapshotOf(entity: EntityKey, stored: string): Snapshot {
  const [version, format, text] = split(stored, 2);
  return { entity, version: Number(version), format: Number(format), text: text! };
}

function recordOf(entity: EntityKey, stored: string): JournalRecord {
  const [version, count, format, text] = split(stored, 3);
  return { entity, version: Number(version), count: Number(count), format: Number(format), text: text! };
}

/** So many words, and the rest. */
function split(stored: string, words: number): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < words; i++) {
    const space = stored.indexOf(" ", from);
    parts.push(stored.slice(from, space));
    from = space + 1;
  }
  return [...parts, stored.slice(from)];
}
