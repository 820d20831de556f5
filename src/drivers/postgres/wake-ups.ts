import { Client, type ClientConfig, escapeIdentifier } from "pg";
import type { Host } from "../../host/host.ts";
import { connectionConfig, type DatabaseOptions, sayGoodbye, type Statement } from "./database.ts";

/** Hints get lost: with a connection, behind a pooler. So everybody who waits looks this often as well. */
const LOOK_EVERY_MS = 1000;
/** So many names are remembered as quiet. */
const MOST_QUIET = 1000;
/** As often as this under load; and so many more where little was said before, since somebody waits for each of them. */
const SEND_EVERY_MS = 2;
const SENT_AHEAD = 8;
/** Postgres takes up to 8,000. */
const MAX_PAYLOAD_BYTES = 7_900;
/** Who has committed to a partition owns it, as a rule for longer than this. */
const OWNER_KNOWN_MS = 10_000;
/** A process that did not answer may not hear: behind a pooler, or while its connection is gone. It is asked again after this time. */
const DEAF_MS = 60_000;
/** So many of these are remembered. */
const MOST_DEAF = 1_000;
/** What a hint begins with that says whom it is of. To releases before this one it is a key for which nobody waits. */
const FROM = "from/";

const SQL = {
  notify: `select pg_notify($1, $2)`,
};

interface Waiter {
  readonly woken: Promise<void>;
  readonly wake: () => void;
}

/**
 * Tells those who wait, in this process and in others, that there may be something. Sent after the commit and on a
 * connection of its own: NOTIFY inside the transaction makes all commits wait for each other.
 */
export class WakeUps {
  readonly #host: Host;
  readonly #config: ClientConfig;
  readonly #channel: string;
  /** By it others know this process, and what is meant for it alone comes by a channel of this name. */
  readonly name: string;
  /** Told what other processes ask of this one. */
  onErrand: (errand: unknown) => void = () => {};
  /** Sends what somebody waits for: by another connection, since on the one that listens hints may be under way. */
  send: (statement: Statement) => Promise<unknown> = () => Promise.resolve();
  /** Whom a hint is of. It goes out on any connection of this process, and is not meant for the one that listens. */
  readonly #from: string;
  /** Who was the last to say that he has committed to a partition. */
  readonly #owners = new Map<number, { readonly name: string; readonly untilMs: number }>();
  /** Until when these processes are not asked. */
  readonly #deaf = new Map<string, number>();
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** When somebody last looked at what was not announced since. */
  readonly #quiet = new Map<string, number>();
  /** Of each look that is under way: what was announced since it began. */
  readonly #looks = new Set<Set<string>>();
  readonly #closing = new AbortController();
  #client: Client | undefined;
  readonly #outgoing = new Set<string>();
  #isSending = false;
  /** Until when there would be silence had all been sent at an even pace. */
  #sentUpToMs = -Infinity;

  constructor(host: Host, options: DatabaseOptions, incarnation: string) {
    this.#host = host;
    this.name = host.id();
    this.#from = FROM + this.name;
    // Nobody misses a hint that a crash of the server has taken with it: no sync of the disk for it.
    this.#config = connectionConfig(options, { synchronous_commit: "off" });
    this.#channel = `millrace_${incarnation}`;
  }

  async connect(): Promise<void> {
    const client = new Client(this.#config);
    client.on("error", () => void this.#reconnect(client));
    client.on("notification", ({ processId, channel, payload }) => {
      // What we sent ourselves was told here at once.
      if (processId === processIdOf(client) || payload === undefined) return;
      try {
        if (channel === this.#channel) this.#hear(JSON.parse(payload) as readonly string[]);
        else this.onErrand(JSON.parse(payload));
      } catch {
        // Whoever may connect to the database may say anything on a channel. Nobody depends on having heard it.
      }
    });
    try {
      await client.connect();
      const channels = [this.#channel, this.#channelOf(this.name)];
      await client.query(channels.map((channel) => `listen ${escapeIdentifier(channel)}`).join("; "));
    } catch (error) {
      client.end().catch(() => {});
      throw error;
    }
    this.#client = client;
  }

  /**
   * Looks at what these stand for. Of which of them it has seen all there is, `seen` tells: until something is announced
   * they are quiet for a while, and nobody need look again.
   */
  async look<Found>(
    keys: readonly string[],
    attempt: () => Promise<Found>,
    seen: (found: Found) => readonly string[],
  ): Promise<Found> {
    const news = new Set<string>();
    const startedAtMs = this.#host.monotonicMs();
    this.#looks.add(news);
    try {
      const found = await attempt();
      for (const key of keys) this.#quiet.delete(key);
      if (this.#quiet.size > MOST_QUIET) this.#quiet.clear();
      for (const key of seen(found)) if (!news.has(key)) this.#quiet.set(key, startedAtMs);
      return found;
    } finally {
      this.#looks.delete(news);
    }
  }

  /** How long one may go on without a look at these: nobody has said that something came since the last one. 0 = look. */
  quietMs(keys: readonly string[]): number {
    // What is said meanwhile is said to nobody.
    if (this.#client === undefined) return 0;
    const sinceMs = Math.min(...keys.map((key) => this.#quiet.get(key) ?? -Infinity));
    return Math.max(0, sinceMs + LOOK_EVERY_MS - this.#host.monotonicMs());
  }

  /**
   * Attempts now, and again whenever there may be something, until there is or the time is up. What is quiet is waited for
   * first.
   */
  async until<Found>(
    keys: readonly string[],
    waitMs: number,
    attempt: () => Promise<Found | undefined>,
    quietMs = 0,
  ): Promise<Found | undefined> {
    const untilMs = this.#host.monotonicMs() + waitMs;
    let isVain = quietMs > 0 && waitMs > 0;
    for (;;) {
      // Before the attempt: what appears while it runs must not be missed.
      const waiter = this.#enter(keys);
      const timer = new AbortController();
      try {
        const found = isVain ? undefined : await attempt();
        const leftMs = untilMs - this.#host.monotonicMs();
        if (found !== undefined || leftMs <= 0 || this.#closing.signal.aborted) return found;
        const nextMs = isVain ? quietMs : LOOK_EVERY_MS;
        isVain = false;
        await Promise.race([waiter.woken, this.#host.sleep(Math.min(leftMs, nextMs), timer.signal)]);
      } finally {
        // With a reason: to make up an error as one costs more than all the rest of a timer.
        timer.abort("over");
        this.#leave(keys, waiter);
      }
    }
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Lets those look who wait in this process: nobody else can see it. */
  tellHere(keys: Iterable<string>): void {
    for (const key of keys) for (const waiter of this.#waiters.get(key) ?? []) waiter.wake();
  }

  /** To be called after the commit. Never rejects: a hint that cannot be sent is made up for by looking. */
  announce(keys: Iterable<string>): void {
    for (const key of keys) {
      this.#outgoing.add(key);
      this.#wake(key);
    }
    this.#sendSoon();
  }

  /**
   * The same as a statement that travels right behind the transaction, and so arrives a round trip sooner. Those who wait here
   * have to be told by `announceHere` once that is committed. Undefined where many hints have gone out of late: they are
   * better sent together.
   */
  behind(keys: Iterable<string>): Statement | undefined {
    // Who does not hear must not be asked.
    const payload = JSON.stringify(this.#client === undefined ? [...keys] : [this.#from, ...keys]);
    if (Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES || !this.#mayHurry()) return undefined;
    return { sql: SQL.notify, values: [this.#channel, payload] };
  }

  /** Another process that owns this partition, as far as anybody has said so. */
  ownerOf(partition: number): string | undefined {
    const owner = this.#owners.get(partition);
    const nowMs = this.#host.monotonicMs();
    if (owner === undefined || owner.untilMs <= nowMs) return undefined;
    return (this.#deaf.get(owner.name) ?? -Infinity) > nowMs ? undefined : owner.name;
  }

  /** It did not answer: whatever it commits, it is not asked again for a while. */
  doubtOwner(name: string): void {
    if (this.#deaf.size >= MOST_DEAF) this.#deaf.clear();
    this.#deaf.set(name, this.#host.monotonicMs() + DEAF_MS);
  }

  forgetOwner(partition: number): void {
    this.#owners.delete(partition);
  }

  /** Asks another process for something. False: it is too long, or too much has gone out of late, and nothing is sent. */
  hurry(name: string, errand: object): boolean {
    const payload = JSON.stringify(errand);
    if (this.#client === undefined || Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES || !this.#mayHurry()) return false;
    this.#sendTo(name, payload);
    return true;
  }

  /** As many as are asked. False: it was not sent, and nobody will ever hear it. */
  answer(name: string, errand: object): boolean {
    const payload = JSON.stringify(errand);
    if (this.#client === undefined || Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES) return false;
    this.#sendTo(name, payload);
    return true;
  }

  #sendTo(name: string, payload: string): void {
    this.send({ sql: SQL.notify, values: [this.#channelOf(name), payload] }).catch(() => {});
  }

  #channelOf(name: string): string {
    return `${this.#channel}_${name}`;
  }

  isAwaitedHere(key: string): boolean {
    return this.#waiters.has(key);
  }

  /** What was announced to others in another way. */
  announceHere(keys: Iterable<string>): void {
    for (const key of keys) this.#wake(key);
  }

  /** The same for what those who wait here are told in another way. */
  announceElsewhere(keys: Iterable<string>): void {
    for (const key of keys) this.#outgoing.add(key);
    this.#sendSoon();
  }

  #sendSoon(): void {
    if (!this.#isSending && this.#outgoing.size > 0) void this.#send();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.wake();
    await this.#endClient();
  }

  async #endClient(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) await sayGoodbye(this.#host, client.end(), () => [client]);
  }

  /**
   * What is announced in one turn goes out at once. What comes while it is sent goes out together, and where many have gone
   * out of late, what comes within two milliseconds. A step that takes less on a quiet system must not wait for that.
   */
  async #send(): Promise<void> {
    this.#isSending = true;
    await Promise.resolve();
    while (this.#outgoing.size > 0) {
      const payload = this.#takePayload();
      await this.#client?.query(SQL.notify, [this.#channel, payload]).catch(() => {});
      const nowMs = this.#host.monotonicMs();
      this.#sentUpToMs = this.#sentWithNext(nowMs);
      if (this.#sentUpToMs > nowMs) await this.#host.sleep(Math.min(SEND_EVERY_MS, this.#sentUpToMs - nowMs));
    }
    this.#isSending = false;
  }

  #sentWithNext(nowMs: number): number {
    return Math.max(this.#sentUpToMs, nowMs - SEND_EVERY_MS * SENT_AHEAD) + SEND_EVERY_MS;
  }

  /** Whether one more may go out at once; if so it counts as sent. */
  #mayHurry(): boolean {
    const nowMs = this.#host.monotonicMs();
    const nextMs = this.#sentWithNext(nowMs);
    if (nextMs > nowMs || this.#isSending) return false;
    this.#sentUpToMs = nextMs;
    return true;
  }

  #hear(keys: readonly string[]): void {
    const [from] = keys;
    if (from === this.#from) return;
    const untilMs = this.#host.monotonicMs() + OWNER_KNOWN_MS;
    for (const key of keys) {
      this.#wake(key);
      const partition = wakeKey.partitionOf(key);
      if (partition !== undefined && from?.startsWith(FROM))
        this.#owners.set(partition, { name: from.slice(FROM.length), untilMs });
    }
  }

  #takePayload(): string {
    const keys: string[] = [];
    let bytes = 2;
    for (const key of this.#outgoing) {
      const keyBytes = Buffer.byteLength(JSON.stringify(key)) + 1;
      // A name that is too long for any payload is left out: whoever waits for it looks once a second.
      if (bytes + keyBytes > MAX_PAYLOAD_BYTES && keys.length > 0) break;
      this.#outgoing.delete(key);
      if (bytes + keyBytes > MAX_PAYLOAD_BYTES) continue;
      bytes += keyBytes;
      keys.push(key);
    }
    return JSON.stringify(keys);
  }

  async #reconnect(broken: Client): Promise<void> {
    if (this.#client !== broken) return;
    this.#client = undefined;
    broken.end().catch(() => {});
    while (!this.#closing.signal.aborted && this.#client === undefined) {
      await this.#host.sleep(LOOK_EVERY_MS, this.#closing.signal);
      if (!this.#closing.signal.aborted) await this.connect().catch(() => {});
    }
    if (this.#closing.signal.aborted) return this.#endClient();
    // Whatever was said meanwhile was said to nobody.
    this.#quiet.clear();
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.wake();
  }

  #enter(keys: readonly string[]): Waiter {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter: Waiter = { woken: promise, wake: resolve };
    for (const key of keys) {
      const waiters = this.#waiters.get(key) ?? new Set();
      this.#waiters.set(key, waiters.add(waiter));
    }
    return waiter;
  }

  #leave(keys: readonly string[], waiter: Waiter): void {
    for (const key of keys) {
      const waiters = this.#waiters.get(key);
      waiters?.delete(waiter);
      if (waiters?.size === 0) this.#waiters.delete(key);
    }
  }

  #wake(key: string): void {
    this.#quiet.delete(key);
    for (const news of this.#looks) news.add(key);
    for (const waiter of this.#waiters.get(key) ?? []) waiter.wake();
  }
}

const VERSIONS = "versions/";

export const wakeKey = {
  inbox: (partition: number): string => `inbox/${partition}`,
  replies: (process: string): string => `replies/${process}`,
  queue: (queue: string): string => `queue/${queue}`,
  /** Of one who waits in this process. */
  seat: (worker: string): string => `seat/${worker}`,
  /** One for all entities of a partition: a commit touches hundreds, and who is woken in vain only looks once more. */
  versions: (partition: number): string => `${VERSIONS}${partition}`,
  partitionOf: (key: string): number | undefined =>
    key.startsWith(VERSIONS) ? Number(key.slice(VERSIONS.length)) : undefined,
  /** Of those who wait in this process for any version of an entity, or for its end alone. */
  version: (entity: string): string => `version/${entity}`,
  end: (entity: string): string => `end/${entity}`,
};

/** `pg` has it on every connected client; its types do not. */
function processIdOf(client: Client): number | undefined {
  return (client as { readonly processID?: number }).processID;
}
