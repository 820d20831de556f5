import type { CommitBatch, EntityKey } from "../../store/contract.ts";
import { versionKey } from "../memory/commit.ts";
import type { Waiters } from "../memory/waiters.ts";

/** What somebody who watches an entity has learned of it since it began to. */
export interface Watcher {
  /** undefined as long as nothing was committed. */
  version: number | undefined;
}

/** Those who wait for a version: told by the commit itself, so that nobody asks the file again and again. */
export class VersionWatchers {
  readonly #waiters: Waiters;
  readonly #byEntity = new Map<EntityKey, Set<Watcher>>();

  constructor(waiters: Waiters) {
    this.#waiters = waiters;
  }

  enter(entity: EntityKey): Watcher {
    const watcher: Watcher = { version: undefined };
    const watchers = this.#byEntity.get(entity) ?? new Set();
    this.#byEntity.set(entity, watchers.add(watcher));
    return watcher;
  }

  leave(entity: EntityKey, watcher: Watcher): void {
    const watchers = this.#byEntity.get(entity);
    watchers?.delete(watcher);
    if (watchers?.size === 0) this.#byEntity.delete(entity);
  }

  committed({ records, purge }: CommitBatch): void {
    if (this.#byEntity.size === 0) return;
    for (const { entity, version, count } of records) this.#tell(entity, version + count - 1);
    for (const entity of purge) this.#tell(entity, 0);
  }

  #tell(entity: EntityKey, version: number): void {
    const watchers = this.#byEntity.get(entity);
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.version = version;
    this.#waiters.wakeAll(versionKey(entity));
  }
}
