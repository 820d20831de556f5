import type { AppendOutcome, Inbox, Outgoing, Position, ReadRequest, ReadResult, Reply } from "../../store/contract.ts";
import { columns, rows, type Statement } from "./database.ts";
import { packed } from "./encoding.ts";
import { Gathering } from "./gathering.ts";
import type { Postgres } from "./postgres.ts";
import { wakeKey } from "./wake-ups.ts";

const DRIVER = "postgres";

const SQL = {
  append: `
    insert into inbox (partition, text)
    select partition, text
    from unnest($1::integer[], (string_to_array($2, $3))[2:]) with ordinality as message (partition, text, place)
    order by place`,
  // Counts no further than it has to.
  size: `
    select partition, (select count(*) from (select from inbox where partition = asked.partition limit $2) as counted) as size
    from unnest($1::integer[]) as asked (partition)`,
  // Never "id > the last one": a slow sender's smaller id may become visible after a greater one.
  read: `
    select request.partition, message.id, message.text
    from unnest($1::integer[], $2::integer[]) with ordinality as request (partition, most, place)
    cross join lateral (
      select id, text from inbox
      where partition = request.partition and id not in (select unnest($3::bigint[])) order by id limit request.most
    ) as message
    order by request.place, message.id`,
  takeReplies: `delete from replies where process = $1 returning id, process, request, text`,
};

interface MessageRow {
  readonly partition: number;
  readonly id: number;
  readonly text: string;
}

export class PostgresInbox implements Inbox {
  readonly #postgres: Postgres;
  readonly #appends: Gathering<Outgoing, AppendOutcome>;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
    this.#appends = new Gathering((messages) => this.#append(messages));
  }

  async append(messages: readonly Outgoing[]): Promise<readonly AppendOutcome[]> {
    return messages.length === 0 ? [] : this.#appends.ask(messages);
  }

  async read(requests: readonly ReadRequest[], waitMs: number): Promise<readonly ReadResult[]> {
    const keys = requests.map(({ partition }) => wakeKey.inbox(partition));
    const found = await this.#postgres.wakeUps.until(keys, waitMs, async () => {
      const results = await this.#read(requests);
      return results.some(({ messages }) => messages.length > 0) ? results : undefined;
    });
    return found ?? requests.map((request) => resultOf(request, []));
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
    const inFlight = requests.flatMap(({ after }) => (after === null ? [] : idsOf(after)));
    const values = [...columns(requests, "partition", "limit"), inFlight];
    const found = await rows<MessageRow>(this.#postgres.database, SQL.read, values);
    const byPartition = Map.groupBy(found, ({ partition }) => partition);
    return requests.map((request) => resultOf(request, byPartition.get(request.partition) ?? []));
  }
}

/** Appends what may not be refused any more. */
export function posting(messages: readonly Pick<Outgoing, "partition" | "text">[]): Statement {
  return { sql: SQL.append, values: [...columns(messages, "partition"), ...packed(messages.map(({ text }) => text))] };
}

export function idsOf(position: Position): readonly number[] {
  if (position.driver !== DRIVER) throw new Error(`a position of ${position.driver}`);
  return position.value as readonly number[];
}

/** As many as fit; the first is always given, since one too long for every reader would block its partition for ever. */
function resultOf({ partition, maxChars }: ReadRequest, found: readonly MessageRow[]): ReadResult {
  let chars = 0;
  const end = found.findIndex(({ text }, i) => (chars += text.length) > maxChars && i > 0);
  const given = end === -1 ? found : found.slice(0, end);
  return {
    partition,
    messages: given.map(({ text }) => text),
    position: { driver: DRIVER, value: given.map(({ id }) => id) },
  };
}
