import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";

/** What happens to the bytes on their way. */
export type Fault =
  | { readonly kind: "pass" }
  /** Each piece arrives so much later, in both directions. */
  | { readonly kind: "delay"; readonly ms: number }
  /** So many bytes a second in each direction of each connection. */
  | { readonly kind: "throttle"; readonly bytesPerSecond: number }
  /** The cable is out: nothing arrives until it is back, and then all of it does, as late as that may be. */
  | { readonly kind: "hold"; readonly direction: Direction | "both" }
  /** Connections are taken and everything that is said is forgotten: the other side is there no more. */
  | { readonly kind: "swallow" }
  /** What is asked arrives; what is answered does not. */
  | { readonly kind: "swallowReplies" }
  /** Every connection breaks, and none is taken. */
  | { readonly kind: "refuse" };

type Direction = "up" | "down";

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  readonly up: Pipe;
  readonly down: Pipe;
  /** Bytes of it are lost: it can never be used again. */
  isTorn: boolean;
}

const PASS: Fault = { kind: "pass" };

/**
 * An unreliable network between one process and a server. A connection that has lost bytes is broken when the fault is
 * over, or stays silent for ever, as one does whose other side has vanished: then the client has to notice by itself.
 */
export class FaultProxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #fault: Fault = PASS;

  constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#links.size;
  }

  /** From now on, for the connections there are and those to come. */
  apply(fault: Fault): void {
    this.#fault = fault;
    if (fault.kind === "refuse") this.cut();
    for (const { up, down } of this.#links) for (const pipe of [up, down]) pipe.changed();
  }

  /** Everything arrives again. Connections that have lost bytes break, or are left as they are. */
  heal(torn: "break" | "leave" = "break"): void {
    this.apply(PASS);
    for (const link of this.#links) if (link.isTorn && torn === "break") this.#cut(link);
  }

  /** Breaks every connection; new ones are taken. */
  cut(): void {
    for (const link of this.#links) this.#cut(link);
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(client: Socket): void {
    client.on("error", () => undefined);
    if (this.#fault.kind === "refuse") {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target);
    server.on("error", () => undefined);
    const fault = (): Fault => (link.isTorn ? { kind: "swallow" } : this.#fault);
    const tear = (): void => {
      link.isTorn = true;
    };
    const link: Link = {
      client,
      server,
      up: new Pipe(client, server, "up", fault, tear),
      down: new Pipe(server, client, "down", fault, tear),
      isTorn: false,
    };
    this.#links.add(link);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      // The end of one side is news as well: while nothing gets through, that does not either.
      socket.on("close", () => link.up.whenThrough(() => link.down.whenThrough(() => this.#end(link))));
    }
  }

  /** One side has gone in order: what it had said before arrives. */
  #end(link: Link): void {
    this.#links.delete(link);
    link.client.destroySoon();
    link.server.destroySoon();
  }

  #cut(link: Link): void {
    this.#links.delete(link);
    link.up.close();
    link.down.close();
    link.client.resetAndDestroy();
    link.server.resetAndDestroy();
  }
}

/** One direction of a connection: pieces in the order in which they came. */
class Pipe {
  readonly #to: Socket;
  readonly #direction: Direction;
  readonly #fault: () => Fault;
  readonly #tear: () => void;
  readonly #waiting: { readonly bytes: Buffer; readonly at: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #freeAt = 0;
  #through: (() => void) | undefined;
  #isClosed = false;

  constructor(from: Socket, to: Socket, direction: Direction, fault: () => Fault, tear: () => void) {
    this.#to = to;
    this.#direction = direction;
    this.#fault = fault;
    this.#tear = tear;
    from.on("data", (bytes: Buffer) => this.#take(bytes));
  }

  /** The weather is another now. */
  changed(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#freeAt = 0;
    this.#pump();
  }

  /** Once everything that came has gone on, which may be never. */
  whenThrough(then: () => void): void {
    this.#through = then;
    this.#pump();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #take(bytes: Buffer): void {
    const { kind } = this.#fault();
    if (kind === "swallow" || (kind === "swallowReplies" && this.#direction === "down")) return this.#tear();
    this.#waiting.push({ bytes, at: performance.now() });
    this.#pump();
  }

  #pump(): void {
    while (!this.#isClosed && this.#timer === undefined) {
      const waitMs = this.#waitMs();
      if (waitMs === undefined) return;
      if (waitMs > 0) {
        this.#timer = setTimeout(() => {
          this.#timer = undefined;
          this.#pump();
        }, waitMs);
        return;
      }
      const next = this.#waiting.shift();
      if (next === undefined) {
        this.#through?.();
        return;
      }
      const fault = this.#fault();
      if (fault.kind === "throttle") {
        this.#freeAt = performance.now() + (next.bytes.length / fault.bytesPerSecond) * 1_000;
      }
      if (!this.#to.destroyed) this.#to.write(next.bytes);
    }
  }

  /** How long the next piece has to wait; undefined if nobody knows. */
  #waitMs(): number | undefined {
    const fault = this.#fault();
    const nowMs = performance.now();
    switch (fault.kind) {
      case "hold":
        return fault.direction === "both" || fault.direction === this.#direction ? undefined : 0;
      case "swallow":
        return undefined;
      case "swallowReplies":
        return this.#direction === "down" ? undefined : 0;
      case "delay":
        return Math.max(0, (this.#waiting[0]?.at ?? nowMs) + fault.ms - nowMs);
      case "throttle":
        return Math.max(0, this.#freeAt - nowMs);
      case "pass":
      case "refuse":
        return 0;
    }
  }
}
