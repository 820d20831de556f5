import { entityId, entityKind } from "../core/entity.ts";
import { sinceRenewal } from "../core/fold.ts";
import type { Machine } from "../core/machine.ts";
import type { Message } from "../core/message.ts";
import type { Host } from "../host/host.ts";
import type { Archive } from "../store/archive.ts";
import type { DeadLetter, Header, JournalRecord, Store, StoredRecord } from "../store/contract.ts";

/** An id that was drawn for this very start: nobody can have used it before. */
const DRAWN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/;
/** How long an archive may take to say whether it knows something, and how long it is left alone when it does not. */
const ANSWER_MS = 2_000;
const TROUBLE_MS = 2_000;
const MAX_LETTERS = 500;

/** Everything the archive has of an entity. */
export interface Recalled {
  readonly records: readonly JournalRecord[];
  readonly header: Header | null;
  readonly letters: readonly DeadLetter[];
  readonly values: readonly StoredRecord[];
}

const NOTHING: Recalled = { records: [], header: null, letters: [], values: [] };

/**
 * Whether a message may be meant for something that was removed here after it was shipped. What a worker has to say of
 * an execution that ended long ago means nothing any more; that a child has completed after all may open it again.
 */
export function mayBeRecalled(message: Message): boolean {
  const { body, to } = message;
  if (body.kind === "start") return !DRAWN_ID.test(entityId(to));
  return "request" in body || (body.kind === "childEnded" && body.status === "completed");
}

/** Clocks of clients differ. */
const SKEW_MS = 60_000;

/**
 * Whether a start is so young that whatever its key has started is still here: it is kept for so long after its end. Not if
 * the key was drawn before this tenure began: the store may have been made again since, and what had ended was not brought back.
 */
export function isYoung({ body }: Message, tenureAtMs: number, nowMs: number, keepMs: number): boolean {
  if (body.kind !== "start" || body.keyAtMs === undefined) return false;
  const ageMs = nowMs - body.keyAtMs;
  return body.keyAtMs >= tenureAtMs + SKEW_MS && ageMs >= -SKEW_MS && ageMs < keepMs - SKEW_MS;
}

/** Brings entities back that are in the archive only. */
export class Recall {
  private readonly archive: Archive;
  private readonly host: Host;
  private readonly machines: ReadonlyMap<string, Machine>;
  private troubledUntilMs = -Infinity;

  constructor(archive: Archive, host: Host, machines: ReadonlyMap<string, Machine>) {
    this.archive = archive;
    this.machines = machines;
    this.host = host;
  }

  /** What the archive has of each of these; undefined for those of which it does not say, or not in time. */
  async find(entities: ReadonlySet<string>): Promise<ReadonlyMap<string, Recalled | undefined>> {
    const found = new Map<string, Recalled | undefined>([...entities].map((entity) => [entity, undefined]));
    if (this.host.monotonicMs() < this.troubledUntilMs) return found;
    try {
      const known = await this.within(this.archive.tips([...entities]));
      for (const entity of entities) {
        found.set(entity, known.has(entity) ? await this.within(this.everythingOf(entity)) : NOTHING);
      }
    } catch {
      this.troubledUntilMs = this.host.monotonicMs() + TROUBLE_MS;
    }
    return found;
  }

  /** Of a journal with renewals only what is needed: the archive keeps it from its beginning. */
  async everythingOf(entity: string): Promise<Recalled> {
    const [[loaded], header, letters, values] = await Promise.all([
      this.archive.journal.load([{ partition: 0, entity, aboveVersion: 0 }]),
      this.archive.queries.header(0, entity),
      this.archive.queries.deadLetters({ entity, limit: MAX_LETTERS }),
      this.archive.scope(entity),
    ]);
    const machine = this.machines.get(entityKind(entity));
    const records = machine === undefined ? loaded!.records : sinceRenewal(machine, loaded!.records);
    return { records, header, letters: letters.items, values };
  }

  private async within<Result>(asked: Promise<Result>): Promise<Result> {
    const answered = new AbortController();
    const late = this.host.sleep(ANSWER_MS, answered.signal).then((): never => {
      throw new Error("the archive does not answer");
    });
    late.catch(() => {});
    try {
      return await Promise.race([asked, late]);
    } finally {
      answered.abort("answered");
    }
  }
}

/** Values that are put into a store at a time: what a large execution has written down is more than one call can take. */
const MOST_VALUES = 1000;

export async function putValues(store: Store, values: readonly StoredRecord[]): Promise<void> {
  for (let from = 0; from < values.length; from += MOST_VALUES)
    await store.records.put(values.slice(from, from + MOST_VALUES));
}
