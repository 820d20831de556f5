/**
 * A map that mostly has one entry, which lies in the map itself: the table of a `Map` takes two hundred bytes, however
 * little is in it, and each execution in memory has two of these. In no order.
 */
export class FewMap<Key, Value> implements Iterable<[Key, Value]> {
  private hasFirst = false;
  private key: Key | undefined = undefined;
  private value: Value | undefined = undefined;
  private others: Map<Key, Value> | undefined = undefined;

  get size(): number {
    return (this.hasFirst ? 1 : 0) + (this.others === undefined ? 0 : this.others.size);
  }

  get(key: Key): Value | undefined {
    return this.isFirst(key) ? this.value : this.others?.get(key);
  }

  has(key: Key): boolean {
    return this.isFirst(key) || this.others?.has(key) === true;
  }

  set(key: Key, value: Value): this {
    if (this.isFirst(key)) this.value = value;
    else if (this.hasFirst || this.others?.has(key) === true) {
      (this.others ??= new Map<Key, Value>()).set(key, value);
    } else {
      this.hasFirst = true;
      this.key = key;
      this.value = value;
    }
    return this;
  }

  delete(key: Key): boolean {
    if (!this.isFirst(key)) return this.others?.delete(key) ?? false;
    this.hasFirst = false;
    this.key = undefined;
    this.value = undefined;
    return true;
  }

  clear(): void {
    if (this.hasFirst) this.delete(this.key!);
    this.others = undefined;
  }

  forEach(visit: (value: Value, key: Key) => void): void {
    if (this.hasFirst) visit(this.value!, this.key!);
    this.others?.forEach(visit);
  }

  *[Symbol.iterator](): Generator<[Key, Value], void> {
    if (this.hasFirst) yield [this.key!, this.value!];
    if (this.others !== undefined) yield* this.others;
  }

  private isFirst(key: Key): boolean {
    return this.hasFirst && this.key === key;
  }
}
