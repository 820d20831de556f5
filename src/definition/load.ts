import { quote } from "../errors/registry.ts";
import { canonicalHash } from "../json/canonical.ts";
import { characterCount, isLongerThan } from "../json/characters.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { Schema } from "../json/schema.ts";
import { IGNORED_WORKFLOW_FIELDS, MAX_EDGES, MAX_NODES, WORKFLOW_FIELDS } from "./fields.ts";
import type { KnownHandlers } from "./handlers.ts";
import { unusedLabels } from "./labels.ts";
import { loadWorkflowBudget } from "./load-budget.ts";
import { KnownLimits, loadLimits, loadWorkflowConcurrency } from "./load-limits.ts";
import { mayReadResult } from "./load-config.ts";
import { type LoadContext, loadNodes } from "./load-nodes.ts";
import { DEFAULT_RETRY, loadRetry } from "./load-retry.ts";
import { NodeList } from "./node-list.ts";
import type { ProblemList } from "./problems.ts";
import { fieldReader, readFields, writtenName, wrongType } from "./read-fields.ts";
import type { DlqPolicy, OnError, Workflow } from "./workflow.ts";

const WORKFLOW = fieldReader("A workflow", WORKFLOW_FIELDS);

/** A definition as far as it could be read. `workflow` is to be used only if there are no errors. */
export interface LoadedDefinition {
  readonly workflow: Workflow;
  /** The graphs in it: its own first, then those inside maps. */
  readonly lists: readonly NodeList[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Reads every shape in which a definition may be written and gives the canonical form: one shape, all defaults written
 * out. Undefined if there is nothing to look at further.
 */
export function loadDefinition(
  value: Json,
  handlers: KnownHandlers,
  problems: ProblemList,
): LoadedDefinition | undefined {
  if (!isJsonObject(value)) {
    wrongType("definition", "an object", value, "", problems);
    return undefined;
  }
  const written = readEnvelope(value, problems);
  const { given } = written;
  const workflow: Mutable<Workflow> = {
    name: loadName(written, problems) ?? "",
    on_error: (given["on_error"] as OnError | undefined) ?? "fail_fast",
    timeout_seconds: (given["timeout_seconds"] as number | undefined) ?? 604_800,
    max_parallel_nodes: (given["max_parallel_nodes"] as number | undefined) ?? null,
    dlq: (given["dlq"] as DlqPolicy | undefined) ?? "all",
    priority: (given["priority"] as number | undefined) ?? 0,
    nodes: [],
  };
  for (const name of Object.keys(given)) loadOptionalField(workflow, name, given[name]!, written, problems);
  if (given["budget"] !== undefined) {
    const { prices } = handlers.catalogue.defaults ?? {};
    const budget = loadWorkflowBudget(given["budget"], written.pointer("budget"), prices, problems);
    if (budget !== undefined) workflow.budget = budget;
  }

  const usualRetry = handlers.catalogue.defaults?.retry ?? DEFAULT_RETRY;
  const retry = loadRetry(given["retry"], written.pointer("retry"), usualRetry, problems);
  const { on_error, dlq, priority } = workflow;
  const limits = new KnownLimits(workflow.limits ?? {}, handlers.catalogue.defaults?.limits);
  const nodes = given["nodes"];
  let readsResult: boolean | undefined;
  const context: LoadContext = {
    problems,
    handlers,
    defaults: { on_error, dlq, priority, retry },
    lists: [],
    limits,
    readsResult: () => (readsResult ??= mayReadResult(nodes)),
  };
  if (isJsonObject(nodes) || Array.isArray(nodes)) context.lists.push(new NodeList(nodes, written.pointer("nodes")));
  else if (nodes !== undefined)
    wrongType("nodes", "a list or an object of nodes", nodes, written.pointer("nodes"), problems);
  if (!loadLists(context, problems)) return undefined;
  const [own] = context.lists;
  if (own === undefined || own.raw.length === 0) {
    reportEmpty(written, problems);
    return undefined;
  }
  workflow.nodes = own.nodes;
  if (Object.keys(limits.used).length > 0) workflow.limits = { ...workflow.limits, ...limits.used };
  // With errors nothing is stored, and there is no content to name it by.
  if (workflow.name === "" && problems.errorCount === 0) nameByContent(workflow, problems);
  return { workflow, lists: context.lists };
}

/** Where `nodes` are of another type altogether, that was reported before. */
function reportEmpty({ given, pointer }: Envelope, problems: ProblemList): void {
  const nodes = given["nodes"];
  if (nodes !== undefined && typeof nodes !== "object") return;
  const at = nodes === undefined ? "" : pointer("nodes");
  problems.add("EMPTY_WORKFLOW", at, {}, { hint: 'Add a node to "nodes".' });
}

/** The hash that names a version of a definition: the same canonical content, the same hash. */
export function definitionHash(workflow: Workflow): string {
  return canonicalHash(workflow as unknown as Json);
}

interface Envelope {
  readonly given: JsonObject;
  /** Where a field was written. */
  readonly pointer: (proper: string) => string;
}

/** The fields of the workflow, which may stand beside `dag`, inside it, or some here and some there. */
function readEnvelope(root: JsonObject, problems: ProblemList): Envelope {
  const ignore = (base: string, allowDag: boolean) => (name: string, value: Json) => {
    if (name === "dag" && allowDag && value !== null) {
      if (!isJsonObject(value)) wrongType("dag", 'an object with "nodes"', value, "/dag", problems);
      return true;
    }
    // What an editor needs to find our schema.
    if (name === "$schema") return true;
    if (!IGNORED_WORKFLOW_FIELDS.has(name)) return false;
    problems.add("IGNORED_FIELD", base + pointerStep(name), { field: name }, { atKey: true });
    return true;
  };
  const outer = readFields(WORKFLOW, root, () => "", problems, ignore("", true));
  const dag = root["dag"];
  if (!isJsonObject(dag)) {
    return { given: outer, pointer: (proper) => pointerStep(writtenName(WORKFLOW, root, proper)) };
  }
  const inner = readFields(WORKFLOW, dag, () => "/dag", problems, ignore("/dag", false));
  for (const name of Object.keys(inner)) {
    if (outer[name] === undefined) continue;
    const written = writtenName(WORKFLOW, dag, name);
    const [field, same] = [`dag.${written}`, writtenName(WORKFLOW, root, name)];
    const hint = `Keep ${quote(same)} and remove ${quote(field)}.`;
    problems.add("REPEATED_FIELD", `/dag${pointerStep(written)}`, { field, same }, { hint, atKey: true });
  }
  return {
    given: { ...inner, ...outer },
    pointer: (proper) =>
      outer[proper] === undefined && inner[proper] !== undefined
        ? `/dag${pointerStep(writtenName(WORKFLOW, dag, proper))}`
        : pointerStep(writtenName(WORKFLOW, root, proper)),
  };
}

/** Loads the graphs one after the other; each may add those inside its maps. False if there is too much of it. */
function loadLists(context: LoadContext, problems: ProblemList): boolean {
  let nodeCount = 0;
  let edgeCount = 0;
  for (const list of context.lists) {
    nodeCount += list.raw.length;
    if (nodeCount > MAX_NODES) {
      problems.add("TOO_MANY_NODES", basePointer(list), { count: nodeCount, limit: MAX_NODES }, { hint: SPLIT });
      return false;
    }
    for (const node of list.raw) {
      if (isJsonObject(node) && Array.isArray(node["dependencies"])) edgeCount += node["dependencies"].length;
    }
    if (edgeCount > MAX_EDGES) {
      problems.add("TOO_MANY_EDGES", basePointer(list), { count: edgeCount, limit: MAX_EDGES }, { hint: SPLIT });
      return false;
    }
    loadNodes(list, context);
  }
  return true;
}

const SPLIT = 'Split it into several workflows and join them by "workflow" nodes, or use a map.';

function basePointer(list: NodeList): string {
  const first = list.pointer(0);
  return first.slice(0, first.lastIndexOf("/"));
}

function loadName({ given, pointer }: Envelope, problems: ProblemList): string | undefined {
  const name = given["name"];
  if (name === undefined) return undefined;
  if (typeof name !== "string") {
    wrongType("name", "text", name, pointer("name"), problems);
    return "?";
  }
  const reason = nameFault(name);
  if (reason === undefined) return name;
  problems.add("INVALID_NAME", pointer("name"), { field: "name", reason });
  return "?";
}

function nameFault(name: string): string | undefined {
  if (name === "") return "must not be empty";
  if (isLongerThan(name, 128)) return `must have at most 128 characters, not ${characterCount(name)}`;
  if (name.includes("/")) return 'must not contain "/"';
  // In a URL these are no names, however they are written: clients take them out.
  if (name === "." || name === "..") return `must not be ${quote(name)}`;
  if (/\p{Cc}/u.test(name)) return "must not contain control characters";
  if (!name.isWellFormed()) return "contains half a surrogate pair, which is not valid Unicode";
  return undefined;
}

function loadOptionalField(
  workflow: Mutable<Workflow>,
  name: string,
  value: Json,
  { pointer }: Envelope,
  problems: ProblemList,
): void {
  switch (name) {
    case "description":
      workflow.description = value as string;
      break;
    case "limits":
      workflow.limits = loadLimits(value, pointer("limits"), problems);
      break;
    case "concurrency": {
      const concurrency = loadWorkflowConcurrency(value, pointer("concurrency"), problems);
      if (concurrency !== undefined) workflow.concurrency = concurrency;
      break;
    }
    case "labels":
      workflow[name] = value as JsonObject;
      for (const [label, reason] of unusedLabels(value as JsonObject)) {
        problems.add("LABEL_NOT_USED", pointer("labels") + pointerStep(label), { label, reason });
      }
      break;
    case "input_schema":
      workflow.input_schema = value;
      checkInputSchema(value, pointer("input_schema"), problems);
      break;
    default:
      if (name.startsWith("x-")) workflow[name as `x-${string}`] = value;
  }
}

function checkInputSchema(value: Json, pointer: string, problems: ProblemList): void {
  if (!isJsonObject(value) && typeof value !== "boolean") {
    wrongType("input_schema", "a JSON Schema", value, pointer, problems);
    return;
  }
  const schema = Schema.compile(value, { isNew: true });
  if (schema instanceof Schema) return;
  for (const { pointer: below, reason } of schema) {
    const name = below.slice(below.lastIndexOf("/") + 1) || "input_schema";
    problems.add("CONFIG_INVALID", pointer + below, { id: "", reason: `${quote(name)} ${reason}` });
  }
}

/** A workflow without a name still gets one that is the same next time. */
function nameByContent(workflow: Mutable<Workflow>, problems: ProblemList): void {
  const { name: _, ...nameless } = workflow;
  workflow.name = `unnamed-${canonicalHash(nameless as unknown as Json).slice(0, 8)}`;
  problems.add("UNNAMED", "", { name: workflow.name }, { hint: 'Add "name": versions are counted by it.' });
}
