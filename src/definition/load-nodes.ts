import { quote } from "../errors/registry.ts";
import { isLongerThan } from "../json/characters.ts";
import { textFault } from "../json/check-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { Schema } from "../json/schema.ts";
import { typeName, withArticle } from "../json/type-name.ts";
import { CONFIG_SCHEMAS, HANDLER_ALIASES } from "./builtin-handlers.ts";
import { DEFAULT_TIMEOUT_SECONDS, REPEAT_FIELDS } from "./fields.ts";
import { isTemplate, type KnownHandler, type KnownHandlers } from "./handlers.ts";
import { loadCache } from "./load-cache.ts";
import { adoptSeedConfig, canonicalConfig, withoutBraces } from "./load-config.ts";
import { loadDependencies } from "./load-dependencies.ts";
import { loadIds } from "./load-ids.ts";
import { loadBudget } from "./load-budget.ts";
import { type KnownLimits, loadConcurrency, loadNodeLimit } from "./load-limits.ts";
import { loadRetry } from "./load-retry.ts";
import { NODE, NodeList } from "./node-list.ts";
import type { ProblemList } from "./problems.ts";
import { fieldReader, readFields, reportRepeated, wrongType } from "./read-fields.ts";
import type { DlqPolicy, Join, OnError, RepeatPolicy, RetryPolicy, WorkflowNode } from "./workflow.ts";

/** What nodes inherit from their workflow. */
export interface NodeDefaults {
  readonly on_error: OnError;
  readonly dlq: DlqPolicy;
  readonly priority: number;
  readonly retry: RetryPolicy;
}

export interface LoadContext {
  readonly problems: ProblemList;
  readonly handlers: KnownHandlers;
  readonly defaults: NodeDefaults;
  /** Every graph found: the workflow's first, then those inside maps. Grows while it is walked. */
  readonly lists: NodeList[];
  /** What nodes may name as their limit. */
  readonly limits: KnownLimits;
  /** Whether any template may read the `result` of a node. */
  readonly readsResult: () => boolean;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const REPEAT = fieldReader("`repeat`", REPEAT_FIELDS);
const EMPTY: JsonObject = {};

/** Fills a list with the canonical form of its nodes. Problems are reported; a broken part becomes its default. */
export function loadNodes(list: NodeList, context: LoadContext): void {
  const { ids, indexOf } = loadIds(list, context.problems);
  const dependencies = loadDependencies(list, ids, indexOf, context.problems);
  for (let index = 0; index < list.raw.length; index++) {
    const raw = list.raw[index]!;
    const object = isJsonObject(raw) ? raw : EMPTY;
    const given = readFields(
      NODE,
      object,
      () => list.pointer(index),
      context.problems,
      (name) => name === "max_retries",
    );
    list.nodes.push(loadNode(list, index, ids[index]!, given, dependencies[index]!, context));
  }
}

function loadNode(
  list: NodeList,
  index: number,
  id: string,
  given: JsonObject,
  dependencies: WorkflowNode["dependencies"],
  context: LoadContext,
): WorkflowNode {
  const { defaults, problems } = context;
  const written = loadHandler(list, index, id, given, context);
  const handler = HANDLER_ALIASES.get(written) ?? written;
  const config = loadConfig(list, index, id, written, handler, given, context);
  // What a map runs for each item has the queue and the time of its own handler.
  const runs = handler === "map" && typeof config["handler"] === "string" ? config["handler"] : handler;
  const known = context.handlers.get(runs);
  const node: Mutable<WorkflowNode> = {
    id,
    handler,
    config,
    dependencies,
    timeout_seconds:
      (given["timeout_seconds"] as number | undefined) ?? (known?.engine ? null : defaultTimeout(runs, known, context)),
    queue_timeout_seconds: (given["queue_timeout_seconds"] as number | undefined) ?? 86_400,
    retry: nodeRetry(list, index, given, defaults.retry, problems),
    condition_on_error: (given["condition_on_error"] as "fail" | "skip" | undefined) ?? "fail",
    join: loadJoin(list, index, given["join"], dependencies.length, problems),
    on_error: (given["on_error"] as OnError | undefined) ?? defaults.on_error,
    inputs: (given["inputs"] as boolean | undefined) ?? false,
    queue: loadQueue(list, index, given["queue"], { runs, one: context.handlers.catalogue.defaults?.queue }, problems),
    priority: (given["priority"] as number | undefined) ?? defaults.priority,
    dlq: (given["dlq"] as DlqPolicy | undefined) ?? defaults.dlq,
  };
  loadOptionalFields(node, list, index, given, context);
  const limit = context.handlers.catalogue.defaults?.limitOf?.[runs];
  if (
    limit !== undefined &&
    given["limit"] === undefined &&
    config["mock"] === undefined &&
    context.limits.has(limit)
  ) {
    node.limit = limit;
  }
  const model = context.handlers.catalogue.defaults?.modelOf?.[runs];
  if (model !== undefined && node.cache !== undefined) node.config = withModel(handler, config, model);
  if (node.repeat !== undefined && context.handlers.get(handler)?.engine) {
    const reason = `"repeat" must not stand on ${quote(handler)}; only what a worker runs is repeated`;
    problems.add("CONFIG_INVALID", list.field(index, "repeat"), { id, reason });
  }
  if (node.repeat !== undefined && node.cache !== undefined) {
    const reason = '"cache" must not stand beside "repeat"; every round would get the output of the first';
    problems.add("CONFIG_INVALID", list.field(index, "cache"), { id, reason });
  }
  checkLimited(node, list, index, context);
  return node;
}

/** The same work by another model is other work, so a config whose results are kept says whose they are. */
function withModel(handler: string, config: JsonObject, model: string): JsonObject {
  if (config["mock"] !== undefined) return config;
  if (handler !== "map") return { model, ...config };
  const inner = config["config"];
  return { ...config, config: withModel("", isJsonObject(inner) ? inner : {}, model) };
}

/** Only a task can be held up at a gate, or be spared: what the engine runs itself calls nobody. */
function checkLimited(
  { id, handler, config, ...node }: WorkflowNode,
  list: NodeList,
  index: number,
  context: LoadContext,
): void {
  const inner = handler === "map" ? config["handler"] : handler;
  const runs = typeof inner === "string" && context.handlers.get(inner)?.engine !== true;
  if (runs) return;
  for (const field of ["limit", "concurrency", "cache", "budget"] as const) {
    if (node[field] === undefined) continue;
    const where =
      handler === "map"
        ? "a map of nodes of the engine; write it on the nodes inside"
        : `${quote(handler)}; only what a worker runs is ${field === "cache" ? "kept" : "limited"}`;
    const reason = `${quote(field)} must not stand on ${where}`;
    context.problems.add("CONFIG_INVALID", list.field(index, field), { id, reason });
  }
}

/** Fields that have no default: they are there only if somebody wrote them. */
function loadOptionalFields(
  node: Mutable<WorkflowNode>,
  list: NodeList,
  index: number,
  given: JsonObject,
  context: LoadContext,
): void {
  const { problems } = context;
  for (const name of Object.keys(given)) {
    const value = given[name]!;
    switch (name) {
      case "name":
      case "type":
        node[name] = value as string;
        break;
      case "condition":
        node.condition = withoutBraces(value as string);
        break;
      case "join_timeout_seconds":
        node.join_timeout_seconds = value as number;
        break;
      case "repeat": {
        const repeat = loadRepeat(value, list.field(index, "repeat"), problems);
        if (repeat !== undefined) node.repeat = repeat;
        break;
      }
      case "limit": {
        const limit = loadNodeLimit(value, list.field(index, "limit"), context.limits, problems);
        if (limit !== undefined) node.limit = limit;
        break;
      }
      case "concurrency": {
        const concurrency = loadConcurrency(value, list.field(index, "concurrency"), problems);
        if (concurrency !== undefined) node.concurrency = concurrency;
        break;
      }
      case "cache": {
        const cache = loadCache(value, list.field(index, "cache"), problems);
        if (cache !== undefined) node.cache = cache;
        break;
      }
      case "budget": {
        const { prices } = context.handlers.catalogue.defaults ?? {};
        const budget = loadBudget(value, list.field(index, "budget"), prices, problems);
        if (budget !== undefined) node.budget = budget;
        break;
      }
      default:
        if (name.startsWith("x-")) node[name as `x-${string}`] = value;
    }
  }
}

function loadHandler(list: NodeList, index: number, id: string, given: JsonObject, context: LoadContext): string {
  const { problems, handlers } = context;
  const handler = given["handler"];
  if (typeof handler === "string" && handler !== "" && handlerFault(handler) === undefined) {
    const ours = HANDLER_ALIASES.get(handler) ?? handler;
    if (handlers.get(ours) === undefined && !handlers.catalogue.allowMissing) {
      reportUnknownHandler(id, handler, list.field(index, "handler"), context);
    }
    return handler;
  }
  if (!isJsonObject(list.raw[index])) return "";
  if (handler !== undefined && typeof handler !== "string") {
    wrongType("handler", "the name of a handler", handler, list.field(index, "handler"), problems);
  } else if (handler !== undefined && handler !== "") {
    const reason = handlerFault(handler)!;
    problems.add("INVALID_NAME", list.field(index, "handler"), { field: "handler", reason });
  } else {
    const type = typeof given["type"] === "string" ? given["type"].toLowerCase() : undefined;
    const fits = type !== undefined && handlers.get(type) !== undefined ? type : "http";
    const hint = `Add "handler", for instance "handler": ${quote(fits)}. A "type" is only a label.`;
    problems.add("UNKNOWN_HANDLER", list.pointer(index), { id, handler: undefined }, { hint });
  }
  return "";
}

/** Its tasks wait in a queue of that name: what no store can hold would hold up whoever commits it. */
function handlerFault(name: string): string | undefined {
  return isLongerThan(name, 128) ? "is longer than 128 characters" : textFault(name);
}

function defaultTimeout(handler: string, known: KnownHandler | undefined, { handlers }: LoadContext): number {
  const { timeoutSecondsOf = {}, timeoutSecondsOfCapitals = {}, timeoutSeconds } = handlers.catalogue.defaults ?? {};
  const capitals = handler.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
  if (Object.hasOwn(timeoutSecondsOfCapitals, capitals)) return timeoutSecondsOfCapitals[capitals]!;
  const own = Object.hasOwn(timeoutSecondsOf, handler) ? timeoutSecondsOf[handler] : known?.timeoutSeconds;
  return own ?? timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS;
}

function reportUnknownHandler(id: string, handler: string, at: string, { handlers, problems }: LoadContext): void {
  const nearest = problems.wantsErrors ? handlers.nearest(handler) : undefined;
  const accept =
    "Name the module that brings it: --handlers FILE. To accept it before a worker connects: --allow-missing-handlers, over HTTP ?allow_missing_handlers=true.";
  const hint = nearest === undefined ? accept : `Did you mean ${quote(nearest)}? ${accept}`;
  problems.add("UNKNOWN_HANDLER", at, { id, handler }, { hint });
}

function loadConfig(
  list: NodeList,
  index: number,
  id: string,
  written: string,
  handler: string,
  given: JsonObject,
  context: LoadContext,
): JsonObject {
  const raw = (given["config"] as JsonObject | undefined) ?? EMPTY;
  const { handlers } = context;
  const adopted = adoptSeedConfig(written, raw, () => list.field(index, "config"), context);
  list.setMoved(index, adopted.moved);
  checkConfig(id, handler, adopted.config, (below) => list.config(index, below), context);
  if (handler === "map") return loadMap(list, index, id, adopted.config, context);
  if (handlers.get(handler) === undefined) return adopted.config;
  const { config, moved } = canonicalConfig(handler, adopted.config);
  list.setMoved(index, moved);
  return config;
}

function checkConfig(
  id: string,
  handler: string,
  config: JsonObject,
  pointer: (below: string) => string,
  { handlers, problems }: LoadContext,
): void {
  for (const fault of handlers.get(handler)?.check(config) ?? []) {
    const { reason, hint } = fault;
    problems.add("CONFIG_INVALID", pointer(fault.pointer), { id, reason }, { hint });
  }
  const key = CONFIG_SCHEMAS.get(handler);
  const schema = key === undefined ? undefined : config[key];
  if (key === undefined || schema === undefined || isTemplate(schema)) return;
  const compiled = Schema.compile(schema, { isNew: true });
  if (compiled instanceof Schema) {
    if (handler === "review") checkOnDue(id, compiled, config, pointer, problems);
    return;
  }
  for (const { pointer: below, reason } of compiled) {
    const name = (below || `/${key}`).slice((below || `/${key}`).lastIndexOf("/") + 1);
    problems.add("CONFIG_INVALID", pointer(`/${key}${below}`), { id, reason: `${quote(name)} ${reason}` });
  }
}

/** What is decided when nobody does has to fit the form, as far as both are written out. */
function checkOnDue(
  id: string,
  form: Schema,
  { form: written, on_due: onDue }: JsonObject,
  pointer: (below: string) => string,
  problems: ProblemList,
): void {
  if (!isJsonObject(onDue) || onDue["data"] === undefined || JSON.stringify(written).includes("{{")) return;
  for (const fault of form.check(onDue["data"], isTemplate)) {
    const reason = `"on_due" has data that does not fit the form: it ${fault.reason}`;
    problems.add("CONFIG_INVALID", pointer(`/on_due/data${fault.pointer}`), { id, reason });
  }
}

/** What a map runs for each item is a node or a graph of its own, and is read like one. */
function loadMap(list: NodeList, index: number, id: string, config: JsonObject, context: LoadContext): JsonObject {
  const { problems } = context;
  const loaded: Record<string, Json> = { ...canonicalConfig("map", config).config };
  const { nodes, handler: written } = config;
  if (config["retry"] !== undefined) {
    loaded["retry"] = { ...loadRetry(config["retry"], list.config(index, "/retry"), context.defaults.retry, problems) };
  }
  if (isJsonObject(nodes) || Array.isArray(nodes)) {
    const inner = new NodeList(nodes, list.config(index, "/nodes"), { list, index });
    if (inner.raw.length === 0) problems.add("EMPTY_WORKFLOW", list.config(index, "/nodes"), {});
    context.lists.push(inner);
    // Filled when its turn comes.
    loaded["nodes"] = inner.nodes as unknown as Json;
  } else if (typeof written === "string") {
    const handler = HANDLER_ALIASES.get(written) ?? written;
    loaded["handler"] = handler;
    loaded["config"] = loadItemConfig(list, index, id, written, handler, config, context);
  }
  return loaded;
}

function loadItemConfig(
  list: NodeList,
  index: number,
  id: string,
  written: string,
  handler: string,
  map: JsonObject,
  context: LoadContext,
): JsonObject {
  const { handlers, problems } = context;
  const raw = isJsonObject(map["config"]) ? map["config"] : EMPTY;
  const pointer = (below: string): string => list.config(index, `/config${below}`);
  if (handler === "map" || handler === "router") {
    const reason = `"handler" must not be ${quote(handler)}; write it as one of "nodes"`;
    problems.add("CONFIG_INVALID", list.config(index, "/handler"), { id, reason });
    return raw;
  }
  if (handlers.get(handler) === undefined) {
    const fault = textFault(written);
    const at = list.config(index, "/handler");
    if (fault !== undefined) problems.add("INVALID_NAME", at, { field: "handler", reason: fault });
    else if (!handlers.catalogue.allowMissing) reportUnknownHandler(id, written, at, context);
    return raw;
  }
  const { config } = adoptSeedConfig(written, raw, () => pointer(""), context);
  checkConfig(id, handler, config, pointer, context);
  return canonicalConfig(handler, config).config;
}

function nodeRetry(
  list: NodeList,
  index: number,
  given: JsonObject,
  inherited: RetryPolicy,
  problems: ProblemList,
): RetryPolicy {
  const raw = list.raw[index] as JsonObject;
  const short = isJsonObject(raw) ? raw["max_retries"] : undefined;
  const policy =
    given["retry"] === undefined
      ? inherited
      : loadRetry(given["retry"], list.field(index, "retry"), inherited, problems);
  if (short === undefined || short === null) return policy;
  const beside = given["retry"];
  const same = isJsonObject(beside) ? ["max_attempts", "max_retries"].find((name) => isGiven(beside[name])) : undefined;
  if (same !== undefined) reportRepeated("max_retries", `retry.${same}`, list.pointer(index), problems);
  // Beside the policy instead of in it; the pointer is then that of the node.
  return loadRetry({ max_retries: short }, list.pointer(index), policy, problems);
}

function isGiven(value: Json | undefined): boolean {
  return value !== undefined && value !== null;
}

function loadJoin(list: NodeList, index: number, raw: Json | undefined, parents: number, problems: ProblemList): Join {
  if (raw === undefined) return "none_failed";
  const quorum = typeof raw === "string" ? /^quorum:([1-9][0-9]{0,6})$/.exec(raw) : null;
  if (quorum !== null && Number(quorum[1]) <= parents) return raw as Join;
  if (raw === "none_failed" || raw === "all_success" || raw === "all_done" || raw === "one_success") return raw;
  const got = typeof raw === "string" ? quote(raw) : withArticle(typeName(raw));
  const reason =
    quorum === null
      ? `must be "none_failed", "all_success", "all_done", "one_success" or "quorum:n", not ${got}`
      : `asks for ${quorum[1]} of ${parents} dependencies`;
  problems.add("INVALID_JOIN", list.field(index, "join"), { reason });
  return "none_failed";
}

/** Where tasks of this handler go by themselves; or all tasks, where there is one queue for all. */
interface UsualQueue {
  readonly runs: string;
  readonly one: string | undefined;
}

function loadQueue(
  list: NodeList,
  index: number,
  raw: Json | undefined,
  { runs, one }: UsualQueue,
  problems: ProblemList,
): string {
  const usual = one ?? runs;
  if (raw === undefined) return usual;
  // Of a definition that was stored it is written out, and names of handlers have characters that those of queues have not.
  if (raw === usual || raw === runs) return raw;
  // It becomes part of keys and addresses in every store.
  if (/^[\w][\w.:#@-]*$/.test(raw as string)) return raw as string;
  const reason = "must consist of letters, digits and _ . : # @ -";
  problems.add("INVALID_NAME", list.field(index, "queue"), { field: "queue", reason });
  return usual;
}

function loadRepeat(raw: Json, pointer: string, problems: ProblemList): RepeatPolicy | undefined {
  if (!isJsonObject(raw)) {
    wrongType("repeat", "an object", raw, pointer, problems);
    return undefined;
  }
  const given = readFields(REPEAT, raw, () => pointer, problems) as Partial<RepeatPolicy>;
  if (given.until === undefined) {
    const absent = raw["until"] === undefined || raw["until"] === null;
    if (absent)
      problems.add("INVALID_TYPE", pointer + pointerStep("until"), {
        field: "until",
        expected: "an expression",
        got: "missing",
      });
    return undefined;
  }
  return {
    until: withoutBraces(given.until),
    every_seconds: given.every_seconds ?? 10,
    max: given.max ?? 100,
  };
}
