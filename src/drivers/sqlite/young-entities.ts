import type { CommitBatch, EntityKey, Header, JournalRecord, Loaded } from "../../store/contract.ts";

/** Entities in one generation; those of two are known. */
const MOST_YOUNG = 5_000;
/** Characters of all tails together; beyond it they begin anew. */
const MOST_TAIL_CHARS = 8 * 1024 * 1024;

interface Young {
  version: number;
  wakeAtMs: number | null;
  header: Header | null;
  /** Its records above this version are kept; undefined as long as nobody follows it, as with nearly all. */
  tailAbove: number | undefined;
  tail: JournalRecord[] | undefined;
}

/**
 * Entities that were made since the store was opened: nobody but this process writes to it, so what was committed of them
 * is known here. Whoever follows one need not ask the file after every commit, which would keep the event loop from
 * the commits themselves.
 */
export class YoungEntities {
  #young = new Map<EntityKey, Young>();
  #older = new Map<EntityKey, Young>();
  readonly #followed = new Set<Young>();
  #tailChars = 0;

  /** undefined = the file has to be asked. */
  version(entity: EntityKey): number | undefined {
    return this.#find(entity)?.version;
  }

  /** Whether it is known to be open. */
  isOpen(entity: EntityKey): boolean {
    return this.#find(entity)?.header?.class === "open";
  }

  /** undefined = the file has to be asked. */
  header(entity: EntityKey): Header | null | undefined {
    return this.#find(entity)?.header;
  }

  /** Somebody waits for what comes next: it is kept from now on. */
  follow(entity: EntityKey): void {
    const young = this.#find(entity);
    if (young === undefined || young.tailAbove !== undefined) return;
    young.tailAbove = young.version;
    this.#followed.add(young);
  }

  /** What was committed above a version; undefined = the file has to be asked. */
  tail(entity: EntityKey, aboveVersion: number): Loaded | undefined {
    const young = this.#find(entity);
    if (young?.tailAbove === undefined || young.tailAbove > aboveVersion) return undefined;
    const records = (young.tail ?? []).filter(({ version, count }) => version + count - 1 > aboveVersion);
    return { entity, snapshot: null, records, wakeAtMs: young.wakeAtMs };
  }

  committed({ records, headers, wakes, purge, cut }: CommitBatch): void {
    let header = 0;
    let wake = 0;
    // By their places: this is done once for all that a commit holds, and never often enough for iterators to cost nothing.
    for (let i = 0; i < records.length; i++) {
      const { entity } = records[i]!;
      const young = this.#append(records[i]!);
      // In the order of the records, as a rule: who was found is not looked for again.
      if (headers[header]?.entity === entity) note(young, headers[header++]!);
      if (wakes[wake]?.entity === entity) wakeAt(young, wakes[wake++]!.atMs);
    }
    for (; header < headers.length; header++) note(this.#find(headers[header]!.entity), headers[header]!);
    for (; wake < wakes.length; wake++) wakeAt(this.#find(wakes[wake]!.entity), wakes[wake]!.atMs);
    for (const { entity } of cut ?? []) this.#forget(entity);
    for (const entity of purge) this.#forget(entity);
  }

  /** A batch of which nobody knows what became of it. */
  doubt({ records, headers, wakes, purge, cut }: CommitBatch): void {
    for (const { entity } of records) this.#forget(entity);
    for (const { entity } of headers) this.#forget(entity);
    for (const { entity } of wakes) this.#forget(entity);
    for (const { entity } of cut ?? []) this.#forget(entity);
    for (const entity of purge) this.#forget(entity);
  }

  /** From now on the file is asked, and says that it is closed. */
  close(): void {
    this.#young.clear();
    this.#older.clear();
  }

  #append(record: JournalRecord): Young | undefined {
    const { entity, version, count } = record;
    let young = this.#find(entity);
    if (young === undefined) {
      // Of one that was there before it is not known when it wakes.
      if (version !== 1) return undefined;
      young = { version: 0, wakeAtMs: null, header: null, tailAbove: undefined, tail: undefined };
      this.#enter(entity, young);
    }
    young.version = version + count - 1;
    if (young.tailAbove === undefined) return young;
    (young.tail ??= []).push(record);
    this.#tailChars += record.text.length;
    if (this.#tailChars > MOST_TAIL_CHARS) this.#forgetTails();
    return young;
  }

  #enter(entity: EntityKey, young: Young): void {
    if (this.#young.size >= MOST_YOUNG) {
      for (const forgotten of this.#older.values()) this.#forgetTail(forgotten);
      this.#older = this.#young;
      this.#young = new Map();
    }
    this.#young.set(entity, young);
  }

  #find(entity: EntityKey): Young | undefined {
    return this.#young.get(entity) ?? this.#older.get(entity);
  }

  #forget(entity: EntityKey): void {
    const young = this.#find(entity);
    if (young === undefined) return;
    this.#forgetTail(young);
    this.#young.delete(entity);
    this.#older.delete(entity);
  }

  #forgetTails(): void {
    for (const young of this.#followed) this.#forgetTail(young);
  }

  #forgetTail(young: Young): void {
    if (!this.#followed.delete(young)) return;
    for (const { text } of young.tail ?? []) this.#tailChars -= text.length;
    young.tail = undefined;
    young.tailAbove = undefined;
  }
}

function note(young: Young | undefined, header: Header): void {
  if (young !== undefined) young.header = header;
}

function wakeAt(young: Young | undefined, atMs: number | null): void {
  if (young !== undefined) young.wakeAtMs = atMs;
}
