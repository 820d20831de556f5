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
  readonly #closing = new AbortController();

  constructor(connection: Connection, host: Host, commandMs: number) {
    this.#connection = connection;
    this.#host = host;
    // A command that waits longer than one may go unanswered would be taken for lost.
    this.#longestMs = Math.min(LOOK_EVERY_MS, commandMs / 2);
  }

  /**
   * Attempts now, and again whenever `wait` ends, until there is something or the time is up. Where there is hardly
   * anything yet, `isQuiet`, it waits first: `wait` ends at once if there is something after all.
   */
  async until<Found>(
    waitMs: number,
    attempt: () => Promise<Found | undefined>,
    wait: (line: Line, waitMs: number) => Promise<unknown>,
    isQuiet = false,
  ): Promise<Found | undefined> {
    const untilMs = this.#host.monotonicMs() + waitMs;
    for (let isFirst = true; ; isFirst = false) {
      const found = isFirst && isQuiet && waitMs > 0 ? undefined : await attempt();
      const leftMs = Math.ceil(untilMs - this.#host.monotonicMs());
      if (found !== undefined || leftMs <= 0 || this.#closing.signal.aborted) return found;
      await this.#wait((line) => wait(line, Math.min(leftMs, this.#longestMs)));
      // A store that was closed hands out nothing: nobody may be there to take it.
      if (this.#closing.signal.aborted) return undefined;
    }
  }

  /** For one who waits for nothing: if it were answered at once it would ask again at once. */
  async inVain(waitMs: number): Promise<readonly []> {
    await this.#host.sleep(waitMs, this.#closing.signal);
    return [];
  }

  close(): void {
    this.#closing.abort();
    for (const line of this.#all) line.end();
  }

  async #wait(wait: (line: Line) => Promise<unknown>): Promise<void> {
    const line = this.#unused() ?? (await this.#open());
    if (line === undefined) return;
    try {
      await wait(line);
      this.#idle.push(line);
    } catch (error) {
      this.#all.delete(line);
      line.end();
      if (!this.#closing.signal.aborted) throw error;
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
