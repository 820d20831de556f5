import type { CommitBatch, Header, JournalRecord, Task } from "../../store/contract.ts";
import { endOf, handedOf, idsOf } from "./position.ts";
import { groupedBy } from "./grouped-by.ts";
import { lineOf, packTask } from "./packed-task.ts";
import type { Reservation } from "./seats.ts";
import { tokensOf } from "./settle-arguments.ts";

export interface CommitContext {
  /** The tasks of the batch, as `linesOf` has them. */
  readonly lines: ReadonlyMap<string, readonly Task[]>;
  /** What those who wait in this process are given: nobody else is woken for that. */
  readonly reserved: Reservation;
  /** By the store's clock, as far as it is known. */
  readonly nowMs: number;
}

/** Bells of one queue; nobody needs more at once. */
export const MOST_RINGS = 100;

/**
 * A batch as commit.lua reads it, in the order of the commands that write it: lists one after the other, each after the
 * number of its items. What can be found out here is not left to the script, which all others wait for.
 */
export function pushCommit(args: string[], batch: CommitBatch, context: CommitContext): void {
  const { partition, incarnation, epoch, nonce, seq } = batch.fence;
  args.push(String(partition), incarnation, String(epoch), nonce, String(seq), batch.id);
  args.push(number(batch.timeMs), batch.suspect ?? "");
  const headers = lastHeaders(batch.headers);
  pushRecords(args, batch.records, headers);
  pushConsumed(args, batch.consumed);
  args.push(String(headers.size));
  for (const header of headers.values()) args.push(header.entity, JSON.stringify(header));
  args.push(String(headers.size));
  for (const header of headers.values()) args.push(`${header.class} ${number(header.createdAtMs)} ${header.workflow}`);
  pushWakes(args, batch.wakes);
  const { lines, reserved } = context;
  const at = args.push("");
  for (const tasks of lines.values()) for (const task of tasks) args.push(task.token, packTask(task, context.nowMs));
  args[at - 1] = String((args.length - at) / 2);
  pushLines(args, lines, reserved);
  const settled = tokensOf(handedOf(batch.consumed).map(({ settlement }) => settlement));
  args.push(String(settled.size));
  for (const [line, tokens] of settled) args.push(line, String(tokens.size), ...tokens);
  const replies = groupedBy(batch.replies, ({ process }) => process);
  args.push(String(replies.size));
  for (const [process, ofOne] of replies) {
    args.push(process, String(ofOne.length));
    for (const reply of ofOne) args.push(JSON.stringify(reply));
  }
  if (hasMore(batch)) pushMore(args, batch);
}

/** Whether there is something of what most batches have nothing of. */
export function hasMore({ snapshots, revoke, mail, discard, deadLetters, listings, purge, cut }: CommitBatch): boolean {
  return [snapshots, revoke, mail, discard, deadLetters, listings, purge, cut].some((list) => (list?.length ?? 0) > 0);
}

function pushMore(args: string[], batch: CommitBatch): void {
  pushList(args, batch.snapshots, ({ entity, version, format, text }) =>
    args.push(entity, String(version), `${version} ${format} ${text}`),
  );
  pushList(args, batch.revoke, (token) => args.push(token));
  pushList(args, batch.mail, ({ partition, text }) => args.push(String(partition), text));
  pushList(args, batch.discard, (id) => args.push(id));
  pushList(args, batch.deadLetters, (letter) => args.push(letter.id, JSON.stringify(letter)));
  pushList(args, batch.deadLetters, ({ id, atMs }) => args.push(number(atMs), id));
  pushList(args, batch.listings ?? [], (listing) => {
    const { list, id, entity, atMs, text } = listing;
    return args.push(list, id, entity, number(atMs), text === null ? "" : JSON.stringify(listing));
  });
  pushList(args, batch.purge, (entity) => args.push(entity));
  pushList(args, batch.cut ?? [], ({ entity, belowVersion }) => args.push(entity, String(belowVersion)));
}

function pushList<Item>(args: string[], items: readonly Item[], push: (item: Item) => unknown): void {
  args.push(String(items.length));
  for (const item of items) push(item);
}

/**
 * What is published, `<version> <entity>` of each that has changed, one on a line, with a `+` in front of one that ends (see
 * VersionHints); the version each must have; each with its version from now on; the record of each; and what more there is
 * of those that have several.
 */
function pushRecords(args: string[], records: readonly JournalRecord[], headers: ReadonlyMap<string, Header>): void {
  const reached = new Map<string, number>();
  let before = "";
  for (const { entity, version, count } of records) {
    const known = reached.get(entity);
    if (known === undefined) before += before === "" ? version - 1 : ` ${version - 1}`;
    if (version !== (known ?? version - 1) + 1 || count < 1)
      throw new Error(`version ${version} is not the next one of ${entity}`);
    reached.set(entity, version + count - 1);
  }
  let hints = "";
  for (const [entity, version] of reached) {
    hints += `${hints === "" ? "" : "\n"}${hasEnded(headers.get(entity)) ? "+" : ""}${version} ${entity}`;
  }
  args.push(hints, before, String(reached.size));
  for (const [entity, version] of reached) args.push(entity, String(version));
  const more: JournalRecord[] = [];
  for (const record of records) {
    // In the order of the entities, which is that of their first records.
    if (reached.delete(record.entity)) args.push(stored(record));
    else more.push(record);
  }
  pushList(args, more, (record) => args.push(record.entity, stored(record)));
}

export function hasEnded(header: Header | undefined): boolean {
  return header !== undefined && header.class !== "open";
}

/** A record as a journal has it. */
export function stored({ version, count, format, text }: JournalRecord): string {
  return `${version} ${count} ${format} ${text}`;
}

function pushWakes(args: string[], wakes: CommitBatch["wakes"]): void {
  const { asleep, awake } = lastWakes(wakes);
  args.push(String(asleep.length), ...asleep, String(awake.length / 2), ...awake);
}

/** Of several for one entity the last counts: who has nothing to wake for; and who has, each behind the time. */
export function lastWakes(wakes: CommitBatch["wakes"]): {
  readonly asleep: readonly string[];
  readonly awake: readonly string[];
} {
  const last = new Map<string, number | null>();
  for (const { entity, atMs } of wakes) last.set(entity, atMs);
  const asleep: string[] = [];
  const awake: string[] = [];
  for (const [entity, atMs] of last) {
    if (atMs === null) asleep.push(entity);
    else awake.push(number(atMs), entity);
  }
  return { asleep, awake };
}

/** The first and the last id of those consumed, and the least that could come behind. */
function pushConsumed(args: string[], consumed: CommitBatch["consumed"]): void {
  const ids = consumed === null ? [] : idsOf(consumed);
  if (consumed === null || ids.length === 0) args.push("", "", "");
  else args.push(ids[0]!, ids.at(-1)!, endOf(consumed));
}

function pushLines(
  args: string[],
  lines: ReadonlyMap<string, readonly Task[]>,
  { counts, leaseMs }: Reservation,
): void {
  args.push(counts.size === 0 ? "" : String(leaseMs), String(lines.size));
  for (const [line, ofOne] of lines) {
    const { queue, priority } = ofOne[0]!;
    const leased = counts.get(line) ?? 0;
    args.push(line, queue, number(priority), String(Math.min(ofOne.length - leased, MOST_RINGS)));
    args.push(String(ofOne.length), String(leased));
  }
}

/** Tasks by the lines they go on, each token once. */
export function linesOf(tasks: readonly Task[]): ReadonlyMap<string, readonly Task[]> {
  return groupedBy(firstOf(tasks), lineOf);
}

/** Of several for one entity the last. */
export function lastHeaders(headers: readonly Header[]): ReadonlyMap<string, Header> {
  return new Map(headers.map((header) => [header.entity, header]));
}

/** Each token once. */
function firstOf(tasks: readonly Task[]): readonly Task[] {
  const seen = new Set<string>();
  return tasks.filter(({ token }) => seen.size < seen.add(token).size);
}

/** Redis refuses a score that is no number, and a commit that has begun must not meet a refusal. */
export function number(value: number): string {
  if (Number.isNaN(value)) throw new Error("a time or a priority of this batch is not a number");
  return String(value);
}
