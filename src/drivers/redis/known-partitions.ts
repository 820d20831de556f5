import type { CommitBatch, EntityKey, Loaded } from "../../store/contract.ts";
import { idsOf, startOf } from "./position.ts";

/** Of all partitions together. One that is not known is committed by a script, which looks for itself. */
const MOST_KNOWN = 50_000;

/** What is known of one entity. */
export class KnownEntity {
  version: number;
  /** Its place in the lists, as commit.lua has it; null if it has none, undefined if nobody has looked. */
  place: string | null | undefined;

  constructor(version: number, place: string | null | undefined) {
    this.version = version;
    this.place = place;
  }
}

/** What is known of one partition. */
export class KnownPartition {
  readonly entities = new Map<EntityKey, KnownEntity>();
  /** The last message that was consumed: nothing is left in the inbox up to there. */
  consumedUpTo = "";
}

const NOTHING = new KnownPartition();

/**
 * What this process knows of its partitions, from what it has read and written itself. As nobody else writes to them while the fence
 * fits, it is what the store has; where it is not, as when another has had the partition since, a version does not
 * follow, and a script is asked.
 */
export class KnownPartitions {
  /** Those that were acquired here. */
  readonly #partitions = new Map<number, KnownPartition>();
  #size = 0;

  of(partition: number): KnownPartition {
    return this.#partitions.get(partition) ?? NOTHING;
  }

  /** A tenure has begun. */
  begin(partition: number): void {
    this.forget(partition);
    this.#partitions.set(partition, new KnownPartition());
  }

  forget(partition: number): void {
    this.#size -= this.of(partition).entities.size;
    this.#partitions.delete(partition);
  }

  /** An answer may be late: what was written since is newer. `isFound` is of the journal, also of one that is not ours. */
  loaded(partition: number, { entity, snapshot, records }: Loaded, isFound: boolean): void {
    if (!this.#partitions.has(partition)) return;
    const last = records.at(-1);
    const version = last === undefined ? (snapshot?.version ?? 0) : last.version + last.count - 1;
    if (isFound && version === 0) return;
    const { entities } = this.of(partition);
    const known = entities.get(entity);
    if (known === undefined) this.#add(entities, entity, new KnownEntity(version, isFound ? undefined : null));
    else if (known.version < version) {
      // Whoever wrote that may have moved it.
      known.version = version;
      known.place = undefined;
    }
  }

  committed(batch: CommitBatch): void {
    const known = this.#partitions.get(batch.fence.partition);
    if (known === undefined) return;
    const { entities } = known;
    for (const { entity, version, count } of batch.records) {
      const one = entities.get(entity);
      // Whoever is not known has an unknown place too, unless this is its beginning.
      if (one === undefined)
        this.#add(entities, entity, new KnownEntity(version + count - 1, version === 1 ? null : undefined));
      else one.version = version + count - 1;
    }
    for (const { entity, class: kind, createdAtMs, workflow } of batch.headers) {
      const one = entities.get(entity);
      // What has ended is hardly written to again.
      if (kind !== "open") this.#drop(entities, entity);
      else if (one !== undefined) one.place = placeOf(kind, createdAtMs, workflow);
    }
    for (const entity of batch.purge) this.#drop(entities, entity);
    for (const { entity } of batch.cut ?? []) this.#drop(entities, entity);
    const last = batch.consumed === null ? undefined : idsOf(batch.consumed).at(-1);
    if (last === undefined) return;
    const start = startOf(batch.consumed!);
    // Behind a gap something older is left.
    known.consumedUpTo = start === "0" || start === known.consumedUpTo ? last : "";
  }

  #add(entities: Map<EntityKey, KnownEntity>, entity: EntityKey, known: KnownEntity): void {
    if (this.#size >= MOST_KNOWN) {
      // Only of its own partition: the others have theirs.
      for (const [oldest] of entities) {
        this.#drop(entities, oldest);
        break;
      }
    }
    if (this.#size >= MOST_KNOWN) return;
    entities.set(entity, known);
    this.#size++;
  }

  #drop(entities: Map<EntityKey, KnownEntity>, entity: EntityKey): void {
    if (entities.delete(entity)) this.#size--;
  }
}

/** As commit.lua and the hash `places` have it. */
export function placeOf(kind: string, createdAtMs: number, workflow: string): string {
  return `${kind} ${createdAtMs} ${workflow}`;
}
