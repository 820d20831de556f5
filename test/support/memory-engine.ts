import { entityKey, partitionOf } from "../../src/core/entity.ts";
import { buildPlan } from "../../src/core/execution/plan.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import type { ExecutionState } from "../../src/core/execution/state.ts";
import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import { type ExecutionSummary, viewExecution } from "../../src/core/execution/view.ts";
import type { Workflow } from "../../src/definition/workflow.ts";
import { openMemory } from "../../src/drivers/memory/memory-store.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { EngineSettings } from "../../src/engine/settings.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { Requests } from "../../src/inbox/requests.ts";
import { contentHash } from "../../src/json/hash.ts";
import type { Json } from "../../src/json/json.ts";
import type { Store } from "../../src/store/contract.ts";
import type { Handler } from "../../src/worker/handler.ts";
import { Worker, type WorkerSettings } from "../../src/worker/worker.ts";

export interface MemoryEngine {
  readonly store: Store;
  run(workflow: Workflow, input?: Json): Promise<ExecutionSummary>;
  start(workflow: Workflow, input?: Json): Promise<string>;
  read(id: string): Promise<ExecutionState>;
  stop(): Promise<void>;
}

/** The production engine and worker over the memory store, in this process and in real time. */
export async function memoryEngine(
  handlers: Readonly<Record<string, Handler>>,
  settings: { engine?: Partial<EngineSettings>; worker?: Partial<WorkerSettings> } = {},
): Promise<MemoryEngine> {
  const host = nodeHost;
  const store = openMemory({ host });
  const engine = new Engine({ store, host, machines: [executionMachine], settings: settings.engine ?? {} });
  const worker = new Worker({
    store,
    host,
    handlers: new Map(Object.entries(handlers)),
    queues: Object.keys(handlers),
    settings: { slots: 64, startReportMs: 50, ...settings.worker },
  });
  const requests = new Requests(store, host);
  engine.start();
  worker.start();
  requests.start();

  const start = async (workflow: Workflow, input: Json = null): Promise<string> => {
    const text = JSON.stringify(workflow);
    const definition = contentHash(text);
    const put = await store.records.put([{ scope: "definition", hash: definition, text }], { refusable: true });
    if (put === "refused") throw new Error("the store is full");
    const id = host.id();
    const body = {
      kind: "start" as const,
      workflow: workflow.name,
      definition,
      input: { json: input },
      bodyHash: definition,
    };
    const outcome = await requests.send({ to: entityKey("execution", id), by: "test", id, body });
    if (outcome.kind !== "answered" || !("ok" in outcome.answer))
      throw new Error(`not started: ${JSON.stringify(outcome)}`);
    return id;
  };
  const read = (id: string): Promise<ExecutionState> => readExecution(store, id);
  return {
    store,
    start,
    read,
    run: async (workflow, input) => {
      const id = await start(workflow, input);
      const entity = entityKey("execution", id);
      const { partitionCount } = store.capabilities;
      let version = 0;
      for (;;) {
        version = await store.journal.watch(partitionOf(entity, partitionCount), entity, version, 1000);
        const { items } = await store.queries.headers({ limit: 500 });
        const header = items.find((item) => item.entity === entity);
        if (header !== undefined && header.class !== "open") return viewExecution(await read(id));
      }
    },
    stop: async () => {
      requests.stop();
      await worker.stop();
      await engine.stop();
      await store.close();
    },
  };
}

/** The state of an execution as any process can have it: the fold of its journal. */
export async function readExecution(store: Store, id: string): Promise<ExecutionState> {
  const entity = entityKey("execution", id);
  const partition = partitionOf(entity, store.capabilities.partitionCount);
  const [loaded] = await store.journal.load([{ partition, entity, aboveVersion: 0 }]);
  const events = loaded!.records.flatMap((record) => JSON.parse(record.text) as ExecutionEvent[]);
  const accepted = events[0];
  if (accepted?.kind !== "accepted") throw new Error(`there is no execution ${id}`);
  const [text] = await store.records.get([{ scope: "definition", hash: accepted.definition }]);
  const state = executionMachine.create(id, buildPlan(accepted.definition, JSON.parse(text!) as Workflow));
  for (const event of events) executionMachine.evolve(state, event);
  return state;
}
