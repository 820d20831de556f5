import { DEFINITION_SCOPE } from "../core/entity.ts";
import type { Archive } from "../store/archive.ts";
import type { Store, StoredRecord } from "../store/contract.ts";

const PAGE = 500;
/** More than a page of names is looked through every so many times only. */
const EVERY = 5;
/** Definitions that are known to be kept. */
const MAX_KNOWN = 10_000;

/** The published names, and which definitions the archive has. */
export class ShippedNames {
  private readonly store: Store;
  private readonly archive: Archive;
  private readonly kept = new Set<string>();
  /** What stood on top of each name when it was last shipped. */
  private tops = new Map<string, string>();
  private turn = 0;

  constructor(store: Store, archive: Archive) {
    this.store = store;
    this.archive = archive;
  }

  isKept(hash: string): boolean {
    return this.kept.has(hash);
  }

  keep(definitions: readonly StoredRecord[]): void {
    if (this.kept.size > MAX_KNOWN) this.kept.clear();
    for (const { hash } of definitions) this.kept.add(hash);
  }

  async ship(): Promise<void> {
    if (this.tops.size > PAGE && this.turn++ % EVERY !== 0) return;
    const tops = new Map<string, string>();
    let cursor: string | undefined;
    do {
      const page = await this.store.queries.workflows({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
      for (const { name, version, hash } of page.items) {
        // No workflow's: the list of keys stands there, and a key that was revoked must not come back.
        if (name.includes("/")) continue;
        const top = `${version} ${hash}`;
        if (this.tops.get(name) !== top) await this.shipName(name);
        tops.set(name, top);
      }
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined);
    if ([...this.tops.keys()].some((name) => !tops.has(name)) || this.tops.size === 0) {
      await this.archive.keepNames([...tops.keys()]);
    }
    this.tops = tops;
  }

  private async shipName(name: string): Promise<void> {
    const versions = await this.store.records.versions(name);
    const keys = versions
      .map(({ hash }) => ({ scope: DEFINITION_SCOPE, hash }))
      .filter(({ hash }) => !this.isKept(hash));
    const texts = await this.store.records.get(keys);
    const found = keys.flatMap((key, i) => (typeof texts[i] === "string" ? [{ ...key, text: texts[i] }] : []));
    await this.archive.keep(found);
    this.keep(found);
    await this.archive.keepPublished(name, versions);
  }
}
