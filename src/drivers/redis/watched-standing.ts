import type { CommitBatch, Fence, Task } from "../../store/contract.ts";
import type { Line } from "./connection.ts";
import { keyOf, type Redis, runCallOn, scriptCall } from "./redis.ts";
import { scripts } from "./scripts.ts";

/** How long something is watched after it was last written to. */
const LINGER_MS = 2000;

/** Lines, or processes that are answered. */
const MOST_WATCHED = 100;
const CHECK_EVERY_MS = 1000;

/** How far a partition is, as far as a fence tells, and the time of its last commit. */
type Standing = Omit<Fence, "partition" | "incarnation"> & { readonly timeMs: number };

/** What was seen at one look. */
interface Seen {
  readonly partitions: ReadonlyMap<number, Standing>;
  readonly lines: ReadonlySet<string>;
  readonly processes: ReadonlySet<string>;
}

/**
 * What commits by transactions rely on. The server is told to watch the partitions, the queues and the store, and is then asked how they
 * stand: as long as nobody has written to one of them since, it is so, and a transaction that is sent then runs; else
 * the server runs nothing of it. What a script would have to look at for every commit is looked at once for all of the next.
 *
 * A transaction ends the watch, and so does what this process writes there by scripts. Each is followed by the next look, in the same
 * flight, so that nobody waits for it.
 */
export class WatchedStanding {
  /** Connections on which transactions are known to be allowed, or not to be. */
  readonly #tried = new WeakMap<Line, boolean>();
  /** On which connection it was looked. */
  #line: Line | undefined;
  #seen: Seen | undefined;
  /** Of looks: an answer to an earlier one tells nothing any more. */
  #look = 0;
  #looking: Promise<void> | undefined;
  /** The keys that were looked at, and when: that nobody has put another value there need not be asked every time. */
  #checked = new Set<string>();
  #checkedAtMs = -Infinity;
  /** What was written to lately, and when. */
  readonly #partitions = new Map<number, number>();
  readonly #lines = new Map<string, { readonly queue: string; readonly priority: number; atMs: number }>();
  readonly #processes = new Map<string, number>();

  /** Has whatever this batch needs looked at from now on. */
  want({ fence, replies }: CommitBatch, lines: ReadonlyMap<string, readonly Task[]>, nowMs: number): void {
    this.#partitions.set(fence.partition, nowMs);
    for (const [line, [first]] of lines) {
      const known = this.#lines.get(line);
      if (known === undefined) this.#lines.set(line, { queue: first!.queue, priority: first!.priority, atMs: nowMs });
      else known.atMs = nowMs;
    }
    for (const { process } of replies) this.#processes.set(process, nowMs);
  }

  /** Whether the server would refuse a transaction for this batch if one of its guards did not hold. */
  covers(
    line: Line,
    { fence, timeMs, replies }: CommitBatch,
    lines: ReadonlyMap<string, readonly Task[]>,
    incarnation: string,
  ): boolean {
    if (this.#seen === undefined || this.#line !== line || fence.incarnation !== incarnation) return false;
    const { partitions, processes } = this.#seen;
    const seen = partitions.get(fence.partition);
    if (seen === undefined || timeMs < seen.timeMs) return false;
    if (seen.epoch !== fence.epoch || seen.nonce !== fence.nonce || seen.seq !== fence.seq) return false;
    for (const name of lines.keys()) if (!this.#seen.lines.has(name)) return false;
    return replies.every(({ process }) => processes.has(process));
  }

  /** Somebody has committed lately. */
  get isWatching(): boolean {
    return this.#partitions.size > 0;
  }

  /** From now on nothing is known: something was sent that ends the watch. */
  end(): void {
    this.#seen = undefined;
    this.#look++;
  }

  /** What was asked for last has been answered. Redis does one thing after the other: whoever waits loses nothing by it. */
  async looked(): Promise<void> {
    while (this.#looking !== undefined) await this.#looking;
  }

  /** Watches, and looks. Goes behind all that was sent on this connection. */
  watch(line: Line, redis: Redis): void {
    this.end();
    this.#letGo(redis.host.monotonicMs());
    if (this.#partitions.size === 0) return;
    // Where each function of thousands has a queue of its own, looking would cost more than scripts do.
    if (this.#lines.size > MOST_WATCHED || this.#processes.size > MOST_WATCHED) return;
    const looking = this.#watch(line, redis, this.#look).finally(() => {
      if (this.#looking === looking) this.#looking = undefined;
    });
    this.#looking = looking;
  }

  async #watch(line: Line, redis: Redis, look: number): Promise<void> {
    const partitions = [...this.#partitions.keys()];
    const lines = [...this.#lines];
    const processes = [...this.#processes.keys()];
    const call = scriptCall(redis, scripts.standing);
    call.push(
      this.#isCheckDue(line, redis) ? "1" : "0",
      String(partitions.length),
      ...partitions.map(String),
      String(lines.length),
    );
    for (const [, { queue, priority }] of lines) call.push(queue, String(priority));
    call.push(String(processes.length), ...processes);
    const keys = [keyOf(redis, "store"), keyOf(redis, "queues")];
    for (const partition of partitions) keys.push(keyOf(redis, "partition", partition));
    try {
      this.#unwatch(line);
      line.send(["WATCH", ...keys]).catch(() => this.end());
      const answer = await runCallOn<readonly string[]>(line, redis, scripts.standing, call);
      // Something is not ours: a script says what. Whoever has looked since has not looked at that.
      if (answer.length === 0) return this.#doubt();
      if (look !== this.#look || this.#tried.get(line) !== true) return;
      this.#line = line;
      this.#seen = {
        partitions: standingsOf(partitions, answer),
        lines: new Set(lines.filter((_, i) => answer[partitions.length + i] === "1").map(([name]) => name)),
        processes: new Set(processes),
      };
    } catch {
      // Scripts commit as well, and tell what is the matter.
      this.#doubt();
    }
  }

  /** Until it is known better everything is looked at again. */
  #doubt(): void {
    this.#checkedAtMs = -Infinity;
    this.end();
  }

  /**
   * The first time by a transaction of nothing. A server or a user without transactions would run the commands of one as they come, with
   * nobody to refuse them.
   */
  #unwatch(line: Line): void {
    if (this.#tried.get(line) !== undefined) return void line.send(["UNWATCH"]).catch(() => {});
    const trying = Promise.all([line.send(["MULTI"]), line.send(["EXEC"])]);
    trying.then(
      () => this.#tried.set(line, true),
      () => this.#tried.set(line, false),
    );
  }

  /** Now and then, and for every key that was not looked at on this connection. */
  #isCheckDue(line: Line, { host }: Redis): boolean {
    const nowMs = host.monotonicMs();
    const names = [...this.#partitions.keys(), ...this.#lines.keys(), ...this.#processes.keys()].map(String);
    const isDue =
      this.#line !== line ||
      nowMs - this.#checkedAtMs > CHECK_EVERY_MS ||
      names.some((name) => !this.#checked.has(name));
    if (isDue) {
      this.#checked = new Set(names);
      this.#checkedAtMs = nowMs;
    }
    return isDue;
  }

  #letGo(nowMs: number): void {
    for (const all of [this.#partitions, this.#processes] as const)
      for (const [name, atMs] of all) if (atMs < nowMs - LINGER_MS) all.delete(name as never);
    for (const [name, { atMs }] of this.#lines) if (atMs < nowMs - LINGER_MS) this.#lines.delete(name);
  }
}

function standingsOf(partitions: readonly number[], answer: readonly string[]): ReadonlyMap<number, Standing> {
  const found = new Map<number, Standing>();
  for (const [i, partition] of partitions.entries()) {
    if (answer[i] === "") continue;
    const [epoch, nonce, seq, timeMs] = answer[i]!.split(" ") as [string, string, string, string];
    found.set(partition, { epoch: Number(epoch), nonce, seq: Number(seq), timeMs: Number(timeMs) });
  }
  return found;
}
