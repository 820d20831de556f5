import type {
  CommitBatch,
  CommitOutcome,
  DeadLetter,
  Journal,
  Settlement,
  SettleOutcome,
  Store,
  Tasks,
} from "../../store/contract.ts";
import { entityKind } from "../../core/entity.ts";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { Message, TaskCompleted } from "../../core/message.ts";
import type { Metrics } from "./metrics.ts";

/** The same store, counting what goes through it: engine and worker know nothing of measurements. */
export function measured(store: Store, metrics: Metrics): Store {
  return {
    capabilities: store.capabilities,
    partitions: store.partitions,
    inbox: store.inbox,
    journal: measuredJournal(store.journal, metrics),
    tasks: measuredTasks(store.tasks, metrics),
    records: store.records,
    queries: store.queries,
    close: () => store.close(),
  };
}

function measuredJournal(journal: Journal, metrics: Metrics): Journal {
  return {
    commit: async (batches) => {
      const startedAtMs = performance.now();
      try {
        const outcomes = await journal.commit(batches);
        metrics.commitSeconds.observe((performance.now() - startedAtMs) / 1000);
        for (const [i, batch] of batches.entries()) countBatch(metrics, batch, outcomes[i]!);
        return outcomes;
      } catch (error) {
        metrics.commits.inc({ outcome: "unknown" }, batches.length);
        throw error;
      }
    },
    load: (requests) => journal.load(requests),
    due: (...args) => journal.due(...args),
    watch: (...args) => journal.watch(...args),
  };
}

function countBatch(metrics: Metrics, batch: CommitBatch, { kind }: CommitOutcome): void {
  metrics.commits.inc({ outcome: kind });
  // A resend that finds itself applied was counted by nobody: its first answer was lost.
  if (kind !== "committed" && kind !== "alreadyApplied") return;
  const known = new Set(batch.restored);
  let events = 0;
  let accepted = 0;
  for (const { entity, count, version, text } of batch.records) {
    if (known.has(entity)) continue;
    events += count;
    if (entityKind(entity) !== "execution") continue;
    if (version === 1) accepted++;
    countRetries(metrics, text);
  }
  // Together: to find a counter costs more than to count.
  if (events > 0) metrics.events.inc(events);
  if (accepted > 0) metrics.accepted.inc(accepted);
  for (const { entity, class: kindOfEnd, status, createdAtMs, endedAtMs } of batch.headers) {
    if (entityKind(entity) !== "execution" || kindOfEnd === "open" || endedAtMs === null || known.has(entity)) continue;
    metrics.ended.inc({ status });
    metrics.executionSeconds.observe({ status }, Math.max(0, endedAtMs - createdAtMs) / 1000);
  }
  countQueues(metrics.dispatched, metrics, batch.tasks);
  const letters = batch.deadLetters.filter((letter) => !known.has(letter.entity) && isNew(letter));
  for (const letter of letters) metrics.deadLetters.inc({ class: letter.class });
}

/** A replay writes its letter once more, to mark it. Nobody has to be called for that. */
function isNew({ text }: DeadLetter): boolean {
  return (JSON.parse(text) as { readonly status?: unknown } | null)?.status !== "replayed";
}

/** Most records have none, and are not read for it. */
function countRetries(metrics: Metrics, text: string): void {
  if (!text.includes('"retryAtMs":')) return;
  for (const event of JSON.parse(text) as ExecutionEvent[]) {
    if (event.kind !== "taskFailed" || event.retryAtMs === null) continue;
    metrics.retried.inc();
    metrics.retrySeconds.observe(Math.max(0, event.retryAtMs - event.atMs) / 1000);
  }
}

function measuredTasks(tasks: Tasks, metrics: Metrics): Tasks {
  return {
    lease: async (request) => {
      const leased = await tasks.lease(request);
      countQueues(metrics.leased, metrics, leased);
      return leased;
    },
    heartbeat: (...args) => tasks.heartbeat(...args),
    settle: async (results) => {
      const outcomes = await tasks.settle(results);
      countResults(metrics, results, outcomes);
      return outcomes;
    },
    lapse: async (limit) => {
      const count = await tasks.lapse(limit);
      metrics.lapsed.inc(count);
      return count;
    },
    restore: (given) => tasks.restore(given),
  };
}

/** The message is the owner's business; in its text, how long the handler ran stands behind everything that users wrote. */
function runningMsOf({ text, message }: Settlement): number {
  if (message !== undefined) return (message as Message & { body: TaskCompleted }).body.runningMs;
  return Number(/"runningMs":(\d+)[^"]*(?:"usage".*)?$/.exec(text.slice(-2_000))?.[1] ?? Number.NaN);
}

function countResults(metrics: Metrics, results: readonly Settlement[], outcomes: readonly SettleOutcome[]): void {
  // Those that are alike follow each other: nearly all are completed and settled.
  for (let from = 0, to = 0; from < results.length; from = to) {
    const { outcome: result } = results[from]!;
    const outcome = outcomes[from]!;
    for (; to < results.length && results[to]!.outcome === result && outcomes[to] === outcome; to++) {
      const runningMs = runningMsOf(results[to]!);
      if (outcome !== "settled" || !Number.isFinite(runningMs)) continue;
      metrics.taskSeconds.observe({ result }, runningMs / 1000);
    }
    metrics.settled.inc({ result, outcome }, to - from);
  }
}

function countQueues(counter: Metrics["leased"], metrics: Metrics, tasks: readonly { readonly queue: string }[]): void {
  for (let from = 0, to = 0; from < tasks.length; from = to) {
    const { queue } = tasks[from]!;
    while (to < tasks.length && tasks[to]!.queue === queue) to++;
    counter.inc({ queue: metrics.name(queue) }, to - from);
  }
}
