import type { RedisClientType } from "@redis/client";
import type { Host } from "../../host/host.ts";

/** Hints get lost: everybody who waits looks this often as well. */
const LOOK_EVERY_MS = 1000;

/** Waits for what commits publish, one channel for each entity, on a connection of its own. */
export class VersionHints {
  readonly #host: Host;
  readonly #client: RedisClientType;
  readonly #closing = new AbortController();
  #connected: Promise<unknown> | undefined;

  constructor(client: RedisClientType, host: Host) {
    this.#host = host;
    this.#client = client.duplicate();
    this.#client.on("error", () => {});
  }

  /** The version once it is enough, or as it is when the time is up. */
  async until(
    channel: string,
    waitMs: number,
    read: () => Promise<number>,
    isEnough: (version: number) => boolean,
  ): Promise<number> {
    let version = await read();
    if (isEnough(version) || waitMs <= 0) return version;
    const untilMs = this.#host.monotonicMs() + waitMs;
    let wake = (): void => {};
    const listener = (): void => wake();
    try {
      await (this.#connected ??= this.#client.connect());
      await this.#client.subscribe(channel, listener);
      while (!this.#closing.signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        version = await read();
        const leftMs = untilMs - this.#host.monotonicMs();
        if (isEnough(version) || leftMs <= 0) break;
        await this.#woken(promise, Math.min(leftMs, LOOK_EVERY_MS));
      }
      if (!this.#closing.signal.aborted) await this.#client.unsubscribe(channel, listener);
    } catch (error) {
      // The connection went with the store: that is no fault of the one who waits.
      if (!this.#closing.signal.aborted) throw error;
    }
    return version;
  }

  close(): void {
    this.#closing.abort();
    if (this.#client.isOpen) this.#client.destroy();
  }

  async #woken(woken: Promise<void>, waitMs: number): Promise<void> {
    const timer = new AbortController();
    const stop = (): void => timer.abort();
    this.#closing.signal.addEventListener("abort", stop);
    await Promise.race([woken, this.#host.sleep(waitMs, timer.signal)]);
    timer.abort();
    this.#closing.signal.removeEventListener("abort", stop);
  }
}
