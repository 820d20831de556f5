import { entityKey, partitionOf } from "../../src/core/entity.ts";
import { buildPlan } from "../../src/core/execution/plan.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import type { ExecutionState } from "../../src/core/execution/state.ts";
import type { Answer } from "../../src/core/machine.ts";
import type { MessageBody } from "../../src/core/message.ts";
import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import { type ExecutionSummary, viewExecution } from "../../src/core/execution/test-summary.ts";
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

type CommandBody = MessageBody extends infer Body
  ? Body extends { readonly request: string }
    ? Omit<Body, "request"> & { readonly request?: string }
    : never
  : never;

export interface MemoryEngine {
  readonly store: Store;
  run(workflow: Workflow, input?: Json): Promise<ExecutionSummary>;
  start(workflow: Workflow, input?: Json): Promise<string>;
  read(id: string): Promise<ExecutionState>;
  /** Sends a command and gives the answer. */
  send(id: string, body: CommandBody): Promise<Answer>;
  /** Waits for the end of the generation that is under way. */
  ended(id: string): Promise<ExecutionSummary>;
  publish(workflow: Workflow): Promise<number>;
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
  const ended = async (id: string): Promise<ExecutionSummary> => {
    const entity = entityKey("execution", id);
    const partition = partitionOf(entity, store.capabilities.partitionCount);
    let version = 0;
    for (;;) {
      version = await store.journal.watch(partition, entity, version, 1000);
      const state = await read(id);
      if (state.isEnded) return viewExecution(state);
    }
  };
  return {
    store,
    start,
    read,
    ended,
    run: async (workflow, input) => ended(await start(workflow, input)),
    send: async (id, body) => {
      const request = body.request ?? host.id();
      const to = entityKey("execution", id);
      const outcome = await requests.send({ to, by: "test", id: request, body: { ...body, request } });
      if (outcome.kind !== "answered") throw new Error(`no answer: ${outcome.kind}`);
      return outcome.answer;
    },
    publish: async (workflow) => {
      const text = JSON.stringify(workflow);
      const hash = contentHash(text);
      await store.records.put([{ scope: "definition", hash, text }]);
      return store.records.publish(workflow.name, hash);
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
