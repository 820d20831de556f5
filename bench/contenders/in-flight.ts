/** Calls `work` so many times, `width` at a time: the bulk form of those who have none. */
export async function inFlight(count: number, width: number, work: () => Promise<unknown>): Promise<void> {
  let left = count;
  const go = async (): Promise<void> => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, go));
}
