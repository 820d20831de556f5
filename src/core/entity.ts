/** The name of a unit of state: `kind/id`. */
export function entityKey(kind: string, id: string): string {
  return `${kind}/${id}`;
}

export function entityKind(key: string): string {
  return key.slice(0, key.indexOf("/"));
}

export function entityId(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

const CALLED = /^execution\/[0-9a-f]{32}$/;

/**
 * Whether an execution was called by another, as far as its name tells: those are called by a hash, and what comes from
 * outside has hyphens. For counting and choosing; what depends on it looks into the execution.
 */
export function isCalled(key: string): boolean {
  return CALLED.test(key);
}

/** What definitions are stored under: they belong to no entity, and many share one. */
export const DEFINITION_SCOPE = "definition";

/** Which partition an entity lives in. The mapping is part of the stored data: it never changes (FNV-1a, 32 bits). */
export function partitionOf(key: string, partitionCount: number): number {
  if (partitionCount === 1) return 0;
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) {
    hash ^= key.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  return (hash >>> 0) % partitionCount;
}
