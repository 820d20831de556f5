import type { CommitBatch, Task } from "../../store/contract.ts";
import { ageOf, endOf, handedOf, idsOf, startOf } from "./position.ts";
import { hasEnded, hasMore, lastHeaders, lastWakes, MOST_RINGS, number, stored } from "./commit-arguments.ts";
import { groupedBy } from "./grouped-by.ts";
import { type KnownEntity, type KnownPartition, placeOf } from "./known-partitions.ts";
import { packTask } from "./packed-task.ts";
import { keyOf, type Redis } from "./redis.ts";
import { tokensOf } from "./settle-arguments.ts";

/** Answers to one process, and for how long, as in commit.lua. */
const MOST_REPLIES = 10_000;
const REPLY_SECONDS = 3600;

/**
 * Whether a batch needs none of what only a script can find out: it has nothing out of the ordinary, follows on what is known of
 * its entities, sends out tasks that were never out before, and has read its messages from the oldest on, from a server that is still
 * the same.
 */
export function isPlain(
  batch: CommitBatch,
  lines: ReadonlyMap<string, readonly Task[]>,
  { entities, consumedUpTo }: KnownPartition,
  age: number,
): boolean {
  if (batch.suspect !== null || hasMore(batch)) return false;
  const reached = new Map<KnownEntity, number>();
  for (const { entity, version, count } of batch.records) {
    const known = entities.get(entity);
    if (known === undefined || count < 1 || version !== (reached.get(known) ?? known.version) + 1) return false;
    reached.set(known, version + count - 1);
  }
  for (const { entity } of batch.headers) {
    const known = entities.get(entity);
    if (known === undefined || known.place === undefined) return false;
  }
  // A dispatch has the nonce of the tenure in which it was decided, and is committed once.
  const fresh = `${batch.fence.nonce}:`;
  for (const tasks of lines.values()) for (const { token } of tasks) if (!token.startsWith(fresh)) return false;
  if (batch.consumed === null || idsOf(batch.consumed).length === 0) return true;
  // A server that was started again since may have lost these very messages.
  if (ageOf(batch.consumed) !== age) return false;
  const start = startOf(batch.consumed);
  return start === "0" || start === consumedUpTo;
}

/** The commands that write what commit.lua writes, for batches that are plain. What several of them write to one key is one command. */
export class Transaction {
  readonly #redis: Redis;
  readonly #commands: string[][] = [];
  /** By command and key. */
  readonly #shared = new Map<string, string[]>();
  readonly #bells = new Map<string, number>();
  readonly #nowMs: number;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#nowMs = redis.clock.nowMs();
  }

  add(batch: CommitBatch, lines: ReadonlyMap<string, readonly Task[]>, known: KnownPartition): void {
    const { partition, seq } = batch.fence;
    this.#addRecords(batch);
    const standing = [
      "seq",
      String(seq + 1),
      "batch",
      batch.id,
      "time",
      number(batch.timeMs),
      "clean",
      "1",
      "strikes",
      "0",
    ];
    this.#commands.push(["HSET", this.#key("partition", partition), ...standing]);
    this.#addConsumed(batch);
    this.#addHeaders(batch, known);
    const { asleep, awake } = lastWakes(batch.wakes);
    if (asleep.length > 0) this.#commands.push(["ZREM", this.#key("wakes", partition), ...asleep]);
    if (awake.length > 0) this.#commands.push(["ZADD", this.#key("wakes", partition), ...awake]);
    this.#addTasks(lines);
    for (const [process, replies] of groupedBy(batch.replies, ({ process }) => process)) {
      const key = this.#key("replies", process);
      for (const reply of replies) this.#together("RPUSH", key).push(JSON.stringify(reply));
    }
  }

  /** All of them, in an order in which they can be sent. */
  commands(): readonly (readonly string[])[] {
    const shared = [...this.#shared.values()];
    // What leaves a list may come back to it.
    const isRemoval = ([name]: readonly string[]): boolean => name!.endsWith("REM") || name === "HDEL";
    const all: string[][] = [...this.#commands];
    all.push(...shared.filter(isRemoval), ...shared.filter((command) => !isRemoval(command)));
    for (const command of shared) {
      const [name, key] = command as [string, string];
      if (name === "RPUSH" && key.startsWith(this.#key("replies", ""))) {
        all.push(["LTRIM", key, String(-MOST_REPLIES), "-1"], ["EXPIRE", key, String(REPLY_SECONDS)]);
      }
    }
    for (const [queue, rings] of this.#bells) {
      const bell = this.#key("bell", queue);
      all.push(["RPUSH", bell, ...Array.from({ length: Math.min(rings, MOST_RINGS) }, () => "")]);
      all.push(["LTRIM", bell, "0", String(MOST_RINGS - 1)]);
    }
    return all;
  }

  #addRecords({ fence, records, headers }: CommitBatch): void {
    const reached = new Map<string, number>();
    for (const record of records) {
      reached.set(record.entity, record.version + record.count - 1);
      this.#commands.push(["RPUSH", this.#key("journal", record.entity), stored(record)]);
    }
    if (reached.size === 0) return;
    const last = lastHeaders(headers);
    const versions = this.#together("HSET", this.#key("journals"));
    let hints = "";
    for (const [entity, version] of reached) {
      versions.push(entity, String(version));
      hints += `${hints === "" ? "" : "\n"}${hasEnded(last.get(entity)) ? "+" : ""}${version} ${entity}`;
    }
    this.#commands.push(["PUBLISH", this.#key("commits", fence.partition), hints]);
  }

  #addConsumed({ fence, consumed }: CommitBatch): void {
    if (consumed === null) return;
    const inbox = this.#key("inbox", fence.partition);
    if (idsOf(consumed).length > 0) this.#commands.push(["XTRIM", inbox, "MINID", "=", endOf(consumed)]);
    for (const [line, tokens] of tokensOf(handedOf(consumed).map(({ settlement }) => settlement))) {
      for (const token of tokens) {
        this.#together("ZREM", this.#key("leases", line)).push(token);
        this.#together("HDEL", this.#key("tasks")).push(token);
        this.#together("SREM", this.#key("revoked")).push(token);
      }
    }
  }

  #addHeaders({ headers }: CommitBatch, { entities }: KnownPartition): void {
    for (const header of lastHeaders(headers).values()) {
      const { entity, class: kind, createdAtMs, workflow } = header;
      this.#together("HSET", this.#key("headers")).push(entity, JSON.stringify(header));
      const before = entities.get(entity)!.place!;
      const place = placeOf(kind, createdAtMs, workflow);
      if (place === before) continue;
      if (before !== null) this.#leaveList(entity, before);
      this.#together("HSET", this.#key("places")).push(entity, place);
      this.#together("ZADD", this.#key("headers", kind)).push(number(createdAtMs), `${entity}\0${workflow}`);
    }
  }

  #leaveList(entity: string, place: string): void {
    const [, kind, workflow] = /^(\S+) \S+ (.*)$/s.exec(place)!;
    this.#together("ZREM", this.#key("headers", kind)).push(`${entity}\0${workflow}`);
  }

  #addTasks(lines: ReadonlyMap<string, readonly Task[]>): void {
    for (const [line, tasks] of lines) {
      const texts = this.#together("HSET", this.#key("tasks"));
      const tokens = this.#together("RPUSH", this.#key("line", line));
      for (const task of tasks) {
        texts.push(task.token, packTask(task, this.#nowMs));
        tokens.push(task.token);
      }
      const { queue } = tasks[0]!;
      this.#bells.set(queue, (this.#bells.get(queue) ?? 0) + tasks.length);
    }
  }

  #together(command: string, key: string): string[] {
    const name = `${command} ${key}`;
    let all = this.#shared.get(name);
    if (all === undefined) this.#shared.set(name, (all = [command, key]));
    return all;
  }

  #key(kind: string, name?: string | number): string {
    return keyOf(this.#redis, kind, name);
  }
}
