/** What somebody who watches an engine may want to count. */
export interface EngineObserver {
  quarantined?(key: string, error: unknown): void;
  steppedDown?(partition: number, why: string): void;
  storeWentBack?(partition: number, acknowledged: number, found: number): void;
}
