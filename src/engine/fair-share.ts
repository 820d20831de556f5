/** What an engine tells the others about itself, in its registration. */
export interface EngineNews {
  /** The partitions it owns. */
  readonly partitions: readonly number[];
  /** It is about to stop: it counts no more, and gives back what it has. */
  readonly leaving: boolean;
}

export interface SeenEngine extends EngineNews {
  readonly name: string;
}

/**
 * How many partitions an engine should own. All engines that see the same come to the same shares, which differ by one
 * at most. Where they do not divide evenly, those that have more keep more: nothing moves without need.
 *
 * One that leaves should own nothing, unless there is nobody else.
 */
export function fairShare(me: string, engines: readonly SeenEngine[], partitionCount: number): number {
  const staying = engines.filter(({ leaving }) => !leaving);
  if (staying.length === 0) return engines.find(({ name }) => name === me)?.partitions.length ?? 0;
  const order = staying.toSorted((a, b) => b.partitions.length - a.partitions.length || (a.name < b.name ? -1 : 1));
  const place = order.findIndex(({ name }) => name === me);
  if (place < 0) return 0;
  const even = Math.floor(partitionCount / staying.length);
  return place < partitionCount % staying.length ? even + 1 : even;
}

/** Partitions that nobody says to own. A hint: the store knows whether they can be had. */
export function unclaimed(engines: readonly SeenEngine[], partitionCount: number): readonly number[] {
  const claimed = new Set(engines.flatMap(({ partitions }) => partitions));
  return Array.from({ length: partitionCount }, (_, partition) => partition).filter((one) => !claimed.has(one));
}

/** What another engine says; one that says nothing of use owns nothing that we know of. */
export function readNews(text: string): EngineNews {
  try {
    const { partitions, leaving } = JSON.parse(text) as Partial<Record<keyof EngineNews, unknown>>;
    const numbers = Array.isArray(partitions) ? partitions.filter((one) => Number.isInteger(one)) : [];
    return { partitions: numbers as number[], leaving: leaving === true };
  } catch {
    return { partitions: [], leaving: false };
  }
}
