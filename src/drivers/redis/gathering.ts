/** A call that waits to be sent, with those that came at the same time. */
interface Waiting<Item, Answer> {
  readonly items: readonly Item[];
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One call is under way at a time; what comes meanwhile travels together in the next. So the first is sent at once, and
 * many at a time cost one script for all, without anybody waiting for a clock.
 */
export class Gathering<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #most: number;
  #waiting: Waiting<Item, Answer>[] = [];
  #isSending = false;

  /** `most` items in one call, as far as no single call brings more. */
  constructor(most: number, send: (items: readonly Item[]) => Promise<readonly Answer[]>) {
    this.#most = most;
    this.#send = send;
  }

  add(items: readonly Item[]): Promise<readonly Answer[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Answer[]>();
    this.#waiting.push({ items, resolve, reject });
    if (!this.#isSending) void this.#sendAll();
    return promise;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      const calls = this.#next();
      try {
        const answers = await this.#send(calls.flatMap(({ items }) => items));
        let from = 0;
        for (const { items, resolve } of calls) resolve(answers.slice(from, (from += items.length)));
      } catch (error) {
        for (const { reject } of calls) reject(error);
      }
    }
    this.#isSending = false;
  }

  #next(): readonly Waiting<Item, Answer>[] {
    let count = 0;
    const end = this.#waiting.findIndex(({ items }, i) => (count += items.length) > this.#most && i > 0);
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }
}
