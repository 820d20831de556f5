/** How many are simply looked through. */
const FEW = 16;

/**
 * A set of numbers in the order in which they came. Few are a list, which costs next to nothing and is not made anew when
 * one goes and another comes; many are a real set.
 */
export class UnitSet implements Iterable<number> {
  private few: number[] = [];
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
      this.few.push(unit);
      if (this.few.length > FEW) {
        this.many = new Set(this.few);
        this.few = [];
      }
    }
    return this;
  }

  delete(unit: number): boolean {
    if (this.many !== undefined) return this.many.delete(unit);
    const place = this.few.indexOf(unit);
    if (place >= 0) this.few.splice(place, 1);
    return place >= 0;
  }

  clear(): void {
    this.few = [];
    this.many = undefined;
  }

  /** Those that were there when it began, less those that have gone meanwhile. */
  *[Symbol.iterator](): Generator<number, void> {
    const before = this.many === undefined ? this.few.slice() : [...this.many];
    for (const unit of before) if (this.has(unit)) yield unit;
  }
}
