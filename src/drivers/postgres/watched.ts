import type { CommitBatch, EntityKey } from "../../store/contract.ts";
import { wakeKey } from "./wake-ups.ts";

interface Watched {
  watchers: number;
  /** Whether it is certain that its header says so, as of the last look or commit. */
  isOpen: boolean;
}

/**
 * What is watched in this process. A commit of this process says what it has changed, so that those who wait for another
 * entity, or for the end of one that goes on, need not look: a look is a statement, and there would be one for every step.
 */
export class WatchedEntities {
  readonly #entities = new Map<EntityKey, Watched>();

  enter(entity: EntityKey): void {
    const known = this.#entities.get(entity);
    if (known === undefined) this.#entities.set(entity, { watchers: 1, isOpen: false });
    else known.watchers++;
  }

  leave(entity: EntityKey): void {
    const known = this.#entities.get(entity);
    if (known !== undefined && --known.watchers === 0) this.#entities.delete(entity);
  }

  /** What a look has found. */
  seen(entity: EntityKey, isOpen: boolean): void {
    const known = this.#entities.get(entity);
    if (known !== undefined) known.isOpen = isOpen;
  }

  /** Whom to tell of a batch that was committed. */
  keysOf({ records, headers, purge }: CommitBatch): readonly string[] {
    if (this.#entities.size === 0) return [];
    for (const { entity, class: state } of headers) this.seen(entity, state === "open");
    // Without a header nothing is open.
    for (const entity of purge) this.seen(entity, false);
    const changed = [...new Set([...records.map(({ entity }) => entity), ...purge])];
    return changed.flatMap((entity) => {
      const known = this.#entities.get(entity);
      if (known === undefined) return [];
      return known.isOpen ? [wakeKey.version(entity)] : [wakeKey.version(entity), wakeKey.end(entity)];
    });
  }
}
