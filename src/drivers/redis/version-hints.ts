import type { Host } from "../../host/host.ts";
import type { EntityKey } from "../../store/contract.ts";
import type { Subscriber } from "./wire/subscriber.ts";

/** Hints get lost: everybody who waits looks this often as well. */
const LOOK_EVERY_MS = 1000;
/** Whoever has heard of one version mostly waits for the next: so long we go on listening though nobody waits. */
const LINGER_MS = 2000;

/** What is known of an entity: a hint knows that it is open unless it tells of an end. */
export interface Standing {
  readonly version: number;
  readonly isOpen: boolean;
}

type Listener = (standing: Standing) => void;

interface Wanted {
  readonly waitMs: number;
  readonly read: () => Promise<Standing>;
  readonly isEnough: (standing: Standing) => boolean;
}

/**
 * Waits for what commits publish, on a connection of its own: one channel for each partition, and only those in which
 * somebody waits for an entity.
 */
export class VersionHints {
  readonly #host: Host;
  readonly #subscriber: Subscriber;
  readonly #channelOf: (partition: number) => string;
  readonly #closing = new AbortController();
  /** Who waits, by entity, in each partition we listen to. */
  readonly #partitions = new Map<number, Map<EntityKey, Set<Listener>>>();
  /** Where nobody waits any more, and we still listen for a while. */
  readonly #lingering = new Set<number>();

  constructor(subscriber: Subscriber, host: Host, channelOf: (partition: number) => string) {
    this.#host = host;
    this.#subscriber = subscriber;
    this.#channelOf = channelOf;
  }

  /** The version once it is enough, or as it is when the time is up. */
  async until(partition: number, entity: EntityKey, { waitMs, read, isEnough }: Wanted): Promise<number> {
    let standing: Standing = { version: 0, isOpen: false };
    // Who has to subscribe looks first, in case there is nothing to wait for; who listens already looks once, after that.
    if (waitMs <= 0 || !this.#partitions.has(partition)) {
      standing = await read();
      if (isEnough(standing) || waitMs <= 0) return standing.version;
    }
    const untilMs = this.#host.monotonicMs() + waitMs;
    const heard: { standing?: Standing } = {};
    let wake = (): void => {};
    const listener: Listener = (told) => {
      if (!isEnough(told)) return;
      heard.standing = told;
      wake();
    };
    try {
      await this.#listen(partition, entity, listener);
      standing = await read();
      for (;;) {
        const leftMs = untilMs - this.#host.monotonicMs();
        if (isEnough(standing) || leftMs <= 0 || this.#closing.signal.aborted) break;
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        if (heard.standing === undefined) await this.#woken(promise, Math.min(leftMs, LOOK_EVERY_MS));
        const told = heard.standing;
        delete heard.standing;
        standing = told ?? (await read());
      }
    } catch (error) {
      // The connection went with the store: that is no fault of the one who waits.
      if (!this.#closing.signal.aborted) throw error;
    } finally {
      this.#leave(partition, entity, listener);
    }
    return standing.version;
  }

  close(): void {
    this.#closing.abort();
    this.#subscriber.close();
  }

  async #listen(partition: number, entity: EntityKey, listener: Listener): Promise<void> {
    const entities = this.#partitions.get(partition);
    const listeners = entities?.get(entity) ?? new Set();
    listeners.add(listener);
    if (entities !== undefined) return void entities.set(entity, listeners);
    this.#partitions.set(partition, new Map([[entity, listeners]]));
    await this.#subscriber.subscribe(this.#channelOf(partition), this.#told(partition));
  }

  /** A commit tells `<version> <entity>` of each that it has changed, one on a line, and `+<version>` of one that ends. */
  #told(partition: number): (text: string) => void {
    return (text) => {
      const entities = this.#partitions.get(partition);
      if (entities === undefined) return;
      for (const line of text.split("\n")) {
        const space = line.indexOf(" ");
        const standing = { version: Number(line.slice(0, space)), isOpen: !line.startsWith("+") };
        for (const listener of entities.get(line.slice(space + 1)) ?? []) listener(standing);
      }
    };
  }

  #leave(partition: number, entity: EntityKey, listener: Listener): void {
    const entities = this.#partitions.get(partition);
    const listeners = entities?.get(entity);
    listeners?.delete(listener);
    if (listeners?.size === 0) entities!.delete(entity);
    if (entities?.size === 0 && !this.#lingering.has(partition)) void this.#linger(partition);
  }

  /** One that stays subscribed in vain hears hints that it has no use for. */
  async #linger(partition: number): Promise<void> {
    this.#lingering.add(partition);
    await this.#host.sleep(LINGER_MS, this.#closing.signal);
    this.#lingering.delete(partition);
    if (this.#partitions.get(partition)?.size !== 0) return;
    this.#partitions.delete(partition);
    this.#subscriber.unsubscribe(this.#channelOf(partition));
  }

  async #woken(woken: Promise<void>, waitMs: number): Promise<void> {
    const timer = new AbortController();
    // With a reason: to make up an error as one costs more than all the rest of a timer.
    const stop = (): void => timer.abort("over");
    this.#closing.signal.addEventListener("abort", stop);
    await Promise.race([woken, this.#host.sleep(waitMs, timer.signal)]);
    stop();
    this.#closing.signal.removeEventListener("abort", stop);
  }
}
