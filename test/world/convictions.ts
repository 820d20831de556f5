import type { World } from "../../src/simulator/history.ts";

interface Suspicion {
  readonly next: string | null;
  readonly deaths: readonly (readonly [entity: string, count: number])[];
}

/** As many owners have to die over an entity before it is left alone. */
const GUILTY = 3;

export interface Convictions {
  /** Entities that were left alone because owners died while they handled them. */
  readonly guilty: readonly string[];
  /** Those of them of which it is not so. */
  readonly wrongly: readonly string[];
}

/**
 * After three lives without a commit an owner names each thing before it touches it; what three of them had named when
 * they died is left alone. We kill without regard to what is being done, so it may hit anybody: by right, and then the
 * world does not end as it should.
 */
export function convictionsIn({ history }: World): Convictions {
  const guilty = new Set<string>();
  const died = new Map<string, number>();
  /** By partition. */
  const named = new Map<number, string>();
  for (const entry of history) {
    if (entry.kind === "acquired") {
      const last = named.get(entry.partition);
      if (last !== undefined) died.set(last, (died.get(last) ?? 0) + 1);
      named.delete(entry.partition);
    }
    if (entry.kind !== "commit") continue;
    const suspicion = entry.suspect === null ? undefined : (JSON.parse(entry.suspect) as Suspicion);
    if (suspicion?.next == null) named.delete(entry.partition);
    else named.set(entry.partition, suspicion.next);
    for (const [entity, count] of suspicion?.deaths ?? []) if (count >= GUILTY) guilty.add(entity);
  }
  return { guilty: [...guilty], wrongly: [...guilty].filter((entity) => (died.get(entity) ?? 0) < GUILTY) };
}
