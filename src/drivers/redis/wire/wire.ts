import { connect, isIP, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { Endpoint } from "./endpoint.ts";
import { ErrorReply, type Reply, ReplyReader } from "./reply-reader.ts";
import { type Request, RequestText } from "./request-text.ts";

const KEEP_ALIVE_MS = 5_000;

/** Whoever has sent something and waits for its answers. */
interface Asked {
  /** Whether that was the last of them. */
  take(reply: Reply): boolean;
  fail(error: Error): void;
}

/**
 * One connection: what is sent in one turn of the event loop goes out together, and answers are given in the order of the
 * requests. It never connects again, and sends nothing twice.
 */
export class Wire {
  readonly #endpoint: Endpoint;
  readonly #socket: Socket;
  readonly #asked = new Line<Asked>();
  readonly #text = new RequestText();
  readonly #ended = Promise.withResolvers<Error>();
  #unsent: Request[] = [];
  #isReady = false;
  #end: Error | undefined;

  /** @param hear told what the server says unasked, and whether it was such */
  constructor(endpoint: Endpoint, hear: (reply: Reply) => boolean = () => false) {
    this.#endpoint = endpoint;
    const { host, port, path } = endpoint;
    this.#socket = endpoint.isSecure
      ? connectSecurely({ host, port, ...(isIP(host) === 0 && { servername: host }) })
      : connect(path === undefined ? { host, port } : { path });
    this.#socket.setNoDelay(true);
    this.#socket.setKeepAlive(true, KEEP_ALIVE_MS);
    const reader = new ReplyReader((reply) => {
      if (!hear(reply)) this.#answer(reply);
    });
    this.#socket.on("data", (chunk: Buffer) => {
      // What was ended hears no more, of the rest of this chunk either.
      if (this.#end !== undefined) return;
      try {
        reader.read(chunk);
      } catch (error) {
        this.end(error as Error);
      }
    });
    this.#socket.on("error", (error) => this.end(error));
    this.#socket.on("close", () => this.end(new Error("the connection was closed by the server")));
  }

  /** It is connected, and has not ended. */
  get isReady(): boolean {
    return this.#isReady && this.#end === undefined;
  }

  /** Resolves with the reason when it has ended. */
  get ended(): Promise<Error> {
    return this.#ended.promise;
  }

  /** To be called once, before anything is sent. */
  async connect(): Promise<void> {
    const { isSecure, user, password, database } = this.#endpoint;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.once(isSecure ? "secureConnect" : "connect", resolve);
    await Promise.race([promise, this.ended]);
    const greeting: Promise<unknown>[] = [];
    // By its name: a server that wants no password of it takes any, and would refuse one without a name.
    if (user !== undefined || password !== undefined)
      greeting.push(this.send(["AUTH", user ?? "default", password ?? ""]));
    if (database !== 0) greeting.push(this.send(["SELECT", String(database)]));
    await Promise.all(greeting);
    if (this.#end !== undefined) throw this.#end;
    this.#isReady = true;
  }

  /** Rejects with an ErrorReply if the server refuses, and with any other error if nobody knows what came of it. */
  send<Answer>(request: Request): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#ask([request], {
      take: (reply) => {
        if (reply instanceof ErrorReply) reject(reply);
        else resolve(reply as Answer);
        return true;
      },
      fail: reject,
    });
    return promise;
  }

  /**
   * Between MULTI and EXEC: what EXEC answers, null if something watched was written to. Rejects with the first refusal, be it of the
   * beginning, of one of the requests or of the end.
   */
  transact(requests: readonly Request[]): Promise<readonly Reply[] | null> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Reply[] | null>();
    let left = requests.length + 2;
    let refusal: ErrorReply | undefined;
    this.#ask([["MULTI"], ...requests, ["EXEC"]], {
      take: (reply) => {
        if (reply instanceof ErrorReply) refusal ??= reply;
        if (--left > 0) return false;
        if (refusal === undefined) resolve(reply as readonly Reply[] | null);
        else reject(refusal);
        return true;
      },
      fail: reject,
    });
    return promise;
  }

  /** Whoever waits for an answer hears the reason. */
  end(reason: Error = new Error("the connection was closed")): void {
    if (this.#end !== undefined) return;
    this.#end = reason;
    this.#unsent = [];
    this.#socket.destroy();
    for (let asked = this.#asked.shift(); asked !== undefined; asked = this.#asked.shift()) asked.fail(reason);
    this.#ended.resolve(reason);
  }

  #ask(requests: readonly Request[], asked: Asked): void {
    if (this.#end !== undefined) return asked.fail(this.#end);
    if (this.#unsent.length === 0) setImmediate(() => this.#flush());
    for (let i = 0; i < requests.length; i++) this.#unsent.push(requests[i]!);
    this.#asked.push(asked);
  }

  #flush(): void {
    const unsent = this.#unsent;
    if (unsent.length === 0) return;
    this.#unsent = [];
    this.#socket.cork();
    for (const { text, encoding } of this.#text.pieces(unsent)) this.#socket.write(text, encoding);
    this.#socket.uncork();
  }

  #answer(reply: Reply): void {
    const asked = this.#asked.first;
    if (asked === undefined) return this.end(new Error("the server has answered what nobody has asked"));
    if (asked.take(reply)) this.#asked.shift();
  }
}

/** First come, first served, for any number of items. */
class Line<Item> {
  #items: Item[] = [];
  #served = 0;

  get first(): Item | undefined {
    return this.#items[this.#served];
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    const item = this.#items[this.#served];
    if (item === undefined) return undefined;
    this.#served++;
    if (this.#served === this.#items.length) {
      this.#items = [];
      this.#served = 0;
    } else if (this.#served > 1_000 && this.#served * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#served);
      this.#served = 0;
    }
    return item;
  }
}
