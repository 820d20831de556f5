/** A seeded source of randomness (sfc32): the same seed gives the same world. */
export class Random {
  private a: number;
  private b: number;
  private c: number;
  private d: number;

  constructor(seed: number) {
    this.a = 0x9e3779b9 ^ seed;
    this.b = 0x243f6a88 ^ Math.imul(seed, 0x85ebca6b);
    this.c = 0xb7e15162 ^ Math.imul(seed, 0xc2b2ae35);
    this.d = seed | 1;
    for (let i = 0; i < 15; i++) this.next();
  }

  /** Uniform in [0, 1). */
  next(): number {
    const t = (((this.a + this.b) | 0) + this.d) | 0;
    this.d = (this.d + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (this.c << 21) | (this.c >>> 11);
    this.c = (this.c + t) | 0;
    return (t >>> 0) / 4_294_967_296;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.next() * items.length)]!;
  }

  /** One of the items, each as likely as its weight. */
  weighted<T>(items: readonly (readonly [weight: number, item: T])[]): T {
    const total = items.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.next() * total;
    for (const [weight, item] of items) {
      left -= weight;
      if (left < 0) return item;
    }
    return items.at(-1)![1];
  }

  hex(digits: number): string {
    let text = "";
    while (text.length < digits)
      text += Math.floor(this.next() * 0x10000)
        .toString(16)
        .padStart(4, "0");
    return text.slice(0, digits);
  }

  /** A source of its own for one purpose, so that using more of one does not shift all the others. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 0x7fffffff));
  }
}
