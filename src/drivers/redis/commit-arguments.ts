import type { CommitBatch, Header, JournalRecord, Task } from "../../store/contract.ts";
import { handedOf, idsOf } from "./inbox.ts";
import { groupedBy } from "./grouped-by.ts";
import { lineOf, packTask } from "./packed-task.ts";
import { tokensOf } from "./settle-arguments.ts";

export interface CommitContext {
  /** How many of a queue's tasks are leased by those who wait in this process: nobody else is woken for them. */
  readonly attended: ReadonlyMap<string, number>;
  /** By the store's clock, as far as it is known. */
  readonly nowMs: number;
}

/** Bells of one queue; nobody needs more at once. */
const MOST_RINGS = 100;

/**
 * A batch as commit.lua reads it, in the order of the commands that write it: lists one after the other, each after the
 * number of its items. What can be found out here is not left to the script, which all others wait for.
 */
export function pushCommit(args: string[], batch: CommitBatch, context: CommitContext): void {
  const { partition, incarnation, epoch, nonce, seq } = batch.fence;
  const headers = lastOf(batch.headers);
  const records = groupedBy(batch.records, ({ entity }) => entity);
  const lines = groupedBy(firstOf(batch.tasks), lineOf);
  const wakes = new Map(batch.wakes.map(({ entity, atMs }) => [entity, atMs]));
  args.push(String(partition), incarnation, String(epoch), nonce, String(seq), batch.id);
  args.push(number(batch.timeMs), batch.suspect ?? "", hintsOf(records, headers));
  const list = <Item>(items: Iterable<Item>, ...fields: readonly ((item: Item) => string)[]): void => {
    const at = args.push("");
    for (const item of items) for (const field of fields) args.push(field(item));
    args[at - 1] = String((args.length - at) / fields.length);
  };
  args.push(Array.from(records.values(), ([first]) => first!.version - 1).join(" "));
  list(
    records,
    ([entity]) => entity,
    ([, ofOne]) => String(reached(ofOne)),
  );
  list(
    batch.records,
    ({ entity }) => entity,
    ({ version, count, format, text }) => `${version} ${count} ${format} ${text}`,
  );
  pushConsumed(args, batch.consumed === null ? [] : idsOf(batch.consumed));
  list(
    batch.snapshots,
    ({ entity }) => entity,
    ({ version }) => String(version),
    ({ version, format, text }) => `${version} ${format} ${text}`,
  );
  list(headers.values(), ({ entity }) => entity, textOf);
  list(headers.values(), (header) => `${header.class} ${number(header.createdAtMs)} ${header.workflow}`);
  list(
    filter(wakes, ([, atMs]) => atMs === null),
    ([entity]) => entity,
  );
  list(
    filter(wakes, ([, atMs]) => atMs !== null),
    ([, atMs]) => number(atMs!),
    ([entity]) => entity,
  );
  list(
    [...lines.values()].flat(),
    ({ token }) => token,
    (task) => packTask(task, context.nowMs),
  );
  list(batch.revoke, same);
  list(
    batch.mail,
    ({ partition }) => String(partition),
    ({ text }) => text,
  );
  list(batch.discard, same);
  list(batch.deadLetters, ({ id }) => id, textOf);
  list(
    batch.deadLetters,
    ({ atMs }) => number(atMs),
    ({ id }) => id,
  );
  list(
    batch.listings ?? [],
    ({ list }) => list,
    ({ id }) => id,
    ({ entity }) => entity,
    ({ atMs }) => number(atMs),
    (listing) => (listing.text === null ? "" : JSON.stringify(listing)),
  );
  list(batch.purge, same);
  list(
    batch.cut ?? [],
    ({ entity }) => entity,
    ({ belowVersion }) => String(belowVersion),
  );
  pushLines(args, lines, context.attended);
  const settled = tokensOf(handedOf(batch.consumed).map(({ settlement }) => settlement));
  args.push(String(settled.size));
  for (const [line, tokens] of settled) args.push(line, String(tokens.size), ...tokens);
  const replies = groupedBy(batch.replies, ({ process }) => process);
  args.push(String(replies.size));
  for (const [process, ofOne] of replies) {
    args.push(process, String(ofOne.length));
    for (const reply of ofOne) args.push(JSON.stringify(reply));
  }
}

/**
 * The first and the last id of those consumed, and the least that could come behind. A read gives what there is without a
 * gap, and ids are given in order.
 */
function pushConsumed(args: string[], ids: readonly string[]): void {
  const last = ids.at(-1) ?? "";
  const dash = last.indexOf("-");
  const behind = last === "" ? "" : `${last.slice(0, dash)}-${BigInt(last.slice(dash + 1)) + 1n}`;
  args.push(ids[0] ?? "", last, behind);
}

function pushLines(
  args: string[],
  lines: ReadonlyMap<string, readonly Task[]>,
  attended: ReadonlyMap<string, number>,
): void {
  const left = new Map(attended);
  args.push(String(lines.size));
  for (const [line, ofOne] of lines) {
    const { queue, priority } = ofOne[0]!;
    const taken = Math.min(left.get(queue) ?? 0, ofOne.length);
    left.set(queue, (left.get(queue) ?? 0) - taken);
    args.push(line, queue, number(priority), String(Math.min(ofOne.length - taken, MOST_RINGS)));
    args.push(String(ofOne.length));
  }
}

/** `<version> <entity>` of each that has changed, one on a line, with a `+` in front of one that ends: see VersionHints. */
function hintsOf(records: ReadonlyMap<string, readonly JournalRecord[]>, headers: ReadonlyMap<string, Header>): string {
  let text = "";
  for (const [entity, ofOne] of records) {
    const end = (headers.get(entity)?.class ?? "open") === "open" ? "" : "+";
    text += `${text === "" ? "" : "\n"}${end}${reached(ofOne)} ${entity}`;
  }
  return text;
}

/** The version after the last of these. The records of one entity follow each other. */
function reached(records: readonly JournalRecord[]): number {
  let version = records[0]!.version - 1;
  for (const record of records) {
    if (record.version !== version + 1 || record.count < 1)
      throw new Error(`version ${record.version} is not the next one of ${record.entity}`);
    version += record.count;
  }
  return version;
}

function lastOf(headers: readonly Header[]): ReadonlyMap<string, Header> {
  return new Map(headers.map((header) => [header.entity, header]));
}

/** Each token once. */
function firstOf(tasks: readonly Task[]): readonly Task[] {
  const seen = new Set<string>();
  return tasks.filter(({ token }) => seen.size < seen.add(token).size);
}

function* filter<Item>(items: Iterable<Item>, isWanted: (item: Item) => boolean): Generator<Item, void> {
  for (const item of items) if (isWanted(item)) yield item;
}

function textOf(item: object): string {
  return JSON.stringify(item);
}

function same(text: string): string {
  return text;
}

/** Redis refuses a score that is no number, and a commit that has begun must not meet a refusal. */
function number(value: number): string {
  if (Number.isNaN(value)) throw new Error("a time or a priority of this batch is not a number");
  return String(value);
}
