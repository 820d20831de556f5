import { Session } from "node:inspector/promises";

/** One object in so many bytes is looked at: a number that follows what is allocated, not how fast or when. */
const INTERVAL_BYTES = 16 * 1024;

interface Allocations {
  readonly selfSize: number;
  readonly children: readonly Allocations[];
}

/** Does some work, and tells how many bytes of objects this thread made meanwhile, those included that are soon collected. */
export async function countingBytes<Result>(
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly bytes: number }> {
  const session = new Session();
  session.connect();
  try {
    await session.post("HeapProfiler.startSampling", {
      samplingInterval: INTERVAL_BYTES,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
    const result = await work();
    const { profile } = await session.post("HeapProfiler.stopSampling");
    return { result, bytes: bytesIn(profile.head) };
  } finally {
    session.disconnect();
  }
}

function bytesIn({ selfSize, children }: Allocations): number {
  return children.reduce((sum, child) => sum + bytesIn(child), selfSize);
}
