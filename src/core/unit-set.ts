/** Shared by all that are empty, and never written to. */
const NONE: number[] = [];

/** How many are simply looked through. */
const FEW = 16;

/**
 * A set of numbers in the order in which they came. Few are a list, which costs next to nothing and is not made anew when
 * one goes and another comes; many are a real set.
 */
export class UnitSet implements Iterable<number> {
  private few: number[] = NONE;
  private many: Set<number> | undefined = undefined;

  get size(): number {
    return this.many === undefined ? this.few.length : this.many.size;
  }

  has(unit: number): boolean {
    return this.many === undefined ? this.few.includes(unit) : this.many.has(unit);
  }

  add(unit: number): this {
    if (this.many !== undefined) this.many.add(unit);
    else if (!this.few.includes(unit)) {
      // Not pushed to while it is short: a list that grows makes room for sixteen more.
      if (this.few.length === 0) this.few = [unit];
      else if (this.few.length === 1) this.few = [this.few[0]!, unit];
      else this.few.push(unit);
      if (this.few.length > FEW) {
        this.many = new Set(this.few);
        this.few = NONE;
      }
    }
    return this;
  }

  delete(unit: number): boolean {
    if (this.many !== undefined) return this.many.delete(unit);
    const place = this.few.indexOf(unit);
    if (place < 0) return false;
    if (this.few.length === 1) this.few = NONE;
    else this.few.splice(place, 1);
    return true;
  }

  /** By its place, while there are few. */
  at(place: number): number | undefined {
    return this.few[place];
  }

  clear(): void {
    this.few = NONE;
    this.many = undefined;
  }

  /** Those that were there when it began, less those that have gone meanwhile. */
  *[Symbol.iterator](): Generator<number, void> {
    const before = this.many === undefined ? this.few.slice() : [...this.many];
    for (const unit of before) if (this.has(unit)) yield unit;
  }
}
