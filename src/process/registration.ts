import type { Host } from "../host/host.ts";
import type { JsonObject } from "../json/json.ts";
import type { Store } from "../store/contract.ts";

const EVERY_MS = 10_000;
const TTL_MS = 30_000;

/** Says again and again that a worker is alive and what it serves, so that others can see who does what. */
export class WorkerRegistration {
  readonly #store: Store;
  readonly #host: Host;
  readonly #process: string;
  #told: JsonObject;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(store: Store, host: Host, process: string, told: JsonObject) {
    this.#store = store;
    this.#host = host;
    this.#process = process;
    this.#told = told;
  }

  async start(): Promise<void> {
    await this.#say(TTL_MS);
    this.#loop = this.#repeat();
  }

  /** Something else from now on. */
  async tell(told: JsonObject): Promise<void> {
    this.#told = told;
    await this.#say(TTL_MS);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    // Gone at once, instead of after a while.
    await this.#say(1).catch(() => undefined);
  }

  async #repeat(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#host.sleep(EVERY_MS, this.#stopping.signal);
      // A store that does not answer now is asked again; until then we look dead, which is nearly true.
      if (!this.#stopping.signal.aborted) await this.#say(TTL_MS).catch(() => undefined);
    }
  }

  #say(ttlMs: number): Promise<void> {
    return this.#store.records.register(
      { process: this.#process, role: "worker", text: JSON.stringify(this.#told) },
      ttlMs,
    );
  }
}
