/**
 * A map, or a set, of which most stay empty: it costs nearly nothing until something is put into it. An execution has a
 * dozen of them, and there are thousands of executions in memory. Unlike with a real one, whoever walks through it while it is
 * cleared, or filled for the first time, does not hear of that.
 */
export class SparseMap<Key, Value> implements ReadonlyMap<Key, Value> {
  private entriesHeld: Map<Key, Value> | undefined = undefined;

  get size(): number {
    return this.entriesHeld === undefined ? 0 : this.entriesHeld.size;
  }

  get(key: Key): Value | undefined {
    return this.entriesHeld?.get(key);
  }

  has(key: Key): boolean {
    return this.entriesHeld !== undefined && this.entriesHeld.has(key);
  }

  set(key: Key, value: Value): this {
    (this.entriesHeld ??= new Map<Key, Value>()).set(key, value);
    return this;
  }

  delete(key: Key): boolean {
    return this.entriesHeld !== undefined && this.entriesHeld.delete(key);
  }

  clear(): void {
    this.entriesHeld = undefined;
  }

  keys(): MapIterator<Key> {
    return this.held().keys();
  }

  values(): MapIterator<Value> {
    return this.held().values();
  }

  entries(): MapIterator<[Key, Value]> {
    return this.held().entries();
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.held().entries();
  }

  forEach(visit: (value: Value, key: Key, map: ReadonlyMap<Key, Value>) => void): void {
    this.entriesHeld?.forEach((value, key) => visit(value, key, this));
  }

  private held(): ReadonlyMap<Key, Value> {
    return this.entriesHeld ?? (EMPTY_MAP as ReadonlyMap<Key, Value>);
  }
}

export class SparseSet<Item> implements Iterable<Item> {
  private itemsHeld: Set<Item> | undefined = undefined;

  get size(): number {
    return this.itemsHeld === undefined ? 0 : this.itemsHeld.size;
  }

  has(item: Item): boolean {
    return this.itemsHeld !== undefined && this.itemsHeld.has(item);
  }

  add(item: Item): this {
    (this.itemsHeld ??= new Set<Item>()).add(item);
    return this;
  }

  delete(item: Item): boolean {
    return this.itemsHeld !== undefined && this.itemsHeld.delete(item);
  }

  clear(): void {
    this.itemsHeld = undefined;
  }

  values(): SetIterator<Item> {
    return (this.itemsHeld ?? (EMPTY_SET as ReadonlySet<Item>)).values();
  }

  [Symbol.iterator](): SetIterator<Item> {
    return this.values();
  }
}

const EMPTY_MAP: ReadonlyMap<unknown, unknown> = new Map();
const EMPTY_SET: ReadonlySet<unknown> = new Set();
