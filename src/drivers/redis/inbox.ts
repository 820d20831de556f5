import type { AppendOutcome, Inbox, Outgoing, Position, ReadRequest, ReadResult, Reply } from "../../store/contract.ts";
import type { Line } from "./connection.ts";
import { Gathering } from "./gathering.ts";
import { checkPartition, isFull, keyOf, look, type Redis, run } from "./redis.ts";
import { scripts } from "./scripts.ts";

const DRIVER = "redis";
const MAX_REPLIES = "10000";
/** Messages in one script, as many as one may take its time for. */
const MOST_APPENDED = 200;
/** So many messages in one read are a sign that the next ones need not be waited for. */
const MANY_READ = 8;

/** Its id, and its fields with their values. */
type StreamEntry = readonly [id: string, fields: readonly string[]];

export class RedisInbox implements Inbox {
  readonly #redis: Redis;
  readonly #appending: Gathering<Outgoing, AppendOutcome>;
  /** Messages come one by one, and whoever reads waits for them. */
  #isQuiet = false;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#appending = new Gathering(MOST_APPENDED, (messages) => this.#appendAll(messages));
  }

  async append(messages: readonly Outgoing[]): Promise<readonly AppendOutcome[]> {
    if (messages.length === 0) return [];
    for (const { partition } of messages) checkPartition(this.#redis, partition);
    return this.#appending.add(messages);
  }

  async #appendAll(messages: readonly Outgoing[]): Promise<readonly AppendOutcome[]> {
    if (!messages.some(({ start }) => start)) return this.#append(messages, scripts.append);
    try {
      return await this.#append(messages, scripts.appendStarts);
    } catch (error) {
      if (!isFull(error)) throw error;
      const others = messages.filter(({ start }) => !start);
      if (others.length > 0) await this.#append(others, scripts.append);
      return messages.map(({ start }) => (start ? "full" : "appended"));
    }
  }

  async read(requests: readonly ReadRequest[], waitMs: number): Promise<readonly ReadResult[]> {
    const streams = requests.map(({ partition }) => keyOf(this.#redis, "inbox", partition));
    const starts = requests.map(({ after }) => lastId(after) ?? "0");
    const limit = String(Math.max(...requests.map((request) => request.limit)));
    type Answer = Readonly<Record<string, readonly StreamEntry[]>> | null;
    const resultsOf = (answer: Answer): readonly ReadResult[] | undefined => {
      const count = Object.values(answer ?? {}).reduce((sum, entries) => sum + entries.length, 0);
      this.#isQuiet = count < (this.#isQuiet ? MANY_READ : 1);
      if (count === 0) return undefined;
      return requests.map((request, i) => resultOf(request, answer![streams[i]!] ?? []));
    };
    // No script: all texts would go through it, and each inbox would be a call of its own.
    const attempt = async (): Promise<readonly ReadResult[] | undefined> =>
      resultsOf(await look<Answer>(this.#redis, "XREAD", "COUNT", limit, "STREAMS", ...streams, ...starts));
    const wait = (line: Line, waitMs: number): Promise<unknown> =>
      line.send(["XREAD", "COUNT", limit, "BLOCK", String(Math.ceil(waitMs)), "STREAMS", ...streams, ...starts]);
    const brought = (answer: unknown): readonly ReadResult[] | undefined => resultsOf(answer as Answer);
    const wanted = { keys: streams, isQuiet: this.#isQuiet, attempt, wait, brought };
    const found = await this.#redis.waiting.until(waitMs, wanted);
    return found ?? requests.map((request) => resultOf(request, []));
  }

  async replies(process: string, waitMs: number): Promise<readonly Reply[]> {
    const key = keyOf(this.#redis, "replies", process);
    // The one who waits takes them in the same step: nobody else can come between.
    let taken: readonly string[] | undefined;
    const attempt = async (): Promise<readonly string[] | undefined> => {
      taken ??= await run<readonly string[]>(this.#redis, scripts.replies, process, MAX_REPLIES);
      return taken.length > 0 ? taken : (taken = undefined);
    };
    const wait = async (line: Line, waitMs: number): Promise<void> => {
      const command = ["BLMPOP", String(waitMs / 1000), "1", key, "LEFT", "COUNT", MAX_REPLIES];
      const answer = await line.send<readonly [string, readonly string[]] | null>(command);
      taken = answer?.[1];
    };
    const texts = await this.#redis.waiting.until(waitMs, { keys: [], attempt, wait });
    return (texts ?? []).map((text) => JSON.parse(text) as Reply);
  }

  async #append(messages: readonly Outgoing[], script: typeof scripts.append): Promise<readonly AppendOutcome[]> {
    const values = messages.flatMap(({ partition, start, text }) => [partition, start ? "1" : "0", text]);
    const appending = run<readonly number[]>(this.#redis, script, this.#redis.maxInbox, ...values);
    this.#redis.waiting.hint(inboxKeys(this.#redis, messages));
    const outcomes = await appending;
    return outcomes.map((outcome) => (outcome === 1 ? "appended" : "overloaded"));
  }
}

export function idsOf(position: Position): readonly string[] {
  if (position.driver !== DRIVER) throw new Error(`a position of ${position.driver}`);
  return position.value as readonly string[];
}

/** By which whoever reads from one of these inboxes waits. */
export function inboxKeys(redis: Redis, to: readonly { readonly partition: number }[]): ReadonlySet<string> {
  return new Set(to.map(({ partition }) => keyOf(redis, "inbox", partition)));
}

/** Entries of a stream become visible in the order of their ids, so the last one names the place. */
function lastId(after: Position | null): string | undefined {
  return after === null ? undefined : idsOf(after).at(-1);
}

/** As many as fit; the first is always given, since one too long for every reader would block its partition for ever. */
function resultOf({ partition, limit, maxChars }: ReadRequest, entries: readonly StreamEntry[]): ReadResult {
  const texts = entries.slice(0, limit).map(([, fields]) => fields[1]!);
  let chars = 0;
  const end = texts.findIndex((text, i) => (chars += text.length) > maxChars && i > 0);
  const count = end === -1 ? texts.length : end;
  return {
    partition,
    messages: texts.slice(0, count),
    position: { driver: DRIVER, value: entries.slice(0, count).map(([id]) => id) },
  };
}
