import type { Host } from "../../host/host.ts";
import type { Connection, Line } from "./connection.ts";

/** Everybody who waits looks this often as well: a wake-up can be lost with a connection or with the one who got it. */
const LOOK_EVERY_MS = 1000;

/** Connections for commands that wait, one for each that waits at the moment. */
export class Waiting {
  readonly #connection: Connection;
  readonly #host: Host;
  readonly #longestMs: number;
  readonly #idle: Line[] = [];
  readonly #all = new Set<Line>();
  #closed = false;

  constructor(connection: Connection, host: Host, commandMs: number) {
    this.#connection = connection;
    this.#host = host;
    // A command that waits longer than one may go unanswered would be taken for lost.
    this.#longestMs = Math.min(LOOK_EVERY_MS, commandMs / 2);
  }

  /** Attempts now, and again whenever `wait` ends, until there is something or the time is up. */
  async until<Found>(
    waitMs: number,
    attempt: () => Promise<Found | undefined>,
    wait: (line: Line, waitMs: number) => Promise<unknown>,
  ): Promise<Found | undefined> {
    const untilMs = this.#host.monotonicMs() + waitMs;
    for (;;) {
      const found = await attempt();
      const leftMs = Math.ceil(untilMs - this.#host.monotonicMs());
      if (found !== undefined || leftMs <= 0 || this.#closed) return found;
      await this.#wait((line) => wait(line, Math.min(leftMs, this.#longestMs)));
      // A store that was closed hands out nothing: nobody may be there to take it.
      if (this.#closed) return undefined;
    }
  }

  close(): void {
    this.#closed = true;
    for (const line of this.#all) line.end();
  }

  async #wait(wait: (line: Line) => Promise<unknown>): Promise<void> {
    const line = this.#idle.pop() ?? (await this.#open());
    if (line === undefined) return;
    try {
      await wait(line);
      this.#idle.push(line);
    } catch (error) {
      this.#all.delete(line);
      line.end();
      if (!this.#closed) throw error;
    }
  }

  async #open(): Promise<Line | undefined> {
    try {
      const line = await this.#connection.open();
      this.#all.add(line);
      return line;
    } catch (error) {
      if (this.#closed) return undefined;
      throw error;
    }
  }
}
