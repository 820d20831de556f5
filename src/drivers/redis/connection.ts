import type { Host } from "../../host/host.ts";
import { StoreError } from "../../store/store-error.ts";
import { type Endpoint, endpointOf } from "./wire/endpoint.ts";
import { ErrorReply } from "./wire/reply-reader.ts";
import { Subscriber } from "./wire/subscriber.ts";
import { Wire } from "./wire/wire.ts";

export interface ConnectionOptions {
  readonly url: string;
  readonly host: Host;
  /** How long connecting may take. */
  readonly connectMs: number;
  /** How long a command may go unanswered. */
  readonly commandMs: number;
}

/** What came of a transaction. `failed`: of its commands some were run, and some were not. */
export type Transacted = "done" | "watchFailed" | "refused" | "failed";

/** What it answers to the word that begins one, where there are none. */
const NO_TRANSACTIONS = /^(NOPERM .* run the|ERR unknown command) '?multi'/i;

/** What a server answers that is none any more which can be written to. */
const DEMOTED = /^(READONLY|MASTERDOWN) /;
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1000;

/**
 * One connection, from its beginning to its end. What was sent on it and not answered when it ended is never sent again:
 * whoever sent it hears that nobody knows what became of it.
 */
export class Line {
  readonly #wire: Wire;
  readonly #host: Host;
  readonly #commandMs: number;
  readonly #ended = new AbortController();
  #unanswered = 0;
  #answers = 0;
  #isWatched = false;

  constructor(wire: Wire, { host, commandMs }: ConnectionOptions) {
    this.#wire = wire;
    this.#host = host;
    this.#commandMs = commandMs;
  }

  get isUsable(): boolean {
    return this.#wire.isReady;
  }

  send<Answer>(command: readonly string[]): Promise<Answer> {
    return this.#answered(this.#wire.send<Answer>(command));
  }

  /**
   * Commands that the server runs with nobody between, and all of them: `watchFailed` if something was written to that is watched, and
   * `refused` if it takes one of them not at all, and then it has run none. One that fails does not undo the others.
   */
  async transact(commands: readonly (readonly string[])[]): Promise<Transacted> {
    try {
      const answers = await this.#answered(this.#wire.transact(commands));
      if (answers === null) return "watchFailed";
      return answers.some((answer) => answer instanceof ErrorReply) ? "failed" : "done";
    } catch (error) {
      // Without a beginning the others have run as they came.
      if (error instanceof ErrorReply && NO_TRANSACTIONS.test(error.message)) return "failed";
      if (error instanceof ErrorReply) return "refused";
      throw error;
    }
  }

  async #answered<Answer>(asked: Promise<Answer>): Promise<Answer> {
    this.#unanswered++;
    if (!this.#isWatched) void this.#watch();
    try {
      return await asked;
    } catch (error) {
      if (!(error instanceof ErrorReply)) throw unavailable(error);
      // A server that was made a replica says so for ever, and answers what is only read from what it had. Whoever connects anew is led
      // to its successor, or hears what it is.
      if (DEMOTED.test(error.message)) this.end();
      throw error;
    } finally {
      this.#unanswered--;
      this.#answers++;
    }
  }

  end(): void {
    this.#ended.abort();
    this.#wire.end();
  }

  /**
   * Answers come in the order of the commands. If the oldest is not answered in time, its answer is lost or the server
   * stands still, and nothing that comes on this connection is worth waiting for.
   */
  async #watch(): Promise<void> {
    this.#isWatched = true;
    while (this.#unanswered > 0 && !this.#ended.signal.aborted) {
      const seen = this.#answers;
      await this.#host.sleep(this.#commandMs, this.#ended.signal);
      // If this process stood still for as long, the answer may be there and unread.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#answers === seen) this.end();
    }
    this.#isWatched = false;
  }
}

/**
 * The connection that most commands share. It is made anew when it has broken, by the first who needs it then, and looked
 * at before anybody uses it: what answers now may be another server, or the same one without its data.
 */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #endpoint: Endpoint;
  readonly #check: (line: Line) => Promise<void>;
  readonly #closing = new AbortController();
  #reason: StoreError | undefined;
  #line: Line | undefined;
  #age = 0;
  #opening: Promise<Line> | undefined;
  #failures = 0;

  constructor(options: ConnectionOptions, check: (line: Line) => Promise<void>) {
    this.#options = options;
    this.#endpoint = endpointOf(options.url);
    this.#check = check;
  }

  /** Rises whenever the shared one is made anew: as long as it is the same, so is the server, and it has lost nothing. */
  get age(): number {
    return this.#age;
  }

  /** The shared one. */
  async line(): Promise<Line> {
    if (this.#reason !== undefined) throw this.#reason;
    if (this.#line?.isUsable === true) return this.#line;
    this.#opening ??= this.#renew().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** One more, for somebody who waits on it. */
  async open(): Promise<Line> {
    const wire = new Wire(this.#endpoint);
    const line = new Line(wire, this.#options);
    const stop = new AbortController();
    const close = (): void => {
      stop.abort();
      line.end();
    };
    this.#closing.signal.addEventListener("abort", close);
    try {
      await this.#connected(wire, stop.signal);
      await this.#check(line);
      if (this.#reason !== undefined) throw this.#reason;
      return line;
    } catch (error) {
      line.end();
      throw error instanceof ErrorReply ? unavailable(error) : error;
    } finally {
      stop.abort();
      this.#closing.signal.removeEventListener("abort", close);
    }
  }

  /** For what others publish. It carries hints only, so it may connect again by itself. */
  subscriber(): Subscriber {
    return new Subscriber(this.#endpoint, this.#options.host);
  }

  /** For good: whoever comes hears why, at once. */
  end(reason: StoreError): void {
    this.#reason ??= reason;
    this.#closing.abort();
    this.#line?.end();
  }

  close(): void {
    this.end(unavailable("the store was closed"));
  }

  async #renew(): Promise<Line> {
    const { host } = this.#options;
    this.#line?.end();
    this.#age++;
    if (this.#failures > 0) {
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
      await host.sleep(pauseMs, this.#closing.signal);
    }
    if (this.#reason !== undefined) throw this.#reason;
    try {
      this.#line = await this.open();
      this.#failures = 0;
      return this.#line;
    } catch (error) {
      this.#failures++;
      throw error;
    }
  }

  /** Also a server that takes the connection and then says nothing has had its time. */
  async #connected(wire: Wire, stopped: AbortSignal): Promise<void> {
    const { host, connectMs } = this.#options;
    const connecting = wire.connect().then(() => true);
    connecting.catch(() => {});
    try {
      const isConnected = await Promise.race([connecting, host.sleep(connectMs, stopped).then(() => false)]);
      if (!isConnected) throw new Error("no connection in time");
    } catch (error) {
      throw unavailable(error);
    }
  }
}

function unavailable(reason: unknown): StoreError {
  const told = reason instanceof Error ? reason.message || reason.name : String(reason);
  return new StoreError("STORE_UNAVAILABLE", `The store cannot be reached: ${told}`, { cause: reason });
}
