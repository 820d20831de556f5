import { setImmediate } from "node:timers/promises";
import { answerOf } from "./faults.ts";

/** What travels in one statement; what is beyond it goes with the next. */
const MAX_ITEMS = 2000;

interface Call<Item, Result> {
  readonly items: readonly Item[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends what many ask for at once in one statement: what comes in one turn of the event loop, or while the statement
 * before is under way, travels together. Everybody gets his own answers, in order of asking.
 */
export class Gathering<Item, Result> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #waiting: Call<Item, Result>[] = [];
  #isSending = false;

  /** @param send answers one result for each item, in order */
  constructor(send: (items: readonly Item[]) => Promise<readonly Result[]>) {
    this.#send = send;
  }

  ask(items: readonly Item[]): Promise<readonly Result[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Result[]>();
    this.#waiting.push({ items, resolve, reject });
    if (!this.#isSending) void this.#sendAll();
    return promise;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    await setImmediate();
    while (this.#waiting.length > 0) await this.#sendTogether(this.#next());
    this.#isSending = false;
  }

  #next(): readonly Call<Item, Result>[] {
    let count = 0;
    const end = this.#waiting.findIndex(({ items }, i) => (count += items.length) > MAX_ITEMS && i > 0);
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  async #sendTogether(calls: readonly Call<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#send(calls.flatMap(({ items }) => items));
      let place = 0;
      for (const { items, resolve } of calls) resolve(results.slice(place, (place += items.length)));
    } catch (error) {
      // Nobody may fail because of a value that somebody else has brought.
      if (calls.length > 1 && isOfValue(error)) for (const call of calls) await this.#sendTogether([call]);
      else for (const { reject } of calls) reject(error);
    }
  }
}

/** Class 22 is a value that cannot be stored, 23 one that must not be, 54 one that is too large: nothing was written. */
function isOfValue(error: unknown): boolean {
  return /^(22|23|54)/.test(answerOf(error)?.code ?? "");
}
