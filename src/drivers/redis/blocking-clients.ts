import type { RedisClientType } from "@redis/client";
import type { Host } from "../../host/host.ts";

/** Everybody who waits looks this often as well: a wake-up can be lost with a connection or with the one who got it. */
const LOOK_EVERY_MS = 1000;

/** Connections for commands that wait, one for each that waits at the moment. */
export class BlockingClients {
  readonly #client: RedisClientType;
  readonly #host: Host;
  readonly #idle: RedisClientType[] = [];
  readonly #all = new Set<RedisClientType>();
  #closed = false;

  constructor(client: RedisClientType, host: Host) {
    this.#client = client;
    this.#host = host;
  }

  /** Attempts now, and again whenever `wait` ends, until there is something or the time is up. */
  async until<Found>(
    waitMs: number,
    attempt: () => Promise<Found | undefined>,
    wait: (client: RedisClientType, waitMs: number) => Promise<unknown>,
  ): Promise<Found | undefined> {
    const untilMs = this.#host.monotonicMs() + waitMs;
    for (;;) {
      const found = await attempt();
      const leftMs = Math.ceil(untilMs - this.#host.monotonicMs());
      if (found !== undefined || leftMs <= 0 || this.#closed) return found;
      await this.#wait((client) => wait(client, Math.min(leftMs, LOOK_EVERY_MS)));
      // A store that was closed hands out nothing: nobody may be there to take it.
      if (this.#closed) return undefined;
    }
  }

  close(): void {
    this.#closed = true;
    for (const client of this.#all) client.destroy();
  }

  async #wait(wait: (client: RedisClientType) => Promise<unknown>): Promise<void> {
    const client = this.#idle.pop() ?? (await this.#open());
    try {
      await wait(client);
      this.#idle.push(client);
    } catch (error) {
      this.#all.delete(client);
      if (client.isOpen) client.destroy();
      if (!this.#closed) throw error;
    }
  }

  async #open(): Promise<RedisClientType> {
    const client = this.#client.duplicate();
    client.on("error", () => {});
    this.#all.add(client);
    await client.connect();
    return client;
  }
}
