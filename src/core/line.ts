/** Shared by all that are empty, and never written to. */
const NONE: number[] = [];

/** A first-in, first-out line of node numbers. Taking from the front costs nothing; memory follows the length. */
export class Line {
  private items: number[] = NONE;
  private head = 0;

  get length(): number {
    return this.items.length - this.head;
  }

  push(item: number): void {
    const { items } = this;
    // Not pushed to while it is short: a list that grows makes room for sixteen more, and most lines never have three.
    if (items.length === 0) this.items = [item];
    else if (items.length === 1) this.items = [items[0]!, item];
    else items.push(item);
  }

  /** The item at this place, 0 being the front. */
  at(place: number): number | undefined {
    return this.items[this.head + place];
  }

  /** Takes one item out, wherever it stands; normally it is the front. */
  remove(item: number): void {
    if (this.items[this.head] === item) {
      this.head++;
      if (this.head === this.items.length) this.clear();
      else if (this.head > 1024 && this.head * 2 > this.items.length) this.drop();
      return;
    }
    const place = this.items.indexOf(item, this.head);
    if (place >= 0) this.items.splice(place, 1);
  }

  clear(): void {
    this.items = NONE;
    this.head = 0;
  }

  toArray(): number[] {
    return this.items.slice(this.head);
  }

  private drop(): void {
    this.items = this.items.slice(this.head);
    this.head = 0;
  }
}
