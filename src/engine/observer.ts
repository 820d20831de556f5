/** What somebody who watches an engine may want to count. */
export interface EngineObserver {
  quarantined?(key: string, error: unknown): void;
  /** The sweep found waits that nothing would have ended: a bug of ours, survived. */
  repaired?(key: string, count: number): void;
  steppedDown?(partition: number, why: string): void;
  storeWentBack?(partition: number, acknowledged: number, found: number): void;
}

/** The same observer, harmless: what somebody who only watches throws must not stop what he watches. */
export function safely(observer: EngineObserver): EngineObserver {
  const quiet =
    <Args extends unknown[]>(call: ((...args: Args) => void) | undefined) =>
    (...args: Args): void => {
      try {
        call?.(...args);
      } catch {
        // Theirs, not ours.
      }
    };
  return {
    quarantined: quiet(observer.quarantined?.bind(observer)),
    repaired: quiet(observer.repaired?.bind(observer)),
    steppedDown: quiet(observer.steppedDown?.bind(observer)),
    storeWentBack: quiet(observer.storeWentBack?.bind(observer)),
  };
}
