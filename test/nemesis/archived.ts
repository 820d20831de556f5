import type { Archive, Progress } from "../../src/store/archive.ts";
import type { Header, JournalRecord, Page } from "../../src/store/contract.ts";

const PAGE = 500;

/** All that an archive has at a moment: what is left when the store in front of it is lost. */
export interface Archived {
  readonly progress: readonly Progress[];
  /** Definitions that stand under a name. */
  readonly named: ReadonlySet<string>;
  /** By entity. */
  readonly headers: ReadonlyMap<string, Header>;
  /** By entity, in the order of their versions. */
  readonly records: ReadonlyMap<string, readonly JournalRecord[]>;
}

export async function readArchive(archive: Archive): Promise<Archived> {
  const headers = new Map<string, Header>();
  const records = new Map<string, readonly JournalRecord[]>();
  for (const header of await allPages((page) => archive.queries.headers(page))) headers.set(header.entity, header);
  for (const entity of headers.keys()) {
    const [loaded] = await archive.journal.load([{ partition: 0, entity, aboveVersion: 0 }]);
    records.set(entity, loaded!.records);
  }
  const named = new Set((await archive.names()).flatMap(({ versions }) => versions.map(({ hash }) => hash)));
  return { progress: await archive.progress(), named, headers, records };
}

export async function allPages<Item>(
  read: (page: { limit: number; cursor?: string }) => Promise<Page<Item>>,
): Promise<readonly Item[]> {
  const found: Item[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Item> = await read({ limit: PAGE, ...(cursor !== null && { cursor }) });
    found.push(...page.items);
    ({ cursor } = page);
  } while (cursor !== null);
  return found;
}
