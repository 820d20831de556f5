import { Service } from "../../api/service/service.ts";
import { DEFINITION_SCOPE, entityKey } from "../../core/entity.ts";
import { MACHINES } from "../../core/machines.ts";
import { type MessageBody, messageText, type RetryScope } from "../../core/message.ts";
import { parseToken } from "../../core/token.ts";
import { definitionHash } from "../../definition/load.ts";
import { checkDefinition } from "../../definition/read.ts";
import type { Workflow } from "../../definition/workflow.ts";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { Engine } from "../../engine/engine.ts";
import type { Host } from "../../host/host.ts";
import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import type { Store } from "../../store/contract.ts";
import { type Handler, HandlerError } from "../../worker/handler.ts";
import { Worker } from "../../worker/worker.ts";
import type { ShownExecution, ShownNode } from "../shapes.ts";
import { type Recording, type RecordedCommand, resultKey, type Script, scriptOf } from "./recording.ts";
import { VirtualHost } from "./virtual-host.ts";

/** A replay that does not end by itself is cut off after this much of its own time. */
const LONGEST_MS = 400 * 86_400_000;
/** The engine has its partition by then; what was recorded begins after it. */
const BOOT_MS = 100;
const LONGEST_STEP_MS = 3_600_000;
const CHILD = "replay-child";

/** In one process every wake-up arrives, so nobody has to look again before long: a week that passes costs nothing. */
const ENGINE = { leaseMs: LONGEST_MS, renewMs: 3_600_000, idleMs: 3_600_000 };
const WORKER = {
  slots: 1_000,
  leaseMs: LONGEST_MS,
  pollMs: 3_600_000,
  startReportMs: 3_600_000,
  limitedReportMs: 3_600_000,
  heartbeatMs: 3_600_000,
};

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
  const runnable = replayable(workflow, script);
  const host = new VirtualHost(script.startedAtMs - BOOT_MS);
  const store = openMemory({ host });
  const engine = new Engine({ store, host, machines: MACHINES, settings: ENGINE });
  const compute = (name: string): Compute | undefined => (name === "transform" ? transform : undefined);
  const { handlers, queues } = servedBy(runnable, (name) => recordedHandler(script, host, compute(name)));
  const worker = new Worker({ store, host, handlers, queues: [...queues], secret: () => "", settings: WORKER });
  engine.start();
  worker.start();
  const { timeline } = host;
  await timeline.runUntil(BOOT_MS);
  host.isBooting = false;

  const id = recording.execution.execution_id;
  const post = (body: MessageBody, name: string, by = "replay"): Promise<unknown> => {
    const message = { id: name, to: entityKey("execution", id), by, trace: "", tenant: "default", body };
    return store.inbox.append([{ partition: 0, start: body.kind === "start", text: messageText(message) }]);
  };
  let left = script.commands.length;
  await post(await startOf(store, runnable, script), "start");
  for (const [i, command] of script.commands.entries()) {
    const body = { ...bodyOf(command), request: `command-${i}` } as MessageBody;
    timeline.after(command.atMs, () => void post(body, `command-${i}`, command.by).finally(() => left--));
  }
  const service = new Service({ store, host });
  const look = async (): Promise<ShownExecution> => JSON.parse(await service.executions.get(id)) as ShownExecution;
  let execution: ShownExecution | undefined;
  for (let stepMs = 1; timeline.now < LONGEST_MS; stepMs = Math.min(LONGEST_STEP_MS, stepMs * 2)) {
    await timeline.runUntil(timeline.now + stepMs);
    const seen = execution?.seq;
    execution = await look();
    if (execution.finished_at !== null && left === 0) break;
    if (execution.seq !== seen) stepMs = 1;
  }
  return { execution: await whole(service, execution ?? (await look())), virtualMs: timeline.now - BOOT_MS };
}

/** A file has large values themselves, and what it is compared with has to. */
async function whole({ executions }: Service, shown: ShownExecution): Promise<ShownExecution> {
  const { execution_id: id, output } = shown;
  const nodes: Record<string, ShownNode> = { ...shown.nodes };
  for (const [name, node] of Object.entries(nodes)) {
    if (isLarge(node.output)) nodes[name] = JSON.parse(await executions.node(id, name)) as ShownNode;
  }
  const isInFull = !isLarge(output) && !Object.values(output ?? {}).some(isLarge);
  return { ...shown, nodes, output: isInFull ? output : (JSON.parse(await executions.output(id)) as Json) };
}

function isLarge(value: Json): boolean {
  return isJsonObject(value) && "$large" in value;
}

function storedWorkflow({ definition }: Recording): Workflow | { readonly fault: string } {
  const { workflow, errors } = checkDefinition(definition, { handlers: ANYTHING });
  return workflow ?? { fault: `its definition is not valid: ${errors[0]?.message}` };
}

const ANYTHING = { get: () => undefined, names: () => [], allowMissing: true };

/**
 * A child execution is not in the file, nor is the graph that a map runs for an item, or a part of a large map: a handler
 * stands for it. And no task has a time limit: it ends when it was recorded
 * to end, which may have been long after it was handed out, since it waited for a worker or was lost with one. Nor does
 * anything wait at limits and budgets, which others had a share in: what came of that is in what was recorded.
 */
function replayable(workflow: Workflow, { parted }: Script): Workflow {
  const timeout_seconds = LONGEST_MS / 1_000;
  const nodes = workflow.nodes.map((gated) => {
    const { limit: _, concurrency: __, budget: ___, cache: ____, ...node } = gated;
    const isElsewhere = node.handler === "workflow" || parted.has(node.id);
    if (isElsewhere) return { ...node, handler: CHILD, queue: CHILD, config: {}, timeout_seconds };
    const { nodes: graph, ...config } = node.config;
    if (node.handler === "map" && (graph !== undefined || config["handler"] === "workflow")) {
      return { ...node, queue: CHILD, config: { ...config, handler: CHILD, config: {} }, timeout_seconds };
    }
    return node.timeout_seconds === null ? node : { ...node, timeout_seconds };
  });
  const { budget: _, concurrency: __, ...rest } = workflow;
  return { ...rest, nodes };
}

async function startOf(store: Store, workflow: Workflow, { input, fork }: Script): Promise<MessageBody> {
  const definition = definitionHash(workflow);
  await store.records.put([{ scope: DEFINITION_SCOPE, hash: definition, text: JSON.stringify(workflow) }]);
  await store.records.publish(workflow.name, definition);
  const kept = fork?.kept.map(({ node, output }) => ({ node, output: { json: output } }));
  return {
    kind: "start",
    workflow: workflow.name,
    definition,
    input: { json: input },
    bodyHash: definition,
    ...(fork !== undefined && kept !== undefined && { fork: { execution: fork.execution, kept } }),
  };
}

function bodyOf({ body }: RecordedCommand): object {
  switch (body.kind) {
    case "signal":
      return { ...body, data: { json: body.data } };
    case "decideReview": {
      const { decision, data, comment } = body.output;
      return {
        kind: body.kind,
        instance: body.instance,
        generation: body.generation,
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
    const key = resultKey(generation, name, Number(round), call.attempt);
    const result = script.results.get(key);
    // Something else ended the execution, or this node, before there was a result.
    if (result === undefined && script.dispatched.has(key)) await host.sleep(LONGEST_MS, call.signal);
    call.signal.throwIfAborted();
    if (result === undefined) {
      const message = `there is no recorded result of ${name}, attempt ${call.attempt}`;
      throw new HandlerError("NOT_RECORDED", message, { retryable: false });
    }
    await host.sleep(Math.max(0, script.startedAtMs + result.atMs - host.wallMs()), call.signal);
    call.signal.throwIfAborted();
    const { outcome } = result;
    if ("output" in outcome) return compute === undefined ? outcome.output : compute(call.config, outcome.output);
    const { error, retryAfterMs } = outcome;
    const { code, message, retryable } = error;
    throw new HandlerError(code, message, { retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) });
  };
}

/** The same for every handler that any node names, or a map for its items, on whatever queue. */
function servedBy(
  workflow: Workflow,
  handlerOf: (name: string) => Handler,
): { readonly handlers: ReadonlyMap<string, Handler>; readonly queues: ReadonlySet<string> } {
  const handlers = new Map<string, Handler>();
  const queues = new Set<string>();
  for (const { queue, handler: name, config } of workflow.nodes) {
    queues.add(queue).add(name);
    handlers.set(name, handlerOf(name));
    const { handler: inner } = config;
    if (typeof inner === "string") {
      handlers.set(inner, handlerOf(inner));
      queues.add(inner);
    }
  }
  return { handlers, queues };
}
