import { fitting, type Handed, type HandOver } from "../../store/hand-over.ts";
import type { AppendOutcome, Inbox, Outgoing, Position, ReadRequest, ReadResult, Reply } from "../../store/contract.ts";
import { type Found, ofMost, ReadSize } from "../../store/read-size.ts";
import { columns, rows, type Statement } from "./database.ts";
import { packed, unpacked } from "./encoding.ts";
import { Gathering } from "./gathering.ts";
import { textsIn } from "./packs.ts";
import type { Postgres } from "./postgres.ts";
import { wakeKey } from "./wake-ups.ts";

const DRIVER = "postgres";

export const SQL = {
  // In the order given: what is unnested comes in that order, and nothing else is joined to it.
  append: `
    insert into inbox (partition, text) select * from unnest($3::integer[], ${unpacked("$2")})`,
  // Counts no further than it has to.
  size: `
    select partition, (select count(*) from (select from inbox where partition = asked.partition limit $2) as counted) as size
    from unnest($1::integer[]) as asked (partition)`,
  // Never "id > the last one": a slow sender's smaller id may become visible after a greater one.
  read: `
    select request.partition, message.id, message.text, message.size, message.taken
    from unnest($1::integer[], $2::integer[]) with ordinality as request (partition, most, place)
    cross join lateral (
      select id, text, size, taken from inbox
      where partition = request.partition and id not in (select unnest($3::bigint[])) order by id limit request.most
    ) as message
    order by request.place, message.id`,
  takeReplies: `delete from replies where process = $1 returning id, process, request, text`,
};

interface MessageRow {
  readonly partition: number;
  readonly id: number;
  readonly text: string;
  /** How many messages it is, and how many of them were taken before. */
  readonly size: number;
  readonly taken: number;
}

/** The first messages of a row, where all of them did not fit. */
export interface Part {
  readonly id: number;
  readonly taken: number;
  readonly count: number;
}

/** What a read has taken: from the table, and from the hands of workers in this process. */
interface Taken {
  readonly ids: readonly number[];
  readonly part?: Part;
  readonly handed: readonly Handed[];
}

export class PostgresInbox implements Inbox {
  readonly #postgres: Postgres;
  readonly #handOver: HandOver;
  readonly #appends: Gathering<Outgoing, AppendOutcome>;
  readonly #size = new ReadSize();

  constructor(postgres: Postgres, handOver: HandOver) {
    this.#postgres = postgres;
    this.#handOver = handOver;
    this.#appends = new Gathering((messages) => this.#append(messages));
  }

  async append(messages: readonly Outgoing[]): Promise<readonly AppendOutcome[]> {
    return messages.length === 0 ? [] : this.#appends.ask(messages);
  }

  async read(requests: readonly ReadRequest[], waitMs: number): Promise<readonly ReadResult[]> {
    const keys = requests.map(({ partition }) => wakeKey.inbox(partition));
    const attempt = async (): Promise<readonly ReadResult[] | undefined> => {
      const results = this.#atHand(requests, keys) ?? (await this.#look(requests, keys));
      return results.some(({ messages }) => messages.length > 0) ? results : undefined;
    };
    const quietMs = this.#isAnyHanded(requests) ? 0 : this.#postgres.wakeUps.quietMs(keys);
    const read = (): Promise<readonly ReadResult[] | undefined> =>
      this.#postgres.wakeUps.until(keys, waitMs, attempt, quietMs);
    const found = await (waitMs > 0 ? this.#handOver.whileReading(requests, read) : read());
    return found ?? requests.map((request) => this.#resultOf(request, []));
  }

  async replies(process: string, waitMs: number): Promise<readonly Reply[]> {
    const { database, wakeUps } = this.#postgres;
    const found = await wakeUps.until([wakeKey.replies(process)], waitMs, async () => {
      const taken = await rows<Reply & { readonly id: number }>(database, SQL.takeReplies, [process]);
      return taken.length > 0 ? taken.toSorted((a, b) => a.id - b.id) : undefined;
    });
    return (found ?? []).map(({ process, request, text }) => ({ process, request, text }));
  }

  async #append(messages: readonly Outgoing[]): Promise<readonly AppendOutcome[]> {
    const { database, wakeUps } = this.#postgres;
    const outcomes = await this.#admit(messages);
    const admitted = messages.filter((_, i) => outcomes[i] === "appended");
    if (admitted.length > 0) {
      const { sql, values } = posting(admitted);
      await database.run(sql, values);
    }
    wakeUps.announce(admitted.map(({ partition }) => wakeKey.inbox(partition)));
    return outcomes;
  }

  /** Senders do not wait for each other, so two at once may go over the limit by what they carry. */
  async #admit(messages: readonly Outgoing[]): Promise<readonly AppendOutcome[]> {
    const { database, maxInbox } = this.#postgres;
    const asked = [...new Set(messages.filter(({ start }) => start).map(({ partition }) => partition))];
    if (asked.length === 0) return messages.map(() => "appended");
    const known = await rows<{ partition: number; size: number }>(database, SQL.size, [asked, maxInbox]);
    const sizes = new Map(known.map(({ partition, size }) => [partition, size]));
    return messages.map(({ partition, start }) => {
      const size = sizes.get(partition) ?? 0;
      if (start && size >= maxInbox) return "overloaded";
      sizes.set(partition, size + 1);
      return "appended";
    });
  }

  async #read(requests: readonly ReadRequest[]): Promise<readonly ReadResult[]> {
    const inFlight = requests.flatMap(({ after }) => takenBefore(after).ids);
    const most = requests.map(({ limit }) => this.#size.most(limit));
    const values = [...columns(requests, "partition"), most, inFlight];
    const rowsFound = await rows<MessageRow>(this.#postgres.database, SQL.read, values);
    const byPartition = Map.groupBy(rowsFound, ({ partition }) => partition);
    const found = requests.map(({ partition, after }) =>
      beyond(takenBefore(after).part, byPartition.get(partition) ?? []),
    );
    const results = requests.map((request, i) =>
      ofMost(this.#resultOf(request, found[i]!), found[i]!.length, most[i]!, request.limit),
    );
    this.#size.note(results.map(({ position }, i) => soMany(position, found[i]!.length)));
    return results;
  }

  #look(requests: readonly ReadRequest[], keys: readonly string[]): Promise<readonly ReadResult[]> {
    return this.#postgres.wakeUps.look(
      keys,
      () => this.#read(requests),
      // There may be more where there was something: it may not have fitted.
      (results) => keys.filter((_, i) => results[i]!.messages.length === 0),
    );
  }

  /** Results that were handed over, without a look at the table, as long as nobody says that there is something. */
  #atHand(requests: readonly ReadRequest[], keys: readonly string[]): readonly ReadResult[] | undefined {
    if (this.#postgres.wakeUps.quietMs(keys) === 0 || !this.#isAnyHanded(requests)) return undefined;
    return requests.map((request) => ({ ...this.#resultOf(request, []), isPartial: true }));
  }

  #isAnyHanded(requests: readonly ReadRequest[]): boolean {
    return requests.some((request) => this.#given(request).length > 0);
  }

  #given(request: ReadRequest): readonly Handed[] {
    return this.#handOver.given(request, takenBefore(request.after).handed);
  }

  #resultOf(request: ReadRequest, found: readonly MessageRow[]): ReadResult {
    const handed = this.#given(request);
    const near = handed.map(({ settlement }) => settlement.text);
    const texts = found.map(messagesIn);
    const messages = fitting(request, [...near, ...texts.flat()]);
    let left = Math.max(0, messages.length - near.length);
    let whole = 0;
    while (whole < found.length && texts[whole]!.length <= left) left -= texts[whole++]!.length;
    const ids = found.slice(0, whole).map(({ id }) => id);
    const position = (part?: Part): Position => {
      const taken: Taken = { ids, handed, ...(part !== undefined && { part }) };
      return { driver: DRIVER, value: taken };
    };
    const { partition } = request;
    if (left === 0) return { partition, messages, position: position() };
    // Of a row that holds many some do not fit. They come with the next read; it is taken apart only if nothing else was read.
    const { id, taken } = found[whole]!;
    const isPartial = true;
    if (messages.length > left)
      return { partition, messages: messages.slice(0, -left), position: position(), isPartial };
    return { partition, messages, position: position({ id, taken, count: left }), isPartial };
  }
}

/** Of a row whose first messages are in flight the rest, whether or not the commit that consumes them has arrived. */
function beyond(part: Part | undefined, found: readonly MessageRow[]): readonly MessageRow[] {
  if (part === undefined) return found;
  const from = part.taken + part.count;
  return found.map((row) => (row.id === part.id ? { ...row, taken: Math.max(row.taken, from) } : row));
}

function messagesIn({ text, size, taken }: MessageRow): readonly string[] {
  return size === 1 ? [text] : textsIn(text).slice(taken);
}

/** Appends what may not be refused any more. */
export function posting(messages: readonly Pick<Outgoing, "partition" | "text">[]): Statement {
  return { sql: SQL.append, values: [...packed(messages.map(({ text }) => text)), ...columns(messages, "partition")] };
}

export function idsOf(position: Position): readonly number[] {
  return takenBefore(position).ids;
}

export function partOf(position: Position | null): Part | undefined {
  return takenBefore(position).part;
}

export function handedOf(position: Position | null): readonly Handed[] {
  return takenBefore(position).handed;
}

function takenBefore(after: Position | null): Taken {
  if (after === null) return { ids: [], handed: [] };
  if (after.driver !== DRIVER) throw new Error(`a position of ${after.driver}`);
  return after.value as Taken;
}

/** What is handed over comes first: what has no place beside it says nothing of its own length. */
function soMany(position: Position, found: number): Found {
  const { ids, part, handed } = takenBefore(position);
  // Whoever takes a part of a row wants no more, however much there is.
  if (part !== undefined || handed.length > 0) return { found: ids.length, taken: ids.length };
  return { found, taken: ids.length };
}
