import assert from "node:assert/strict";
import type { AppendOutcome, Inbox, Outgoing, Position, ReadRequest, ReadResult, Reply } from "../../store/contract.ts";
import { StoredMessage } from "./memory-data.ts";
import { type Memory, partitionData } from "./memory.ts";

const DRIVER = "memory";
const NO_IDS: readonly number[] = [];

/** What a position of this driver holds. */
interface Taken {
  readonly ids: readonly number[];
  /** What the position named after which this was read: that batch may still be under way. */
  readonly before: readonly number[];
}

/** This part of a read is for starts, if there are so many: nobody waits for ever. */
const SHARE_OF_STARTS = 1 / 8;

export class MemoryInbox implements Inbox {
  readonly #memory: Memory;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async append(messages: readonly Outgoing[]): Promise<readonly AppendOutcome[]> {
    return messages.map((message) => this.appendAt(this.reserve(message.partition), message));
  }

  /** The first half of an append, which the simulator delays: a row has its id before it can be seen. */
  reserve(partition: number): number {
    partitionData(this.#memory, partition);
    return this.#memory.data.nextMessageId++;
  }

  /** The second half: the message becomes visible, possibly after messages with greater ids. */
  appendAt(id: number, message: Outgoing): AppendOutcome {
    const { faults, limits } = this.#memory;
    const { inbox } = partitionData(this.#memory, message.partition);
    if (message.start && faults.isFull) return "full";
    if (message.start && inbox.length >= limits.maxInbox) return "overloaded";
    insert(this.#memory, id, message);
    return "appended";
  }

  async read(requests: readonly ReadRequest[], waitMs: number): Promise<readonly ReadResult[]> {
    const keys = requests.map(({ partition }) => partitionData(this.#memory, partition).waitKey);
    const found = await this.#memory.waiters.until(keys, waitMs, () => {
      const results = requests.map((request) => readOne(this.#memory, request));
      return results.some(({ messages }) => messages.length > 0) ? results : undefined;
    });
    return found ?? requests.map(({ partition }) => ({ partition, messages: [], position: positionOf([]) }));
  }

  async replies(process: string, waitMs: number): Promise<readonly Reply[]> {
    const take = (): readonly Reply[] | undefined => {
      const { replies } = this.#memory.data;
      const waiting = replies.get(process);
      replies.delete(process);
      return waiting;
    };
    return (await this.#memory.waiters.until([replyKey(process)], waitMs, take)) ?? [];
  }
}

function readOne(memory: Memory, request: ReadRequest): ReadResult {
  const { partition, after, limit, maxChars } = request;
  const { inbox } = partitionData(memory, partition);
  // Not "ids beyond the greatest": one with a smaller id may have become visible since.
  const inFlight = after === null ? NO_IDS : skippedAfter(after);
  const chosen = choose(inbox, inFlight, limit);
  const messages: string[] = [];
  const values: unknown[] = [];
  const ids: number[] = [];
  let hasValues = false;
  let chars = 0;
  let isPartial = false;
  for (let i = 0; i < chosen.length; i++) {
    const { id, text, value, chars: more } = chosen[i]!;
    chars += more;
    // The first is always given: one too long for every reader would block its partition for ever.
    if (chars > maxChars && ids.length > 0) {
      isPartial = true;
      break;
    }
    ids.push(id);
    messages.push(text);
    values.push(value);
    hasValues ||= value !== undefined;
  }
  const position = positionOf(ids, after);
  return { partition, messages, position, ...(hasValues && { values }), ...(isPartial && { isPartial }) };
}

/**
 * What has begun goes on before something new does: of a flood of starts that were all begun at once, each would be out
 * of memory, or at least out of reach of the processor, whenever one of its steps is done.
 */
function choose(inbox: readonly StoredMessage[], inFlight: readonly number[], limit: number): readonly StoredMessage[] {
  const starts: StoredMessage[] = [];
  const others: StoredMessage[] = [];
  let next = 0;
  for (let i = 0; i < inbox.length; i++) {
    const message = inbox[i]!;
    if (others.length === limit) break;
    // Both are in the order of their ids.
    while (inFlight[next]! < message.id) next++;
    if (inFlight[next] === message.id) continue;
    const these = message.start ? starts : others;
    if (these.length < limit) these.push(message);
  }
  if (starts.length + others.length <= limit) return merged(starts, others);
  const share = Math.min(starts.length, Math.max(Math.ceil(limit * SHARE_OF_STARTS), limit - others.length));
  return merged(starts.slice(0, share), others.slice(0, limit - share));
}

function merged(starts: readonly StoredMessage[], others: readonly StoredMessage[]): readonly StoredMessage[] {
  if (starts.length === 0) return others;
  return others.length === 0 ? starts : [...starts, ...others].sort((a, b) => a.id - b.id);
}

/** Appends what may not be refused: mail, results, and what the store itself has to report. */
export function post(memory: Memory, partition: number, text: string): void {
  insertAt(memory, partition, new StoredMessage(memory.data.nextMessageId++, false, text, text.length));
}

/** The same with what nobody has written. */
export function postValue(memory: Memory, partition: number, value: unknown, chars: number): void {
  insertAt(memory, partition, new StoredMessage(memory.data.nextMessageId++, false, "", chars, value));
}

function insert(memory: Memory, id: number, outgoing: Outgoing): void {
  const { partition, start, text, message: value, messageChars: chars = text.length } = outgoing;
  insertAt(memory, partition, new StoredMessage(id, start, text, chars, value));
}

function insertAt(memory: Memory, partition: number, stored: StoredMessage): void {
  const { inbox, waitKey } = partitionData(memory, partition);
  let index = inbox.length;
  while (index > 0 && inbox[index - 1]!.id > stored.id) index--;
  if (index === inbox.length) inbox.push(stored);
  else inbox.splice(index, 0, stored);
  memory.waiters.wakeAll(waitKey);
}

/** Whether all messages that the position names are there. They are, unless the store has lost some. */
export function holds(memory: Memory, partition: number, position: Position | null): boolean {
  const named = new Set(position === null ? [] : idsOf(position));
  for (const { id } of partitionData(memory, partition).inbox) {
    if (named.size === 0) break;
    named.delete(id);
  }
  return named.size === 0;
}

/** Forgets exactly the messages that the position names. */
export function consume(memory: Memory, partition: number, position: Position | null): void {
  const gone = position === null ? [] : idsOf(position);
  if (gone.length === 0) return;
  const { inbox } = partitionData(memory, partition);
  // What is consumed is nearly always at the front, and what lies behind the last of it need not be looked at.
  let kept = 0;
  let end = 0;
  for (let next = 0; end < inbox.length; end++) {
    const { id } = inbox[end]!;
    // Both are in the order of their ids.
    while (gone[next]! < id) next++;
    if (next === gone.length) break;
    if (gone[next] !== id) inbox[kept++] = inbox[end]!;
  }
  inbox.splice(kept, end - kept);
}

export function postReply(memory: Memory, reply: Reply): void {
  const { replies } = memory.data;
  const waiting = replies.get(reply.process) ?? [];
  replies.set(reply.process, waiting);
  waiting.push(reply);
  if (waiting.length > memory.limits.maxReplies) waiting.shift();
  memory.waiters.wakeOne(replyKey(reply.process));
}

function positionOf(ids: readonly number[], after: Position | null = null): Position {
  const value: Taken = { ids, before: after === null ? NO_IDS : idsOf(after) };
  return { driver: DRIVER, value };
}

/** The messages that a position names, in order. */
export function idsOf(position: Position): readonly number[] {
  return takenAt(position).ids;
}

/** Of up to two batches, as more are not under way. */
function skippedAfter(position: Position): readonly number[] {
  const { ids, before } = takenAt(position);
  return before.length === 0 ? ids : [...before, ...ids].sort((a, b) => a - b);
}

function takenAt(position: Position): Taken {
  assert.equal(position.driver, DRIVER, "a position of another driver");
  return position.value as Taken;
}

function replyKey(process: string): string {
  return `replies/${process}`;
}
