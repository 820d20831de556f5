import { nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import { isMocked } from "../definition/handlers.ts";
import { ENGINE_HANDLERS } from "../definition/workflow.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { parseToken } from "../core/token.ts";
import type { Body } from "../sdk/closure.ts";
import { taskContext } from "../sdk/task-context.ts";
import type { WorkflowParts } from "../sdk/workflow.ts";
import { type Handler, type HandlerCall, HandlerError } from "../worker/handler.ts";

/** What a test puts in the place of something, by the id of its node. */
export interface StandIns {
  /** Instead of a node's function, with the same arguments; of a handler by name or a sub-workflow: given config or input. */
  readonly mocks: Readonly<Record<string, Body>>;
  /** Nodes, or items such as `ocr[2]`, whose first attempt fails. */
  readonly failOnce: readonly string[];
  /** Handlers by name. */
  readonly handlers: ReadonlyMap<string, Handler>;
}

/** A workflow prepared for a test: its definition, and all handlers that it and those it calls need. */
export interface Prepared {
  readonly parts: WorkflowParts;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly queues: readonly string[];
}

const MOCKED = "mock of ";

export function prepare(parts: WorkflowParts, standIns: StandIns): Prepared {
  checkNames(parts, standIns);
  const { mocks, handlers: given } = standIns;
  const handlers = new Map<string, Handler>();
  const queues = new Set<string>();
  const visit = (one: WorkflowParts, isRoot: boolean): void => {
    for (const [name, { handler, withBody }] of one.functions) {
      const mock = mocks[isRoot ? name.slice(one.name.length + 1) : name];
      handlers.set(name, mock === undefined ? handler : withBody(mock));
    }
    for (const name of namedHandlers(one)) if (!handlers.has(name)) handlers.set(name, byName(name, given.get(name)));
    for (const queue of one.queues) queues.add(queue);
    for (const child of one.children) visit(child, false);
  };
  visit(parts, true);
  // A node of the tested workflow that is mocked and is no function of its own.
  for (const node of nodesOf(parts)) {
    const id = node["id"] as string;
    const mock = mocks[id];
    if (mock === undefined || parts.functions.has(`${parts.name}/${id}`)) continue;
    handlers.set(MOCKED + id, mockOf(mock, ENGINE_HANDLERS.has(node["handler"] as string)));
  }
  const failing = failingOnce(standIns.failOnce);
  const all = [...handlers].map(([name, handler]) => [name, failing(handler)] as const);
  const definition: WorkflowParts["definition"] = (versionOf) =>
    mockedDefinition(parts, parts.definition(versionOf), mocks);
  return {
    parts: { ...parts, definition },
    handlers: new Map(all),
    queues: [...new Set([...handlers.keys(), ...queues])],
  };
}

/** The definition with mocked nodes as tasks: a handler by name, and a sub-workflow for one input or for each item. */
function mockedDefinition(parts: WorkflowParts, definition: JsonObject, mocks: StandIns["mocks"]): JsonObject {
  const nodes = (definition["nodes"] as readonly JsonObject[]).map((node) => {
    const id = node["id"] as string;
    if (mocks[id] === undefined || parts.functions.has(`${parts.name}/${id}`)) return node;
    const config = node["config"] as JsonObject;
    if (node["handler"] === "workflow") return { ...node, handler: MOCKED + id, config: { input: config["input"]! } };
    if (node["handler"] !== "map") return { ...node, handler: MOCKED + id };
    const { input } = config["config"] as JsonObject;
    return { ...node, config: { ...config, handler: MOCKED + id, config: { input: input! } } };
  });
  return { ...definition, nodes };
}

/** A sub-workflow is given its input, a handler its config. */
function mockOf(mock: Body, isSub: boolean): Handler {
  return async (call) => {
    const given = isSub ? (call.config as JsonObject)["input"]! : call.config;
    return (await (mock as (given: Json, ctx: object) => unknown)(given, taskContext(call))) as Json;
  };
}

/** A handler that is not part of the workflow. A test that called a server by accident would be none. */
function byName(name: string, handler: Handler | undefined): Handler {
  return (call) => {
    if (isJsonObject(call.config) && isMocked(call.config) && call.config["mock"] !== true) return call.config["mock"]!;
    if (handler !== undefined) return handler(call);
    if (name === "transform") return (call.config as { readonly value: Json }).value;
    const message =
      `Node ${quote(call.nodeId)} runs the handler ${quote(name)}, which this test does not have: ` +
      `add mocks: { ${JSON.stringify(call.nodeId)}: … } or handlers: { ${JSON.stringify(name)}: … }`;
    throw new HandlerError("NOT_MOCKED", message, { retryable: false });
  };
}

/** Lets the first attempt of these nodes fail, wherever they are in it. */
function failingOnce(names: readonly string[]): (handler: Handler) => Handler {
  const wanted = new Set(names);
  if (wanted.size === 0) return (handler) => handler;
  const isWanted = ({ nodeId, token }: HandlerCall): boolean =>
    wanted.has(nodeId) || wanted.has(parseToken(token)?.instance ?? nodeId);
  return (handler) => (call) => {
    if (call.attempt > 1 || !isWanted(call)) return handler(call);
    throw new HandlerError("FAILED_ONCE", `The test lets the first attempt of ${call.nodeId} fail`, {
      retryable: true,
    });
  };
}

function namedHandlers(parts: WorkflowParts): readonly string[] {
  return nodesOf(parts).flatMap((node) => {
    const config = node["config"] as JsonObject | undefined;
    const names = [node["handler"], node["handler"] === "map" ? config?.["handler"] : undefined];
    return names.filter((name): name is string => typeof name === "string" && !ENGINE_HANDLERS.has(name));
  });
}

function nodesOf(parts: WorkflowParts): readonly JsonObject[] {
  return parts.definition((child) => child.hash)["nodes"] as readonly JsonObject[];
}

/** A stand-in for nothing would make a test pass that tests nothing. */
function checkNames(parts: WorkflowParts, { mocks, failOnce }: StandIns): void {
  const nodes = new Map(nodesOf(parts).map((node) => [node["id"] as string, node["handler"] as string]));
  const inner = new Set(parts.children.flatMap((child) => [...child.functions.keys()]));
  const unknown = (name: string): Error => {
    const nearest = nearestName(name, [...nodes.keys(), ...inner]);
    const hint = nearest === undefined ? "" : ` Did you mean ${quote(nearest)}?`;
    return new TypeError(`The workflow ${quote(parts.name)} has no node ${quote(name)}.${hint}`);
  };
  for (const name of Object.keys(mocks)) {
    const handler = nodes.get(name);
    if (handler === undefined && !inner.has(name)) throw unknown(name);
    const isMockable = handler === undefined || !ENGINE_HANDLERS.has(handler) || ["map", "workflow"].includes(handler);
    if (!isMockable) {
      throw new TypeError(`Node ${quote(name)} runs in the engine (${handler}); there is nothing to mock`);
    }
  }
  for (const name of failOnce) {
    const id = name.replace(/\[\d+\]$/, "");
    const handler = nodes.get(id);
    if (handler === undefined) throw unknown(id);
    if (ENGINE_HANDLERS.has(handler) && handler !== "map") {
      throw new TypeError(`Node ${quote(id)} runs in the engine (${handler}); it cannot be made to fail`);
    }
  }
}
