import { Service } from "../../api/service/service.ts";
import { entityKey } from "../../core/entity.ts";
import { executionMachine } from "../../core/execution/machine.ts";
import type { MessageBody, RetryScope } from "../../core/message.ts";
import { parseToken } from "../../core/token.ts";
import { definitionHash } from "../../definition/load.ts";
import { checkDefinition } from "../../definition/read.ts";
import type { Workflow } from "../../definition/workflow.ts";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { Engine } from "../../engine/engine.ts";
import type { Host } from "../../host/host.ts";
import { Requests } from "../../inbox/requests.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import type { Store } from "../../store/contract.ts";
import { type Handler, HandlerError } from "../../worker/handler.ts";
import { Worker } from "../../worker/worker.ts";
import type { ShownExecution } from "../shapes.ts";
import { type Recording, type RecordedCommand, resultKey, type Script, scriptOf } from "./recording.ts";
import { virtualHost } from "./virtual-host.ts";

/** A replay that does not end by itself is cut off after this much of its own time. */
const LONGEST_MS = 400 * 86_400_000;
const CHILD = "replay-child";

export interface Replayed {
  readonly execution: ShownExecution;
  /** How much time went by in the replay's own world. */
  readonly virtualMs: number;
}

/**
 * Runs a recording again, offline and on a virtual clock: the production engine over a store in memory, with handlers
 * that give what was recorded at the moment it was recorded. What is decided is decided anew.
 */
export async function replay(recording: Recording, other?: Workflow): Promise<Replayed | { readonly fault: string }> {
  const script = scriptOf(recording);
  const workflow = other ?? storedWorkflow(recording);
  if ("fault" in workflow) return workflow;
  const { host, timeline } = virtualHost(script.startedAtMs);
  const store = openMemory({ host });
  const requests = new Requests(store, host);
  const runnable = withoutChildren(workflow);
  const { handlers, queues } = servedBy(runnable, (name) =>
    recordedHandler(script, host, name === "transform" ? transform : undefined),
  );
  const engine = new Engine({ store, host, machines: [executionMachine] });
  const worker = new Worker({
    store,
    host,
    handlers,
    queues: [...queues],
    secret: () => "",
    settings: { slots: 1_000 },
  });
  requests.start();
  engine.start();
  worker.start();

  const id = recording.execution.execution_id;
  const service = new Service({ store, host });
  let left = script.commands.length;
  let isStarted = false;
  const send = async (body: MessageBody, request: string): Promise<void> => {
    await requests.send({ to: entityKey("execution", id), by: "replay", id: request, body });
  };
  void start(store, runnable, script, send).then(() => (isStarted = true));
  for (const [i, command] of script.commands.entries()) {
    timeline.after(command.atMs, () => {
      void send({ ...bodyOf(command, recording), request: `command-${i}` } as MessageBody, `command-${i}`).finally(
        () => left--,
      );
    });
  }
  // Commits are seen at once; whether it is over has to be asked only after something was written.
  let isOver = false;
  let seen = 0;
  const look = async (): Promise<void> => {
    const execution = JSON.parse(await service.executions.get(id)) as ShownExecution;
    isOver = execution.finished_at !== null && left === 0;
    seen = execution.seq;
  };
  for (let stepMs = 0; !isOver && timeline.now < LONGEST_MS;) {
    const before = seen;
    await timeline.runUntil(timeline.now + stepMs);
    if (isStarted) await look();
    stepMs = seen === before ? Math.min(3_600_000, Math.max(1, stepMs * 2)) : 1;
  }
  return { execution: JSON.parse(await service.executions.get(id)) as ShownExecution, virtualMs: timeline.now };
}

function storedWorkflow({ definition }: Recording): Workflow | { readonly fault: string } {
  const { workflow, errors } = checkDefinition(definition, { handlers: ANYTHING });
  return workflow ?? { fault: `its definition is not valid: ${errors[0]?.message}` };
}

const ANYTHING = { get: () => undefined, names: () => [], allowMissing: true };

/** A child execution is not in the file: a handler stands for it. */
function withoutChildren(workflow: Workflow): Workflow {
  const nodes = workflow.nodes.map((node) =>
    node.handler === "workflow"
      ? { ...node, handler: CHILD, queue: CHILD, config: {}, timeout_seconds: LONGEST_MS / 1_000 }
      : node,
  );
  return { ...workflow, nodes };
}

async function start(
  store: Store,
  workflow: Workflow,
  { input }: Script,
  send: (body: MessageBody, request: string) => Promise<void>,
): Promise<void> {
  const definition = definitionHash(workflow);
  await store.records.put([{ scope: "definition", hash: definition, text: JSON.stringify(workflow) }]);
  await store.records.publish(workflow.name, definition);
  await send(
    { kind: "start", workflow: workflow.name, definition, input: { json: input }, bodyHash: definition },
    "start",
  );
}

function bodyOf({ body }: RecordedCommand, { execution }: Recording): object {
  switch (body.kind) {
    case "signal":
      return { ...body, data: { json: body.data } };
    case "decideReview": {
      const { decision, data, comment } = body.output;
      return {
        kind: body.kind,
        instance: body.instance,
        generation: execution.generation,
        decision,
        data,
        ...(comment !== undefined && comment !== null && { comment }),
      };
    }
    case "retry": {
      const { from, config, input } = body;
      return {
        kind: "retry",
        scope: (body.scope === "letters" ? "failed" : body.scope) as RetryScope,
        ...(from !== undefined && { from }),
        ...(config !== undefined && { config }),
        ...(input !== undefined && { input: { json: input } }),
      };
    }
    case "cancel":
    case "pause":
    case "resume":
      return body;
  }
}

type Compute = (config: Json, recorded: Json) => Json;

/** It hands on what the engine has resolved: that is decided anew, so that a change of it shows. */
const transform: Compute = (config, recorded) => {
  const { value, mock } = config as JsonObject;
  return value === undefined || mock !== undefined ? recorded : value;
};

/** Gives what was recorded for the attempt, at the moment it was recorded. */
function recordedHandler(script: Script, host: Host, compute?: Compute): Handler {
  return async (call): Promise<Json> => {
    const { instance = call.nodeId, generation = call.generation } = parseToken(call.token) ?? {};
    const [name = "", round = "1"] = instance.split("@");
    const result = script.results.get(resultKey(generation, name, Number(round), call.attempt));
    if (result === undefined) {
      const message = `there is no recorded result of ${name}, attempt ${call.attempt}`;
      throw new HandlerError("NOT_RECORDED", message, { retryable: false });
    }
    await host.sleep(Math.max(0, result.atMs - host.monotonicMs()), call.signal);
    call.signal.throwIfAborted();
    const { outcome } = result;
    if ("output" in outcome) return compute === undefined ? outcome.output : compute(call.config, outcome.output);
    const { error, retryAfterMs } = outcome;
    const { code, message, retryable } = error;
    throw new HandlerError(code, message, { retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) });
  };
}

/** The same for every handler that any node names, in maps too, on whatever queue. */
function servedBy(
  workflow: Workflow,
  handlerOf: (name: string) => Handler,
): { readonly handlers: ReadonlyMap<string, Handler>; readonly queues: ReadonlySet<string> } {
  const handlers = new Map<string, Handler>();
  const queues = new Set<string>();
  const visit = (nodes: Workflow["nodes"]): void => {
    for (const { queue, handler: name, config } of nodes) {
      queues.add(queue).add(name);
      handlers.set(name, handlerOf(name));
      const { handler: inner, nodes: within } = config;
      if (typeof inner === "string") {
        handlers.set(inner, handlerOf(inner));
        queues.add(inner);
      }
      if (Array.isArray(within)) visit(within);
    }
  };
  visit(workflow.nodes);
  return { handlers, queues };
}
