/**
 * A map for what comes and goes all the time. Its values lie in a list, and the map behind it knows only their places.
 *
 * A `Map` rebuilds its table when it is full of deleted entries, and V8 keeps a pointer from each old table to the next one. Once
 * one of those tables is in the old generation, it keeps every later one alive, with all that was in it, until the next full
 * collection: whatever passed through such a map survived all minor collections (scavenges). Here the tables hold names and
 * small numbers only.
 */
export class SlotMap<Key, Value> implements ReadonlyMap<Key, Value> {
  private readonly places = new Map<Key, number>();
  private readonly held: (Value | undefined)[] = [];
  private readonly free: number[] = [];

  get size(): number {
    return this.places.size;
  }

  get(key: Key): Value | undefined {
    const place = this.places.get(key);
    return place === undefined ? undefined : this.held[place];
  }

  has(key: Key): boolean {
    return this.places.has(key);
  }

  /** False if there is one already, which stays. */
  insert(key: Key, value: Value): boolean {
    if (this.places.has(key)) return false;
    this.put(key, value);
    return true;
  }

  /** One that is there keeps its place in the order. */
  set(key: Key, value: Value): this {
    const place = this.places.get(key);
    if (place === undefined) this.put(key, value);
    else this.held[place] = value;
    return this;
  }

  private put(key: Key, value: Value): void {
    const place = this.free.pop() ?? this.held.length;
    this.places.set(key, place);
    this.held[place] = value;
  }

  delete(key: Key): boolean {
    const place = this.places.get(key);
    if (place === undefined) return false;
    this.places.delete(key);
    this.held[place] = undefined;
    this.free.push(place);
    return true;
  }

  clear(): void {
    this.places.clear();
    this.held.length = 0;
    this.free.length = 0;
  }

  keys(): MapIterator<Key> {
    return this.places.keys();
  }

  values(): MapIterator<Value> {
    return this.places.values().map((place) => this.held[place]!);
  }

  entries(): MapIterator<[Key, Value]> {
    return this.places.entries().map(([key, place]) => [key, this.held[place]!]) as unknown as MapIterator<
      [Key, Value]
    >;
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.entries();
  }

  forEach(visit: (value: Value, key: Key, map: ReadonlyMap<Key, Value>) => void): void {
    this.places.forEach((place, key) => visit(this.held[place]!, key, this));
  }
}
