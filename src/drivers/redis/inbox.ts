import type { AppendOutcome, Inbox, Outgoing, Position, ReadRequest, ReadResult, Reply } from "../../store/contract.ts";
import { fitting, type Handed, type HandOver } from "../../store/hand-over.ts";
import { type Found, ofMost, ReadSize } from "../../store/read-size.ts";
import type { Line } from "./connection.ts";
import { Gathering } from "./gathering.ts";
import { handedOf, idsOf, nextFrom, positionOf } from "./position.ts";
import { checkPartition, isFull, keyOf, look, type Redis, run } from "./redis.ts";
import { scripts } from "./scripts.ts";

const MAX_REPLIES = "10000";
/** Messages in one script, as many as one may take its time for. */
const MOST_APPENDED = 200;
/** So many messages in one read are a sign that the next ones need not be waited for. */
const MANY_READ = 8;
/** How long results may be handed over past the inbox before somebody looks into it. */
const LOOK_BESIDE_MS = 10;

/** Its id, and its fields with their values. */
type StreamEntry = readonly [id: string, fields: readonly string[]];

export class RedisInbox implements Inbox {
  readonly #redis: Redis;
  readonly #handOver: HandOver;
  readonly #appending: Gathering<Outgoing, AppendOutcome>;
  readonly #size = new ReadSize();
  /** Messages come one by one, and whoever reads waits for them. */
  #isQuiet = false;
  #lookedAtMs = -Infinity;

  constructor(redis: Redis, handOver: HandOver) {
    this.#redis = redis;
    this.#handOver = handOver;
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
    const starts = requests.map(({ after }) => nextFrom(after));
    const most = this.#size.most(Math.max(...requests.map((request) => request.limit)));
    const limit = String(most);
    const { age } = this.#redis.connection;
    type Answer = readonly (readonly [stream: string, entries: readonly StreamEntry[]])[] | null;
    const resultsOf = (answer: Answer): readonly ReadResult[] | undefined => {
      const inStreams = new Map(answer);
      const count = inStreams.values().reduce((sum, entries) => sum + entries.length, 0);
      this.#isQuiet = count < (this.#isQuiet ? MANY_READ : 1);
      this.#lookedAtMs = this.#redis.host.monotonicMs();
      const found = streams.map((stream) => inStreams.get(stream) ?? []);
      const results = requests.map((request, i) =>
        ofMost(this.#resultOf(request, age, found[i]!), found[i]!.length, most, request.limit),
      );
      this.#size.note(results.map(({ position }, i) => soMany(position, found[i]!.length)));
      return results.some(({ messages }) => messages.length > 0) ? results : undefined;
    };
    // No script: all texts would go through it, and each inbox would be a call of its own.
    const attempt = async (): Promise<readonly ReadResult[] | undefined> =>
      this.#atHand(requests, age) ??
      resultsOf(await look<Answer>(this.#redis, "XREAD", "COUNT", limit, "STREAMS", ...streams, ...starts));
    const wait = (line: Line, waitMs: number): Promise<unknown> =>
      line.send(["XREAD", "COUNT", limit, "BLOCK", String(Math.ceil(waitMs)), "STREAMS", ...streams, ...starts]);
    const brought = (answer: unknown): readonly ReadResult[] | undefined => resultsOf(answer as Answer);
    const isQuiet = this.#isQuiet && !this.#isAnyHanded(requests);
    const read = (): Promise<readonly ReadResult[] | undefined> =>
      this.#redis.waiting.until(waitMs, { keys: streams, isQuiet, attempt, wait, brought });
    const found = await (waitMs > 0 ? this.#handOver.whileReading(requests, read) : read());
    return found ?? requests.map((request) => this.#resultOf(request, age, []));
  }

  /** Results that were handed over, without a look at the streams: not for long, as others have something to say too. */
  #atHand(requests: readonly ReadRequest[], age: number): readonly ReadResult[] | undefined {
    const isLookDue = this.#redis.host.monotonicMs() - this.#lookedAtMs > LOOK_BESIDE_MS;
    if (isLookDue || !this.#isAnyHanded(requests)) return undefined;
    return requests.map((request) => ({ ...this.#resultOf(request, age, []), isPartial: true }));
  }

  #isAnyHanded(requests: readonly ReadRequest[]): boolean {
    return requests.some((request) => this.#given(request).length > 0);
  }

  #given(request: ReadRequest): readonly Handed[] {
    return this.#handOver.given(request, handedOf(request.after));
  }

  #resultOf(request: ReadRequest, age: number, entries: readonly StreamEntry[]): ReadResult {
    const handed = this.#given(request);
    const near = handed.map(({ settlement }) => settlement.text);
    const messages = fitting(request, [...near, ...entries.map(([, fields]) => fields[1]!)]);
    const ids = entries.slice(0, Math.max(0, messages.length - near.length)).map(([id]) => id);
    const position = positionOf({ from: nextFrom(request.after), age, ids, handed });
    return { partition: request.partition, messages, position };
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
    this.#redis.waiting.hint(inboxKeys(this.#redis, partitionsOf(messages)));
    const outcomes = await appending;
    return outcomes.map((outcome) => (outcome === 1 ? "appended" : "overloaded"));
  }
}

/** By which whoever reads from one of these inboxes waits. */
export function inboxKeys(redis: Redis, partitions: ReadonlySet<number>): readonly string[] {
  return [...partitions].map((partition) => keyOf(redis, "inbox", partition));
}

export function partitionsOf(to: readonly { readonly partition: number }[]): ReadonlySet<number> {
  return new Set(to.map(({ partition }) => partition));
}

/** What is handed over comes first: what has no place beside it says nothing of its own length. */
function soMany(position: Position, found: number): Found {
  const { length } = idsOf(position);
  return { found: handedOf(position).length > 0 ? length : found, taken: length };
}
