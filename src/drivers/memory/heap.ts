/** Whether `a` has to come out before `b`. */
export type Before<Item> = (a: Item, b: Item) => boolean;

/** Binary heaps in plain arrays: what they hold is data that the simulator copies and puts back. */
export function pushHeap<Item>(heap: Item[], item: Item, before: Before<Item>): void {
  let i = heap.length;
  heap.push(item);
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (!before(item, heap[parent]!)) break;
    heap[i] = heap[parent]!;
    i = parent;
  }
  heap[i] = item;
}

export function popHeap<Item>(heap: Item[], before: Before<Item>): Item | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (last !== undefined && heap.length > 0) sink(heap, last, before);
  return top;
}

/** Puts `item` at the top and lets it down to its place. */
function sink<Item>(heap: Item[], item: Item, before: Before<Item>): void {
  let i = 0;
  for (;;) {
    let least = 2 * i + 1;
    if (least >= heap.length) break;
    if (least + 1 < heap.length && before(heap[least + 1]!, heap[least]!)) least++;
    if (!before(heap[least]!, item)) break;
    heap[i] = heap[least]!;
    i = least;
  }
  heap[i] = item;
}

/** Heaps forget lazily: an entry that means nothing any more waits until it comes to the top, or until most are so. */
export function isMostlyStale(heapSize: number, liveCount: number): boolean {
  return heapSize > 1024 && heapSize > 4 * (liveCount + 1);
}

export function rebuildHeap<Item>(heap: Item[], live: Iterable<Item>, before: Before<Item>): void {
  const items = [...live];
  heap.length = 0;
  for (const item of items) pushHeap(heap, item, before);
}
