import { openMemory } from "../../src/drivers/memory/memory-store.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { Engine } from "../../src/engine/engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { Service } from "../../src/api/service/service.ts";
import { LOCAL } from "../../src/api/service/caller.ts";
import type { CommitBatch, Store } from "../../src/store/contract.ts";
import { Worker } from "../../src/worker/worker.ts";
import { definitionOf, HANDLER, handlerOf } from "../contenders/millrace.ts";
import { Probe } from "../probe.ts";
import type { Shape } from "../shapes.ts";

/** What Millrace writes for one execution, commit by commit: the rows of the bare limits. */
export interface RecordedCommit {
  readonly records: CommitBatch["records"];
  readonly headers: CommitBatch["headers"];
  readonly wakes: CommitBatch["wakes"];
  readonly tasks: CommitBatch["tasks"];
}

/** Runs one execution in memory and notes down its commits. */
export async function recordRows(shape: Shape): Promise<readonly RecordedCommit[]> {
  const commits: RecordedCommit[] = [];
  const memory = openMemory({ host: nodeHost, volatileTasks: true });
  const journal: Store["journal"] = {
    load: (requests) => memory.journal.load(requests),
    due: (...given) => memory.journal.due(...given),
    watch: (...given) => memory.journal.watch(...given),
    commit: (batches) => {
      commits.push(...batches.map(({ records, headers, wakes, tasks }) => ({ records, headers, wakes, tasks })));
      return memory.journal.commit(batches);
    },
  };
  const { capabilities, partitions, inbox, tasks, records, queries } = memory;
  const store: Store = {
    capabilities,
    partitions,
    inbox,
    tasks,
    records,
    queries,
    journal,
    close: () => memory.close(),
  };
  const probe = new Probe({ ...shape, taskMs: 0 }, false);
  const handlers = new Map([[HANDLER, handlerOf(probe)]]);
  const engine = new Engine({
    store,
    host: nodeHost,
    machines: [executionMachine],
    settings: { retentionMs: 604_800_000 },
  });
  const worker = new Worker({ store, host: nodeHost, handlers, queues: [HANDLER], settings: { slots: 1_000 } });
  const service = new Service({ store, host: nodeHost });
  engine.start();
  worker.start();
  service.start();
  await service.submissions.publish({ definition: definitionOf(shape) }, true);
  await service.submissions.start(LOCAL, shape.name, { input: {} });
  await probe.until(1);
  const isOpen = async (): Promise<boolean> =>
    (await store.queries.headers({ class: "open", limit: 1 })).items.length > 0;
  while (await isOpen()) await nodeHost.sleep(1);
  service.stop();
  await worker.stop();
  await engine.stop();
  await store.close();
  return commits.filter(({ records }) => records.length > 0);
}
