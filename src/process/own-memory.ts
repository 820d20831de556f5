import { getHeapStatistics } from "node:v8";

/** How long a look is good for: every request asks, and the container's limit is read from a file. */
const FRESH_MS = 100;
let lookedAtMs = -Infinity;
let used = 0;

/** The part of its memory that this process uses: of its heap, or of what its container gives it, whichever is more. */
export function ownMemory(): number {
  const nowMs = performance.now();
  if (nowMs - lookedAtMs > FRESH_MS) {
    used = look();
    lookedAtMs = nowMs;
  }
  return used;
}

function look(): number {
  const { used_heap_size: heapUsed, heap_size_limit: limit } = getHeapStatistics();
  const constrained = process.constrainedMemory();
  const heap = heapUsed / limit;
  // Without a container the answer is nonsense: 0, or more than any machine has.
  const isConstrained = constrained > 0 && constrained < 2 ** 50;
  return isConstrained ? Math.max(heap, process.memoryUsage.rss() / constrained) : heap;
}
