import { getHeapStatistics } from "node:v8";

/** The part of its memory that this process uses: of its heap, or of what its container gives it, whichever is more. */
export function ownMemory(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  const constrained = process.constrainedMemory();
  const heap = used / limit;
  // Without a container the answer is nonsense: 0, or more than any machine has.
  const isConstrained = constrained > 0 && constrained < 2 ** 50;
  return isConstrained ? Math.max(heap, process.memoryUsage.rss() / constrained) : heap;
}
