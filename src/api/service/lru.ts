import { SlotMap } from "../../core/slot-map.ts";

/** Keeps what was used last, up to a weight in all. One entry that is heavier than that is kept alone. */
export class Lru<Value> {
  readonly #maxWeight: number;
  readonly #entries = new SlotMap<string, { readonly value: Value; readonly weight: number }>();
  #weight = 0;
  #newest: string | undefined;

  constructor(maxWeight: number) {
    this.#maxWeight = maxWeight;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    // What is asked for again and again need not move.
    if (key !== this.#newest) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
      this.#newest = key;
    }
    return entry.value;
  }

  set(key: string, value: Value, weight: number): void {
    this.delete(key);
    this.#entries.set(key, { value, weight });
    this.#newest = key;
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#maxWeight || oldest === key) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
  }

  get size(): number {
    return this.#entries.size;
  }
}
