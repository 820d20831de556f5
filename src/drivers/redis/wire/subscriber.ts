import type { Host } from "../../../host/host.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Reply } from "./reply-reader.ts";
import { Wire } from "./wire.ts";

const PAUSE_MS = 1_000;
/** Nobody waits longer for a server that says nothing: what is published are hints. */
const PATIENCE_MS = 1_000;
/** A server that has not answered for so long is looked for anew. */
const LOST_MS = 10_000;

/** Hears what others publish, on a connection of its own that is made anew when it has broken. What is said meanwhile is not heard. */
export class Subscriber {
  readonly #endpoint: Endpoint;
  readonly #host: Host;
  readonly #listeners = new Map<string, (text: string) => void>();
  readonly #closing = new AbortController();
  #wire: Wire | undefined;
  #connected: Promise<Wire> | undefined;

  constructor(endpoint: Endpoint, host: Host) {
    this.#endpoint = endpoint;
    this.#host = host;
  }

  /** Resolves when it is heard from now on, or when it is known that it cannot be at present. */
  async subscribe(channel: string, listener: (text: string) => void): Promise<void> {
    this.#listeners.set(channel, listener);
    const patience = new AbortController();
    try {
      await Promise.race([this.#listenTo([channel]), this.#host.sleep(PATIENCE_MS, patience.signal)]);
    } catch {
      // Whoever waits for a hint looks by himself as well.
    } finally {
      patience.abort("over");
    }
  }

  unsubscribe(channel: string): void {
    this.#listeners.delete(channel);
    if (this.#wire?.isReady === true) this.#wire.send(["UNSUBSCRIBE", channel]).catch(() => {});
  }

  close(): void {
    this.#closing.abort("over");
    this.#wire?.end();
  }

  async #listenTo(channels: readonly string[]): Promise<void> {
    const patience = new AbortController();
    void this.#endUnless(patience.signal);
    try {
      const wire = await (this.#connected ??= this.#connect());
      // Each is confirmed by itself.
      await Promise.all(channels.map((channel) => wire.send(["SUBSCRIBE", channel])));
    } finally {
      patience.abort("over");
    }
  }

  async #endUnless(answered: AbortSignal): Promise<void> {
    await this.#host.sleep(LOST_MS, answered);
    if (!answered.aborted) this.#wire?.end(new Error("no answer in time"));
  }

  async #connect(): Promise<Wire> {
    if (this.#closing.signal.aborted) throw new Error("the store was closed");
    const wire = new Wire(this.#endpoint, (reply) => this.#hear(reply));
    this.#wire = wire;
    void wire.ended.then(() => this.#again());
    try {
      await wire.connect();
    } catch (error) {
      wire.end();
      throw error;
    }
    return wire;
  }

  /** Until the pause is over, the one that broke is the one there is: else whoever comes meanwhile would begin one more of these. */
  async #again(): Promise<void> {
    await this.#host.sleep(PAUSE_MS, this.#closing.signal);
    this.#connected = undefined;
    if (this.#closing.signal.aborted || this.#listeners.size === 0) return;
    try {
      await this.#listenTo([...this.#listeners.keys()]);
    } catch {
      // It has ended again, which comes back here; or it may not listen to one of them.
    }
  }

  #hear(reply: Reply): boolean {
    if (!Array.isArray(reply) || reply[0] !== "message") return false;
    const [, channel, text] = reply as readonly string[] as readonly [string, string, string];
    this.#listeners.get(channel)?.(text);
    return true;
  }
}
