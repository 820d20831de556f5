import { ErrorReply } from "@redis/client";
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
import { linesOf, pushCommit } from "./commit-arguments.ts";
import { handedOf, inboxKeys, partitionsOf } from "./inbox.ts";
import { placesFrom } from "./places.ts";
import { checkPartition, keyOf, type Redis, run, runCall, scriptCall, whyRefused } from "./redis.ts";
import { scripts } from "./scripts.ts";
import type { Reservation } from "./seats.ts";
import { bellOf, type RedisTasks } from "./tasks.ts";
import type { Standing, VersionHints } from "./version-hints.ts";

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

export class RedisJournal implements Journal {
  readonly #redis: Redis;
  readonly #hints: VersionHints;
  readonly #tasks: RedisTasks;

  constructor(redis: Redis, hints: VersionHints, tasks: RedisTasks) {
    this.#redis = redis;
    this.#hints = hints;
    this.#tasks = tasks;
  }

  async commit(batches: readonly CommitBatch[]): Promise<readonly CommitOutcome[]> {
    // Sent in one go: the client writes all commands of one turn together.
    const committing = Promise.all(batches.map((batch) => this.#commitOne(batch)));
    for (const { mail } of batches) this.#redis.waiting.hint(inboxKeys(this.#redis, partitionsOf(mail)));
    return committing;
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
      const { entity } = requests[i]!;
      if (found === null) return { entity, snapshot: null, records: [], wakeAtMs: null };
      const [snapshot, wake, ...records] = found;
      return {
        entity,
        snapshot: snapshot === "" ? null : snapshotOf(entity, snapshot),
        records: records.map((text) => recordOf(entity, text)),
        wakeAtMs: wake === "" ? null : Number(wake),
      };
    });
  }

  async #commitOne(batch: CommitBatch): Promise<CommitOutcome> {
    checkPartition(this.#redis, batch.fence.partition);
    for (const { partition } of batch.mail) checkPartition(this.#redis, partition);
    const lines = linesOf(batch.tasks);
    const { seats, clock } = this.#redis;
    const reserved = seats.reserve(lines, batch.revoke);
    try {
      const call = scriptCall(this.#redis, scripts.commit);
      pushCommit(call, batch, { lines, reserved, nowMs: clock.nowMs() });
      const committing = runCall<keyof typeof KINDS>(this.#redis, scripts.commit, call);
      this.#hintOf(lines, reserved);
      const outcome = await committing;
      const kind = KINDS[outcome];
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
