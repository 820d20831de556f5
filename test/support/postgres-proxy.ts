import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** What a proxy does to what passes through it. */
export type Mischief =
  /** Nothing. */
  | "none"
  /** Gives each client a number of its own and swallows notifications, as a pooler by transactions does. */
  | "pool"
  /** Cuts the line when a commit comes by: the server hears of its statements, and not of what would commit them. */
  | "cutBeforeCommit"
  /** Lets the commit through and cuts the line before its answer comes back. */
  | "cutAfterCommit"
  /** Lets nothing through, in either direction, and says nothing. */
  | "silence";

/** Stands between a driver and a Postgres, and speaks just enough of its protocol to make trouble. */
export class PostgresProxy {
  mischief: Mischief = "none";
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #target: URL;

  private constructor(url: string) {
    this.#target = new URL(url);
    this.#server = createServer((client) => this.#serve(client));
  }

  static async start(url: string): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(url);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.port = String((this.#server.address() as { readonly port: number }).port);
    return url.href;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(client: Socket): void {
    const server = connect(Number(this.#target.port), this.#target.hostname);
    let isCut = false;
    const cut = (): void => {
      isCut = true;
      client.destroy();
      // Ended in order, so that the server does what it has been told before it notices.
      server.end();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        if (!isCut) for (const other of [client, server]) other.destroy();
      });
    }
    client.on("data", (chunk) => {
      if (this.mischief === "silence" || isCut) return;
      const commitAt = placeOfCommit(chunk);
      if (commitAt !== undefined && this.mischief === "cutBeforeCommit") {
        server.write(chunk.subarray(0, commitAt));
        return cut();
      }
      server.write(chunk);
      if (commitAt !== undefined && this.mischief === "cutAfterCommit") cut();
    });
    let rest = Buffer.alloc(0);
    server.on("data", (chunk: Buffer) => {
      if (this.mischief === "silence" || isCut) return;
      if (this.mischief !== "pool") return void client.write(chunk);
      rest = Buffer.concat([rest, chunk]);
      for (let length = messageLength(rest); length !== undefined; length = messageLength(rest)) {
        const message = pooled(rest.subarray(0, length));
        if (message !== undefined) client.write(message);
        rest = rest.subarray(length);
      }
    });
  }
}

/** Where the sync begins that ends a transaction of several statements, if these bytes hold one from its beginning on. */
function placeOfCommit(bytes: Buffer): number | undefined {
  let executed = 0;
  let at = 0;
  for (let rest = bytes; ;) {
    const length = messageLength(rest);
    if (length === undefined) return undefined;
    const kind = String.fromCharCode(rest[0]!);
    if (kind === "S") return executed > 1 ? at : undefined;
    if (kind === "E") executed++;
    at += length;
    rest = rest.subarray(length);
  }
}

/** A message is a letter, its length, and the rest. */
function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < 5) return undefined;
  const length = bytes.readInt32BE(1) + 1;
  return bytes.length < length ? undefined : length;
}

function pooled(message: Buffer): Buffer | undefined {
  const kind = String.fromCharCode(message[0]!);
  if (kind === "A") return undefined;
  const copy = Buffer.from(message);
  if (kind === "K") copy.writeInt32BE(copy.readInt32BE(5) + 1_000_000, 5);
  return copy;
}
