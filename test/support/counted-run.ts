import { LOCAL } from "../../src/api/service/caller.ts";
import { Service } from "../../src/api/service/service.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { Engine } from "../../src/engine/engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Json, JsonObject } from "../../src/json/json.ts";
import type { CommitBatch, Store } from "../../src/store/contract.ts";
import { Worker } from "../../src/worker/worker.ts";

/** What crosses the store's contract while executions run: work that no machine is too slow or too busy to count. */
export interface Counts {
  steps: number;
  /** Entries of the inbox: starts and results. */
  messages: number;
  /** Calls that post messages or settle tasks, hand out tasks, load entities and commit. */
  posts: number;
  leases: number;
  loads: number;
  commits: number;
  /** Rows of the journal, of lists, of wake times, of queues; each is a statement of a driver that has no better one. */
  records: number;
  headers: number;
  wakes: number;
  tasks: number;
  /** Characters of the journal, and of tasks and messages. */
  journalChars: number;
  trafficChars: number;
}

const HANDLER = "count.step";
const DAY_MS = 86_400_000;

/** Starts so many executions of a workflow at once, whose nodes all name `count.step`, and waits for their ends. */
export async function countRun(store: Store, nodes: readonly JsonObject[], executions: number): Promise<Counts> {
  const counts = noCounts();
  const counted = countingStore(store, counts);
  const handlers = new Map([
    [
      HANDLER,
      (): Json => {
        counts.steps++;
        return { n: counts.steps };
      },
    ],
  ]);
  const host = nodeHost;
  const engine = new Engine({ store: counted, host, machines: [executionMachine], settings: { retentionMs: DAY_MS } });
  const worker = new Worker({ store: counted, host, handlers, queues: [HANDLER], settings: { slots: 1_000 } });
  const service = new Service({ store: counted, host });
  engine.start();
  worker.start();
  service.start();
  const definition = { name: "counted", nodes: nodes.map((node) => ({ ...node, handler: HANDLER, inputs: true })) };
  await service.submissions.publish({ definition }, true);
  Object.assign(counts, noCounts());
  const inputs = Array.from({ length: executions }, (): Json => ({}));
  await service.submissions.startAll(LOCAL, "counted", { inputs });
  const isOpen = async (): Promise<boolean> =>
    (await store.queries.headers({ class: "open", limit: 1 })).items.length > 0;
  while (await isOpen()) await host.sleep(10);
  const result = { ...counts };
  service.stop();
  await worker.stop();
  await engine.stop();
  await store.close();
  return result;
}

function noCounts(): Counts {
  const none = { steps: 0, messages: 0, posts: 0, leases: 0, loads: 0, commits: 0, records: 0, headers: 0, wakes: 0 };
  return { ...none, tasks: 0, journalChars: 0, trafficChars: 0 };
}

function countingStore(store: Store, counts: Counts): Store {
  const { capabilities, partitions, inbox, journal, tasks, records, queries } = store;
  const posted = (messages: readonly { readonly text: string }[]): void => {
    counts.posts++;
    counts.messages += messages.length;
    counts.trafficChars += charsOf(messages);
  };
  return {
    capabilities,
    partitions,
    records,
    queries,
    inbox: {
      append: (messages) => {
        posted(messages);
        return inbox.append(messages);
      },
      read: (...given) => inbox.read(...given),
      replies: (...given) => inbox.replies(...given),
    },
    journal: {
      commit: (batches) => {
        for (const batch of batches) countBatch(batch, counts);
        return journal.commit(batches);
      },
      load: (requests) => {
        counts.loads++;
        return journal.load(requests);
      },
      due: (...given) => journal.due(...given),
      watch: (...given) => journal.watch(...given),
    },
    tasks: {
      lease: async (request) => {
        const leased = await tasks.lease(request);
        if (leased.length > 0) counts.leases++;
        return leased;
      },
      settle: (results) => {
        posted(results);
        return tasks.settle(results);
      },
      heartbeat: (...given) => tasks.heartbeat(...given),
      lapse: (limit) => tasks.lapse(limit),
      restore: (given) => tasks.restore(given),
    },
    close: () => store.close(),
  };
}

function countBatch({ records, headers, wakes, tasks, mail }: CommitBatch, counts: Counts): void {
  counts.commits++;
  counts.records += records.length;
  counts.headers += headers.length;
  counts.wakes += wakes.length;
  counts.tasks += tasks.length;
  counts.messages += mail.length;
  counts.journalChars += charsOf(records);
  counts.trafficChars += charsOf(tasks);
}

function charsOf(items: readonly { readonly text: string }[]): number {
  return items.reduce((sum, { text }) => sum + text.length, 0);
}
