/** What somebody who watches an engine may want to count. */
export interface EngineObserver {
  quarantined?(key: string, error: unknown): void;
  /** The sweep found waits that nothing would have ended: a bug of ours, survived. */
  repaired?(key: string, count: number): void;
  steppedDown?(partition: number, why: string): void;
  storeWentBack?(partition: number, acknowledged: number, found: number): void;
  /** The store fills up: so many that have ended are removed before their time. */
  madeRoom?(partition: number, count: number): void;
  /** Records of an entity are in the archive. */
  shipped?(key: string, records: number): void;
  /** An entity that was removed here was put back from the archive. */
  recalled?(key: string): void;
  /** The archive has stopped answering, and why; or answers again. */
  archiveChanged?(trouble: string | undefined): void;
  /** The archive was shipped from another store than this one. */
  archiveForeign?(): void;
  /** The archive held another history of an entity, up to this version; now it holds the store's. */
  archiveReplaced?(key: string, version: number): void;
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
    madeRoom: quiet(observer.madeRoom?.bind(observer)),
    shipped: quiet(observer.shipped?.bind(observer)),
    recalled: quiet(observer.recalled?.bind(observer)),
    archiveChanged: quiet(observer.archiveChanged?.bind(observer)),
    archiveForeign: quiet(observer.archiveForeign?.bind(observer)),
    archiveReplaced: quiet(observer.archiveReplaced?.bind(observer)),
  };
}
