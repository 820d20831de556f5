import type { Host } from "../host/host.ts";
import type { JsonObject } from "../json/json.ts";
import type { Store } from "../store/contract.ts";

export interface RegistrationTimes {
  readonly heartbeatMs: number;
  /** Dead after this long without a word. */
  readonly aliveMs: number;
}

/** Says again and again that a worker is alive and what it serves, so that others can see who does what. */
export class WorkerRegistration {
  readonly #store: Store;
  readonly #host: Host;
  readonly #process: string;
  readonly #told: () => JsonObject;
  readonly #times: RegistrationTimes;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  /** @param told what there is to say, whenever it is said */
  constructor(store: Store, host: Host, process: string, told: () => JsonObject, times: RegistrationTimes) {
    this.#store = store;
    this.#host = host;
    this.#process = process;
    this.#told = told;
    this.#times = times;
  }

  async start(): Promise<void> {
    await this.tell();
    this.#loop = this.#repeat();
  }

  /** Now, since there is something new. After a stop nobody may look alive again. */
  async tell(): Promise<void> {
    if (!this.#stopping.signal.aborted) await this.#say(this.#times.aliveMs);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    // Gone at once, instead of after a while.
    await this.#say(1).catch(() => undefined);
  }

  async #repeat(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#host.sleep(this.#times.heartbeatMs, this.#stopping.signal);
      // A store that does not answer now is asked again; until then we look dead, which is nearly true.
      if (!this.#stopping.signal.aborted) await this.tell().catch(() => undefined);
    }
  }

  #say(ttlMs: number): Promise<void> {
    const text = JSON.stringify(this.#told());
    return this.#store.records.register({ process: this.#process, role: "worker", text }, ttlMs);
  }
}
