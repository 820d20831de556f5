import { CACHE_KIND } from "../../src/core/cache/state.ts";
import { entityKind } from "../../src/core/entity.ts";
import type { Json, JsonObject } from "../../src/json/json.ts";
import { sameJson } from "../../src/simulator/checker/same-json.ts";
import type { Journals } from "../world/journals.ts";
import type { Loss, RecoveryReport } from "./loss.ts";
import type { Lives } from "./recorded-world.ts";
import { isOfHalves } from "./halves.ts";
import { dispatchesIn, type LostRecord, type Survivors } from "./survivors.ts";

/** What a loss has cost, in numbers. They are told, not judged. */
export interface LossFigures {
  readonly how: string;
  readonly events: number;
  readonly executions: number;
  /** Of these, accepted and not even known of. */
  readonly unknown: number;
  /** How long before the loss the oldest of it was committed. */
  readonly oldestMs: number;
  /** What is said to be back. */
  readonly report: RecoveryReport;
}

export function figuresOf({ at, how, report }: Loss, { survivors }: Lives): LossFigures {
  const { lost } = survivors;
  return {
    how,
    events: lost.reduce((sum, { events }) => sum + events.length, 0),
    executions: new Set(lost.map(({ entity }) => entity)).size,
    unknown: lost.filter(({ version }) => version === 1).length,
    oldestMs: lost.reduce((oldest, record) => Math.max(oldest, at - record.at), 0),
    report,
  };
}

/** What has to hold when a store was lost and made again, besides what holds anyway; each finding is a sentence. */
export function* brokenByLoss(loss: Loss, { survivors, tenures }: Lives, journals: Journals): Iterable<string> {
  yield* survivors.wrong;
  yield* shippedIsThere(loss, journals);
  yield* dispatchedOnce(survivors, journals);
  yield* outAgain(loss, survivors, journals);
  yield* nobodyIsMistaken(loss, tenures);
  yield* toldWhatIsBack(loss);
  yield* toldWhatIsLost(loss, survivors.lost);
  yield* readsTheSame(loss);
}

/** What was in the archive is what every journal begins with at the end. */
function* shippedIsThere({ archived }: Loss, { written }: Journals): Iterable<string> {
  for (const [entity, records] of archived.records) {
    const own = written.get(entity) ?? [];
    const shipped = records.flatMap(({ text }) => JSON.parse(text) as unknown[]);
    if (JSON.stringify(own.slice(0, shipped.length)) === JSON.stringify(shipped)) continue;
    yield `${entity} had ${shipped.length} events in the archive, and they are not what its journal begins with`;
  }
}

/** A dispatch has a name of its own, also beside those that nobody remembers. */
function* dispatchedOnce({ lostTokens }: Survivors, { events }: Journals): Iterable<string> {
  for (const [id, own] of events) {
    const seen = new Set<string>();
    for (const token of dispatchesIn(id, own)) {
      if (seen.has(token)) yield `${token} was dispatched twice`;
      if (lostTokens.has(token)) yield `${token} was dispatched again after it had been lost`;
      seen.add(token);
    }
  }
}

/** What is put out again was out, and is remembered. */
function* outAgain({ report }: Loss, { again }: Survivors, { events }: Journals): Iterable<string> {
  const dispatched = new Set([...events].flatMap(([id, own]) => dispatchesIn(id, own)));
  for (const token of again) if (!dispatched.has(token)) yield `${token} was put out again, and never dispatched`;
  if (again.length !== report.tasks) yield `${report.tasks} tasks are said to be out again, and ${again.length} are`;
}

/**
 * What the checker finds in a store that was made again, and is as it must be: tasks that were out are so again without a
 * second dispatch, who waits for somebody says so once more and is answered once more, and of a parent and
 * its child one may remember a call, or an end, that the other does not.
 */
export function isExpected(finding: string, survivors: Survivors): boolean {
  const { again, lost, calledTwice, parents } = survivors;
  if (isOfHalves(finding, survivors)) return true;
  if (/^I26 It had to be set going again: its (?:child|gate) may not have heard of it/.test(finding)) return true;
  const twice = /It told its parent of the same end twice for one call \[execution (\w+)/.exec(finding)?.[1];
  if (twice !== undefined) return calledTwice.has(twice);
  const caller = /^I8 It was accepted, and (\S+) had not called it like that/.exec(finding)?.[1];
  if (caller !== undefined) return lost.some(({ entity }) => entity === caller);
  const calledOff = /^I43 The cancel cancel:(\S+):\d+ was decided, and nobody had sent it/.exec(finding)?.[1];
  if (calledOff !== undefined) return lost.some(({ entity }) => entity === parents.get(calledOff));
  const child = /It is done, and its child (\S+) has not answered call/.exec(finding)?.[1];
  if (child !== undefined) return lost.some(({ entity }) => entity === `execution/${child}`);
  const token = /^I12 The commit holds the task (\S+), and no event of it dispatches that/.exec(finding)?.[1];
  return token !== undefined && again.includes(token);
}

/** An owner of the first life can never be taken for one of the second. */
function* nobodyIsMistaken({ archived }: Loss, [before, after]: Lives["tenures"]): Iterable<string> {
  const nonces = new Set(before.map(({ nonce }) => nonce));
  const epochs = new Map(archived.progress.map(({ partition, epoch }) => [partition, epoch]));
  const highest = new Map<number, number>();
  for (const { nonce, partition, epoch, owner } of after) {
    if (nonces.has(nonce)) yield `The nonce ${nonce} was drawn again for ${owner} after the loss`;
    highest.set(partition, Math.max(epoch, highest.get(partition) ?? 0));
  }
  for (const [partition, epoch] of highest) {
    const known = epochs.get(partition) ?? 0;
    if (epoch <= known) yield `Partition ${partition} came back with epoch ${epoch}, and ${known} had shipped`;
  }
}

/** What is said to be back is all that was open. */
function* toldWhatIsBack({ archived, report }: Loss): Iterable<string> {
  const open = [...archived.headers.values()].filter((header) => header.class === "open").length;
  if (report.executions !== open) yield `${report.executions} executions are said to be back, and ${open} were open`;
  if (report.present !== 0) yield `${report.present} executions are said to have been there already`;
  for (const entity of report.unreadable) yield `${entity} is said to be unreadable`;
}

/** Whatever is missing came after its partition was last heard of, or is one of those that were known to be behind. */
function* toldWhatIsLost({ report }: Loss, lost: readonly LostRecord[]): Iterable<string> {
  const said = new Map(report.partitions.map((one) => [one.partition, one]));
  // The cache is never shipped, and nobody says so of each key.
  const shipped = lost.filter(({ entity }) => entityKind(entity) !== CACHE_KIND);
  for (const [partition, records] of Map.groupBy(shipped, (record) => record.partition)) {
    const { heard_at: heardAt, behind } = said.get(partition) ?? { heard_at: new Date(0).toISOString(), behind: 0 };
    const heardAtMs = Date.parse(heardAt);
    const unsaid = new Set(records.filter(({ timeMs }) => timeMs < heardAtMs).map(({ entity }) => entity));
    if (unsaid.size <= behind) continue;
    yield `Partition ${partition} was heard of at ${heardAt} with ${behind} behind, and ${unsaid.size} were: ${[...unsaid].join(", ")}`;
  }
}

/** What was over and in the archive looks as it did. */
function* readsTheSame({ archived, seen }: Loss): Iterable<string> {
  for (const [id, before] of seen.before) {
    const header = archived.headers.get(`execution/${id}`);
    const [, execution] = before[0] as [number, { readonly seq: number; readonly workflow_definition_id: string }];
    const isNamed = archived.named.has(execution.workflow_definition_id);
    if (header === undefined || header.class === "open" || header.version < execution.seq) continue;
    const after = seen.after.get(id)!;
    for (const [i, part] of before.entries()) {
      if (sameJson(part, after[i]!)) continue;
      // Who publishes it once more gives it the number again.
      if (!isNamed && sameJson(withoutNumber(part), withoutNumber(after[i]!))) continue;
      yield `${id} was over, and reads otherwise now: ${JSON.stringify(part)} before, ${JSON.stringify(after[i])} after`;
    }
  }
}

function withoutNumber(answer: Json): Json {
  const [status, body] = answer as readonly [Json, JsonObject];
  return [status, { ...body, version: null }];
}
