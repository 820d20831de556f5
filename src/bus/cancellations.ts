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
  readonly #tokens = new Set<string>();
  #subscription: Promise<Subscription> | undefined;

  constructor({ kafka, topics }: { readonly kafka: Kafka; readonly topics: Topics }) {
    this.#kafka = kafka;
    this.#topic = topics.cancel;
  }

  /** Those of the given that are among what was said until now, or is said in answer to what the worker has just told. */
  async of(tokens: readonly string[]): Promise<readonly string[]> {
    await this.#listen();
    return tokens.filter((token) => this.#tokens.delete(token));
  }

  async close(): Promise<void> {
    await (await this.#subscription?.catch(() => undefined))?.close().catch(() => undefined);
  }

  async #listen(): Promise<void> {
    this.#subscription ??= this.#kafka.follow(this.#topic);
    try {
      const subscription = await this.#subscription;
      await subscription.ready(ANSWER_MS);
      for (const { value } of subscription.take(MOST_AT_ONCE)) this.#remember(value);
    } catch (error) {
      // What is said until it listens again is said again: workers tell of their tasks every few seconds.
      await this.close();
      this.#subscription = undefined;
      throw error;
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
