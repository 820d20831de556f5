import type { Host } from "../host/host.ts";
import type { Kafka, Subscription } from "./kafka.ts";
import type { CancelMessage } from "./messages.ts";
import type { Topics } from "./topics.ts";

/** Tasks of others are among them: so many are remembered. */
const MOST_REMEMBERED = 10_000;
const MOST_AT_ONCE = 1_000;
/** Most answers are there by then; the others are heard the next time. */
const ANSWER_MS = 500;

/** Which tasks count no more, as the servers say it to all workers. */
export class Cancellations {
  readonly #kafka: Kafka;
  readonly #topic: string;
  readonly #host: Host;
  readonly #tokens = new Set<string>();
  #opening: Promise<void> | undefined;
  #subscription: Subscription | undefined;

  constructor({ kafka, topics, host }: { readonly kafka: Kafka; readonly topics: Topics; readonly host: Host }) {
    this.#kafka = kafka;
    this.#topic = topics.cancel;
    this.#host = host;
  }

  /**
   * Those of the given that are among what was said until now, or is said in answer to what the worker has just told. Never
   * waits for long: a worker that hears nothing must still say that it lives.
   */
  async of(tokens: readonly string[]): Promise<readonly string[]> {
    this.#opening ??= this.#open();
    const isOpen = new AbortController();
    await Promise.race([this.#opening.then(() => isOpen.abort()), this.#host.sleep(ANSWER_MS, isOpen.signal)]);
    await this.#hear();
    return tokens.filter((token) => this.#tokens.delete(token));
  }

  /** What is said until it listens is said again: workers tell of their tasks every few seconds. */
  async #open(): Promise<void> {
    try {
      this.#subscription = await this.#kafka.follow(this.#topic);
    } catch {
      this.#opening = undefined;
    }
  }

  async #hear(): Promise<void> {
    const subscription = this.#subscription;
    if (subscription === undefined) return;
    try {
      await subscription.ready(ANSWER_MS);
      for (const { value } of subscription.take(MOST_AT_ONCE)) this.#remember(value);
    } catch {
      this.#subscription = undefined;
      this.#opening = undefined;
      await subscription.close();
    }
  }

  #remember(value: Buffer): void {
    try {
      const { tokens } = JSON.parse(value.toString()) as CancelMessage;
      for (const token of tokens) this.#tokens.add(token);
    } catch {
      // Not of ours: nobody was told to read it.
    }
    for (const token of this.#tokens) if (this.#tokens.size > MOST_REMEMBERED) this.#tokens.delete(token);
  }
}
