import type { EntityKey, Records } from "./contract.ts";

/** How a snapshot says that it is so many records of its own, which hold its text one behind the other. */
export function nameParts(hashes: readonly string[]): string {
  return `@${hashes.join(",")}`;
}

/** The hashes of these records; undefined if the text is all there is. */
export function partsOf(text: string): readonly string[] | undefined {
  return text.startsWith("@") ? text.slice(1).split(",") : undefined;
}

/** What a snapshot says. It is a cache: null, if some of it is gone, is not missed. */
export async function snapshotText(records: Records, entity: EntityKey, text: string): Promise<string | null> {
  const hashes = partsOf(text);
  if (hashes === undefined) return text;
  const parts = await records.get(hashes.map((hash) => ({ scope: entity, hash })));
  return parts.includes(null) ? null : parts.join("");
}
