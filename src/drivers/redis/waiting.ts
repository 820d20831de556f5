import type { Host } from "../../host/host.ts";
import type { Connection, Line } from "./connection.ts";

/** Everybody who waits looks this often as well: a wake-up can be lost with a connection or with the one who got it. */
const LOOK_EVERY_MS = 1000;

/** What somebody waits for. */
export interface Wanted<Found> {
  /** What there may be, as `hint` names it. */
  readonly keys: readonly string[];
  /** There is hardly anything yet, so it waits first: a command that waits ends at once if there is something after all. */
  readonly isQuiet?: boolean;
  attempt(): Promise<Found | undefined>;
  /** No attempt is under way any more: from now on somebody else may find something for it, and lets it look then. */
  waits?(look: () => void): void;
  /** Waits at the server until there may be something, or the time is up. */
  wait(line: Line, waitMs: number): Promise<unknown>;
  /** What the command that waited has brought itself, if it does. */
  brought?(answer: unknown): Found | undefined;
  /** It ended when nobody here waited any more. */
  endedInVain?(answer: unknown): void;
}

/** Lets somebody look who waits. */
type Look = () => void;

/** A command that waits at the server, and how many here wait for its end. */
interface Blocked {
  readonly ended: Promise<unknown>;
  waiters: number;
}

/**
 * Connections for commands that wait, one for each that waits at the moment. What this process does itself it need not
 * hear of from the server: a hint lets those who wait here look at once, right behind the command that made it.
 */
export class Waiting {
  readonly #connection: Connection;
  readonly #host: Host;
  readonly #longestMs: number;
  readonly #idle: Line[] = [];
  readonly #all = new Set<Line>();
  readonly #closing = new AbortController();
  readonly #waiters = new Map<string, Set<Look>>();
  readonly #blocked = new Map<string, Blocked>();

  constructor(connection: Connection, host: Host, commandMs: number) {
    this.#connection = connection;
    this.#host = host;
    // A command that waits longer than one may go unanswered would be taken for lost.
    this.#longestMs = Math.min(LOOK_EVERY_MS, commandMs / 2);
  }

  /** Attempts now, and again whenever there may be something, until there is or the time is up. */
  async until<Found>(waitMs: number, wanted: Wanted<Found>): Promise<Found | undefined> {
    const untilMs = this.#host.monotonicMs() + waitMs;
    for (let isFirst = true; ; isFirst = false) {
      const { promise: hinted, resolve: look } = Promise.withResolvers<void>();
      // Before the attempt: what is done while it is under way must not be missed.
      this.#enter(wanted.keys, look);
      try {
        const found = isFirst && wanted.isQuiet === true && waitMs > 0 ? undefined : await wanted.attempt();
        const leftMs = Math.ceil(untilMs - this.#host.monotonicMs());
        if (found !== undefined || leftMs <= 0 || this.#closing.signal.aborted) return found;
        // Only now: what comes while an attempt is under way may be left behind by it, and has to ring.
        wanted.waits?.(look);
        const answer = await this.#untilEnded(wanted, Math.min(leftMs, this.#longestMs), hinted);
        const brought = answer === undefined ? undefined : wanted.brought?.(answer);
        if (brought !== undefined && !this.#closing.signal.aborted) return brought;
      } finally {
        this.#leave(wanted.keys, look);
      }
      // A store that was closed hands out nothing: nobody may be there to take it.
      if (this.#closing.signal.aborted) return undefined;
    }
  }

  /** To be called when the command that makes it true is on its way, not before. */
  hint(keys: Iterable<string>): void {
    if (this.#waiters.size === 0) return;
    for (const key of keys) for (const look of this.#waiters.get(key) ?? []) look();
  }

  /** For one who waits for nothing: if it were answered at once it would ask again at once. */
  async inVain(waitMs: number): Promise<readonly []> {
    await this.#host.sleep(waitMs, this.#closing.signal);
    return [];
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  close(): void {
    this.#closing.abort();
    for (const line of this.#all) line.end();
  }

  /** Until the command at the server has ended, or somebody has given a hint. */
  async #untilEnded<Found>(wanted: Wanted<Found>, waitMs: number, hinted: Promise<void>): Promise<unknown> {
    // Nobody else can know of it: what it takes is for this one alone.
    if (wanted.keys.length === 0) return this.#wait(wanted, waitMs, () => false);
    const name = wanted.keys.join("\0");
    const known = this.#blocked.get(name);
    const blocked = known ?? this.#block(name, wanted, waitMs);
    const timer = new AbortController();
    // One that was left behind by a hint may wait longer than we do.
    const late = known === undefined ? [] : [this.#host.sleep(waitMs, timer.signal)];
    blocked.waiters++;
    try {
      const answer = await Promise.race([blocked.ended, hinted, ...late]);
      return known === undefined ? answer : undefined;
    } finally {
      // With a reason: to make up an error as one costs more than all the rest of a timer.
      timer.abort("over");
      blocked.waiters--;
    }
  }

  #block<Found>(name: string, wanted: Wanted<Found>, waitMs: number): Blocked {
    const ended = this.#wait(wanted, waitMs, () => blocked.waiters === 0).finally(() => this.#blocked.delete(name));
    const blocked: Blocked = { ended, waiters: 0 };
    // Whoever waits for it hears of it; after a hint nobody may.
    ended.catch(() => {});
    this.#blocked.set(name, blocked);
    return blocked;
  }

  async #wait<Found>(wanted: Wanted<Found>, waitMs: number, isLeft: () => boolean): Promise<unknown> {
    const line = this.#unused() ?? (await this.#open());
    if (line === undefined) return undefined;
    try {
      const answer = await wanted.wait(line, waitMs);
      this.#idle.push(line);
      if (isLeft()) wanted.endedInVain?.(answer);
      return answer;
    } catch (error) {
      this.#all.delete(line);
      line.end();
      if (!this.#closing.signal.aborted) throw error;
      return undefined;
    }
  }

  #enter(keys: readonly string[], look: Look): void {
    for (const key of keys) this.#waiters.set(key, (this.#waiters.get(key) ?? new Set()).add(look));
  }

  #leave(keys: readonly string[], look: Look): void {
    for (const key of keys) {
      const waiters = this.#waiters.get(key);
      waiters?.delete(look);
      if (waiters?.size === 0) this.#waiters.delete(key);
    }
  }

  /** One that broke while nobody waited on it is nobody's trouble. */
  #unused(): Line | undefined {
    for (let line = this.#idle.pop(); line !== undefined; line = this.#idle.pop()) {
      if (line.isUsable) return line;
      this.#all.delete(line);
      line.end();
    }
    return undefined;
  }

  async #open(): Promise<Line | undefined> {
    try {
      const line = await this.#connection.open();
      this.#all.add(line);
      return line;
    } catch (error) {
      if (this.#closing.signal.aborted) return undefined;
      throw error;
    }
  }
}
