import { setTimeout as sleep } from "node:timers/promises";
import type { Lines } from "../file-lines.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { ShownExplanation } from "../shapes.ts";
import type { BatchLog, Begun, Outcome } from "./batch-log.ts";
import type { BatchProgress } from "./batch-progress.ts";
import type { BatchItem, BatchSource } from "./batch-source.ts";
import { itemsOf, type Segment, segmentsOf } from "./segments.ts";

const FIRST_LOOK_MS = 20;
const LATER_LOOKS_MS = 500;
/** Looks that find nothing new before somebody asks whether anything can go on: asking is not cheap. */
const STILL_LOOKS = 4;

export interface BatchRun {
  readonly file: string;
  readonly log: BatchLog;
  readonly source: BatchSource;
  readonly results: Lines;
  readonly progress: BatchProgress;
  readonly labels: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Runs what is left of a batch, some segments at a time. What it holds in memory is one segment for each of them.
 *
 * @returns the nodes at which what is left waits for handlers that nobody can bring; none if it was run to its end
 */
export async function runBatch(run: BatchRun): Promise<readonly ShownExplanation[]> {
  const { log, file } = run;
  const open = log.begun.filter(({ outcome }) => outcome === undefined);
  const planned = segmentsOf(file, log.head.size, log.planned);
  // One after the other: two that ask for the next segment at once get two.
  let asking: Promise<unknown> = Promise.resolve();
  const next = async (): Promise<Begun | undefined> => {
    const asked = asking.then(async () => {
      const resumed = open.shift();
      if (resumed !== undefined) return resumed;
      const { value } = (await planned.next()) as { value: Segment | undefined };
      return value === undefined ? undefined : log.plan(value);
    });
    asking = asked.catch(() => undefined);
    return asked;
  };
  const live = new Map<number, { completed: number; failed: number; running: number }>();
  const writing: { done: Promise<void> } = { done: Promise.resolve() };
  const lane = async (): Promise<readonly ShownExplanation[]> => {
    while (!run.signal.aborted) {
      const begun = await next();
      if (begun === undefined) break;
      const inVain = await runSegment(run, begun, live, writing);
      if (inVain.length > 0) return inVain;
    }
    return [];
  };
  const left = await Promise.all(Array.from({ length: log.head.lanes }, lane));
  return left.flat();
}

async function runSegment(
  run: BatchRun,
  begun: Begun,
  live: Map<number, { completed: number; failed: number; running: number }>,
  writing: { done: Promise<void> },
): Promise<readonly ShownExplanation[]> {
  const { log, source, signal } = run;
  let isResumed = begun.id !== undefined;
  const id = begun.id ?? (await post(run, begun));
  const { number } = begun.segment;
  if (begun.retries > 0) await source.retry(id, `${log.head.batch}-${number}-again-${begun.retries}`);
  const askedAfter = followStill(source, id);
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LATER_LOOKS_MS, pauseMs * 2)) {
    const { completed, failed, running, finished_at: finishedAt } = await source.get(id);
    live.set(number, { completed, failed, running });
    if (isResumed) run.progress.without(completed + failed);
    isResumed = false;
    show(run, live);
    if (finishedAt !== null) break;
    if (signal.aborted) return [];
    const inVain = await askedAfter(`${completed} ${failed} ${running}`);
    if (inVain.length > 0) return inVain;
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }
  const written = writing.done.then(() => write(run, begun, id));
  writing.done = written.then(
    () => undefined,
    () => undefined,
  );
  await written;
  live.delete(number);
  show(run, live);
  return [];
}

/** Whether a batch that has stood still for some looks waits in vain; asked twice, as it may have been about to go on. */
function followStill(source: BatchSource, id: string): (counts: string) => Promise<readonly ShownExplanation[]> {
  let before = "";
  let looks = 0;
  let wasInVain = false;
  return async (counts) => {
    looks = counts === before ? looks + 1 : 0;
    if (looks === 0) wasInVain = false;
    before = counts;
    if (source.inVain === undefined || looks === 0 || looks % STILL_LOOKS !== 0) return [];
    const inVain = await source.inVain(id);
    const isSure = wasInVain && inVain.length > 0;
    wasInVain = inVain.length > 0;
    return isSure ? inVain : [];
  };
}

async function post({ file, log, source, labels }: BatchRun, begun: Begun): Promise<string> {
  const { workflow, version, each, batch } = log.head;
  const items = await itemsOf(file, begun.segment);
  const body = { workflow, version, items, concurrency: each, labels: { ...labels, batch } };
  const { batch_id: id } = await source.create(body, `${batch}-${begun.segment.number}`);
  log.posted(begun, id);
  return id;
}

/** Page by page; a line for each item. Only then is it written down that they are there. */
async function write({ log, source, results }: BatchRun, begun: Begun, id: string): Promise<void> {
  const counts = { completed: 0, failed: 0, cancelled: 0 };
  let cursor: string | undefined;
  do {
    const page = await source.items(id, cursor);
    for (const item of page.items) {
      if (item.status === "COMPLETED") counts.completed++;
      else if (item.status === "FAILED") counts.failed++;
      else counts.cancelled++;
      const { status, execution_id, error } = item;
      const output = await wholeOutput(source, item);
      const index = begun.segment.from + item.index;
      await results.write(JSON.stringify({ index, status, execution_id, output, error }));
    }
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  log.written(begun, counts);
}

/** A large output is not in the page; it is that of the execution. */
function wholeOutput(source: BatchSource, { output, execution_id: id }: BatchItem): Promise<Json> | Json {
  if (id === null || !isJsonObject(output) || Object.keys(output).join() !== "$large") return output;
  const large = output["$large"]!;
  const isLeftOut = isJsonObject(large) && large["href"] === `/v1/executions/${id}/output`;
  return isLeftOut ? source.output(id) : output;
}

function show(
  { log, progress }: BatchRun,
  live: ReadonlyMap<number, Omit<Outcome, "cancelled"> & { running: number }>,
): void {
  const sum = outcomeOf(log);
  let running = 0;
  for (const [number, counts] of live) {
    if (log.begun[number]?.outcome !== undefined) continue;
    sum.completed += counts.completed;
    sum.failed += counts.failed;
    running += counts.running;
  }
  progress.show({ ...sum, running });
}

/** What has become of all items whose results are written. */
export function outcomeOf({ begun }: BatchLog): { completed: number; failed: number; cancelled: number } {
  const sum = { completed: 0, failed: 0, cancelled: 0 };
  for (const { outcome } of begun) {
    sum.completed += outcome?.completed ?? 0;
    sum.failed += outcome?.failed ?? 0;
    sum.cancelled += outcome?.cancelled ?? 0;
  }
  return sum;
}
