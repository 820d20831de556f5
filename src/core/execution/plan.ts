import { buildGraph, type Graph } from "../../definition/graph.ts";
import { ENGINE_HANDLERS, type RetryPolicy, type Workflow, type WorkflowNode } from "../../definition/workflow.ts";
import { compileCondition } from "../../expression/condition.ts";
import type { Reference } from "../../expression/scope.ts";
import { compileValue } from "../../expression/template.ts";
import { canonicalHash } from "../../json/canonical.ts";
import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import { firstTryOf } from "../token.ts";
import { GivenText } from "./given-text.ts";
import { joinRule } from "./joins.ts";
import { LEAN_FROM, LeanNodes } from "./lean-nodes.ts";
import { planCache } from "./plan-cache.ts";
import { type PlanEntry, planEntry } from "./plan-entry.ts";
import { NO_GATES, planGates } from "./plan-gates.ts";
import type { PlanNode, PlanRoute, SubWorkflow } from "./plan-node.ts";

/** A definition made ready to run: compiled once per version, shared by all its executions, never changed. */
export interface Plan {
  readonly hash: string;
  readonly workflow: Workflow;
  readonly graph: Graph;
  readonly nodes: readonly PlanNode[];
  /** The ids of the nodes as JSON has them, for what is written of every step; a large plan has none. */
  readonly quotedIds: readonly string[];
  /** The nodes whose outputs make the execution's output. */
  readonly outputs: readonly number[];
  /** Where ready units wait: the engine's own first, then by priority. */
  readonly lines: readonly PlanLine[];
  /** Their numbers, which is the order in which they have their turn. */
  readonly lineOrder: readonly number[];
  /** True if the execution's output is that of its only `output` node, not an object by node id. */
  readonly soleOutput: boolean;
  /** Nodes that may call other executions. */
  readonly callers: readonly number[];
  /** The gate that its executions have to pass as a whole; null if there is none. */
  readonly entry: PlanEntry | null;
  /** Nodes around the graph of a map that are referred to inside it. */
  readonly around: ReadonlySet<string>;
  /** Something in it has a budget. */
  readonly isSpending: boolean;
}

export interface PlanLine {
  /** Empty for the nodes that the engine runs itself. */
  readonly queue: string;
  readonly priority: number;
}

/** The handler of an item that is a graph; a name nobody can give. */
export const GRAPH = "";

/** From `leanFrom` nodes on it takes less room, and does the same. */
export function buildPlan(hash: string, workflow: Workflow, leanFrom: number = LEAN_FROM): Plan {
  const graph = buildGraph(workflow.nodes);
  // Any field that begins with x- may be a user's.
  const given: unknown = workflow["x-millrace-around"];
  const around = new Set(Array.isArray(given) ? (given as readonly string[]) : []);
  const nodeIds = around.size === 0 ? graph.indexOf : { has: (id: string) => graph.indexOf.has(id) || around.has(id) };
  const readerCount = new Int32Array(graph.nodeCount);
  const outputs = outputNodes(workflow, graph);
  const final = new Set(outputs);
  const lines = new Lines();
  const lean = graph.nodeCount < leanFrom ? undefined : new LeanNodes(nodeIds, readerCount);
  const nodes = workflow.nodes.map((spec, index) => {
    const draft = planNode(spec, index, workflow, graph, nodeIds, lines);
    for (const read of draft.reads) readerCount[read]!++;
    return lean?.of(draft, isCaught(index, graph), final.has(index)) ?? draft;
  });
  const places = lines.sorted();
  lean?.settleLines(places.at);
  for (const [index, draft] of nodes.entries()) {
    if (lean?.has(draft) === true) continue;
    nodes[index] = {
      ...draft,
      line: places.at[draft.line]!,
      item: draft.item === null ? null : { ...draft.item, line: places.at[draft.item.line]! },
      caught: isCaught(index, graph),
      readerCount: readerCount[index]!,
      final: final.has(index),
    };
  }
  const soleOutput = outputs.length === 1 && workflow.nodes[outputs[0]!]!.handler === "output";
  const callers = nodes.flatMap(({ spec: { handler }, index }) =>
    handler === "workflow" || handler === "map" ? index : [],
  );
  const entry = planEntry(workflow);
  return {
    hash,
    workflow,
    graph,
    nodes,
    quotedIds: lean === undefined ? graph.ids.map((id) => JSON.stringify(id)) : [],
    outputs,
    lines: places.lines,
    lineOrder: Array.from(places.lines.keys()),
    soleOutput,
    callers,
    around,
    entry,
    isSpending: hasBudget(workflow),
  };
}

/** Also inside the graphs of its maps. */
function hasBudget({ budget, nodes }: Pick<Workflow, "budget" | "nodes">): boolean {
  if (budget !== undefined) return true;
  return nodes.some((node) => {
    const inner = node.handler === "map" ? node.config["nodes"] : undefined;
    const below = Array.isArray(inner) ? (inner as unknown as readonly WorkflowNode[]) : [];
    return node.budget !== undefined || hasBudget({ nodes: below });
  });
}

/** A node of the plan with another config. `lineOf` finds the line of a queue, or opens one. */
export function editedNode(
  plan: Plan,
  index: number,
  config: JsonObject,
  lineOf: (queue: string, priority: number) => number,
): PlanNode {
  const before = plan.nodes[index]!;
  const { graph, around, workflow } = plan;
  const nodeIds = { has: (id: string) => graph.indexOf.has(id) || around.has(id) };
  const spec = { ...before.spec, config, queue: editedQueue(before.spec, config) };
  const node = planNode(spec, index, workflow, graph, nodeIds, new Lines());
  const { line, caught, readerCount, final } = before;
  const item = node.item === null ? null : { ...node.item, line: lineOf(queueOf(node.item), spec.priority) };
  return { ...node, line, caught, readerCount, final, item };
}

/** A map that was in the queue of what it ran is in that of what it runs now; a queue that was chosen stays. */
function editedQueue({ handler, config, queue }: WorkflowNode, edited: JsonObject): string {
  if (handler !== "map") return queue;
  const runs = ({ handler: name }: JsonObject): string => (typeof name === "string" ? name : handler);
  return queue === runs(config) ? runs(edited) : queue;
}

/** Empty for what the engine runs itself. */
function queueOf({ engine, spec }: Pick<PlanNode, "engine" | "spec">): string {
  return engine ? "" : spec.queue;
}

type NodeIds = { has(id: string): boolean };

function planNode(
  spec: WorkflowNode,
  index: number,
  workflow: Workflow,
  graph: Graph,
  nodeIds: NodeIds,
  lines: Lines,
): PlanNode {
  const condition = spec.condition === undefined ? null : compileCondition(spec.condition, { nodeIds });
  const until = spec.repeat === undefined ? null : compileCondition(spec.repeat.until, { nodeIds });
  const { nodes: inner, config: itemConfig, ...own } = spec.handler === "map" ? spec.config : NO_MAP;
  const isMap = spec.handler === "map";
  const config = compileValue(isMap ? own : spec.config, { nodeIds });
  const routes = spec.handler === "router" ? planRoutes(spec, graph, nodeIds) : NO_ROUTES;
  const graphs = isMap ? subWorkflows(spec, inner, itemConfig, workflow, graph, nodeIds) : null;
  const item = isMap ? planItem(spec, itemConfig, workflow, graph, nodeIds, lines, graphs!.item) : null;
  const engine = ENGINE_HANDLERS.has(spec.handler);
  const gates = engine ? NO_GATES : planGates(spec, workflow, nodeIds);
  const cache = engine ? null : planCache(spec, workflow, nodeIds);
  const references = [
    (item ?? { cache }).cache?.key?.references ?? NONE,
    ...(item?.gates ?? gates).map(({ key }) => key?.references ?? NONE),
    config.references,
    condition?.references ?? NONE,
    until?.references ?? NONE,
    item?.config.references ?? NONE,
    ...routes.map((route) => route.when?.references ?? NONE),
  ];
  const reads = readsOf(spec, index, graph, references, graphs?.item?.around ?? []);
  return {
    index,
    id: spec.id,
    spec,
    engine,
    line: lines.of(queueOf({ engine, spec }), spec.priority),
    config,
    given: new GivenText(config),
    firstTry: firstTryOf(spec.id),
    condition,
    join: joinRule(spec.join),
    caught: false,
    reads,
    readerCount: 0,
    final: false,
    until,
    routes,
    routed: routes.length === 0 ? NO_READS : [...new Set(routes.flatMap((route) => route.to))],
    item: item === null ? null : { ...item, reads, index },
    gates,
    cache,
    graphs,
  };
}

const NO_MAP: JsonObject = {};
const NONE: readonly Reference[] = [];
const NO_READS: readonly number[] = [];
const NO_ROUTES: readonly PlanRoute[] = [];

/**
 * The nodes whose outputs a node may read: those it refers to, those that a graph inside it refers to, and its parents
 * if it collects them.
 */
function readsOf(
  spec: WorkflowNode,
  index: number,
  graph: Graph,
  references: readonly (readonly Reference[])[],
  around: readonly string[],
): readonly number[] {
  const reads = new Set<number>();
  for (const list of references) {
    for (const reference of list) {
      const read = reference.kind === "node" ? graph.indexOf.get(reference.id) : undefined;
      if (read !== undefined && read !== index) reads.add(read);
    }
  }
  for (const id of around) if (graph.indexOf.has(id)) reads.add(graph.indexOf.get(id)!);
  if (collectsParents(spec)) {
    for (let edge = graph.parentStart[index]!; edge < graph.parentStart[index + 1]!; edge++) {
      reads.add(graph.edgeParent[edge]!);
    }
  }
  return reads.size === 0 ? NO_READS : [...reads];
}

/** What a map runs for each item, as a node of its own. */
function planItem(
  map: WorkflowNode,
  config: Json | undefined,
  workflow: Workflow,
  graph: Graph,
  nodeIds: NodeIds,
  lines: Lines,
  sub: SubWorkflow | null,
): PlanNode {
  const handler = sub === null ? (map.config["handler"] as string) : GRAPH;
  const { condition: _, repeat: __, ...plain } = map;
  const spec: WorkflowNode = {
    ...plain,
    handler,
    config: isJsonObject(config) ? config : {},
    dependencies: [],
    retry: (map.config["retry"] as RetryPolicy | undefined) ?? map.retry,
    inputs: false,
  };
  const engine = handler === GRAPH || ENGINE_HANDLERS.has(handler);
  const compiled = compileValue(spec.config, { nodeIds });
  const gates = engine ? NO_GATES : planGates(spec, workflow, nodeIds);
  const cache = engine ? null : planCache(spec, workflow, nodeIds);
  return {
    index: graph.indexOf.get(map.id)!,
    id: map.id,
    spec,
    engine,
    line: lines.of(queueOf({ engine, spec }), spec.priority),
    config: compiled,
    given: new GivenText(compiled),
    firstTry: firstTryOf(map.id),
    condition: null,
    join: joinRule("none_failed"),
    caught: false,
    reads: NO_READS,
    readerCount: 0,
    final: false,
    until: null,
    routes: [],
    routed: [],
    item: null,
    gates,
    cache,
    graphs: null,
  };
}

function planRoutes(spec: WorkflowNode, graph: Graph, nodeIds: NodeIds): PlanRoute[] {
  const targets = (to: Json | undefined): number[] =>
    [to ?? []].flat().flatMap((id) => (typeof id === "string" ? (graph.indexOf.get(id) ?? []) : []));
  const routes = (spec.config["routes"] as readonly { when: string; to: Json }[] | undefined) ?? [];
  const planned: PlanRoute[] = routes.map(({ when, to }) => ({
    when: compileCondition(when, { nodeIds }),
    to: targets(to),
  }));
  if (spec.config["else"] !== undefined) planned.push({ when: null, to: targets(spec.config["else"]) });
  return planned;
}

/** The definitions of the children that a map calls: one for each item if it runs a graph, one for each part if large. */
function subWorkflows(
  spec: WorkflowNode,
  inner: Json | undefined,
  itemConfig: Json | undefined,
  workflow: Workflow,
  graph: Graph,
  nodeIds: NodeIds,
): { item: SubWorkflow | null; chunk(): SubWorkflow } {
  const outside = (id: string): boolean => graph.indexOf.has(id) || nodeIds.has(id);
  const base = {
    on_error: workflow.on_error,
    timeout_seconds: workflow.timeout_seconds,
    max_parallel_nodes: null,
    dlq: workflow.dlq,
    priority: workflow.priority,
    ...(workflow.limits !== undefined && { limits: workflow.limits }),
    ...(workflow.budget !== undefined && { budget: { name: workflow.name, ...workflow.budget } }),
  };
  let item: SubWorkflow | null = null;
  if (Array.isArray(inner)) {
    const nodes = inner as unknown as readonly WorkflowNode[];
    item = subWorkflow({ ...base, name: `${workflow.name}[${spec.id}]`, nodes }, referredTo(nodes, outside));
  }
  let chunk: SubWorkflow | undefined;
  return {
    item,
    chunk: () => {
      if (chunk !== undefined) return chunk;
      // How many may fail is judged of the whole, unless a part alone can be too many.
      const tolerated = typeof spec.config["tolerated_failures"] === "number" ? {} : { tolerated_failures: "100%" };
      const config = { ...spec.config, ...tolerated, items: "{{ item }}" };
      const { condition: _, repeat: __, join_timeout_seconds: ___, ...plain } = spec;
      const budget = spec.budget && { budget: { name: `${workflow.name}/${spec.id}`, ...spec.budget } };
      const node: WorkflowNode = { ...plain, config, dependencies: [], join: "none_failed", ...budget };
      const { max_concurrency = null, collect = null } = spec.config;
      const own = { config: itemConfig ?? null, max_concurrency, collect };
      const around = new Set([...(item?.around ?? []), ...referredTo([{ ...node, config: own }], outside)]);
      const part = { ...base, name: `${workflow.name}[${spec.id}]`, nodes: [node], "x-millrace-part": true };
      return (chunk = subWorkflow(
        part,
        [...around].filter((id) => id !== spec.id),
      ));
    },
  };
}

function subWorkflow(workflow: Workflow, around: readonly string[]): SubWorkflow {
  const whole = { ...workflow, "x-millrace-around": around };
  return {
    hash: canonicalHash(whole as unknown as Json),
    text: JSON.stringify(whole),
    name: workflow.name,
    timeoutSeconds: workflow.timeout_seconds,
    around,
  };
}

/** The ids of nodes around that something in these nodes refers to. */
function referredTo(nodes: readonly WorkflowNode[], outside: (id: string) => boolean): string[] {
  const own = new Set(nodes.map((node) => node.id));
  const found = new Set<string>();
  const nodeIds: NodeIds = { has: (id) => own.has(id) || outside(id) };
  const note = (references: readonly Reference[]): void => {
    for (const reference of references) {
      if (reference.kind === "node" && !own.has(reference.id)) found.add(reference.id);
    }
  };
  for (const { config, condition, repeat, handler, concurrency, cache, budget } of nodes) {
    const { nodes: inner, ...rest } = config;
    for (const key of [concurrency?.key, cache?.key, budget?.key]) {
      if (typeof key === "string") note(compileValue(key, { nodeIds }).references);
    }
    note(compileValue(rest, { nodeIds }).references);
    if (condition !== undefined) note(compileCondition(condition, { nodeIds }).references);
    if (repeat !== undefined) note(compileCondition(repeat.until, { nodeIds }).references);
    if (handler === "router") {
      for (const route of (config["routes"] as readonly { when: string }[] | undefined) ?? []) {
        note(compileCondition(route.when, { nodeIds }).references);
      }
    }
    if (Array.isArray(inner)) {
      const below = referredTo(inner, (id) => own.has(id) || outside(id));
      for (const id of below) if (!own.has(id)) found.add(id);
    }
  }
  return [...found];
}

/** The lines of a plan, numbered as they are found and then put in order. */
class Lines {
  private readonly found = new Map<string, PlanLine & { readonly number: number }>();

  of(queue: string, priority: number): number {
    // The engine runs its own nodes at once: there is nothing to put in order.
    const line = queue === "" ? { queue, priority: 0 } : { queue, priority };
    const key = `${line.queue} ${line.priority}`;
    let known = this.found.get(key);
    if (known === undefined) this.found.set(key, (known = { ...line, number: this.found.size }));
    return known.number;
  }

  sorted(): { readonly lines: readonly PlanLine[]; readonly at: readonly number[] } {
    this.of("", 0);
    const lines = [...this.found.values()].toSorted(
      (a, b) => Number(b.queue === "") - Number(a.queue === "") || b.priority - a.priority || a.number - b.number,
    );
    const at: number[] = [];
    for (const [place, line] of lines.entries()) at[line.number] = place;
    return { lines: lines.map(({ queue, priority }) => ({ queue, priority })), at };
  }
}

/** The `output` nodes if there are any, else the sinks. */
function outputNodes(workflow: Workflow, graph: Graph): number[] {
  const declared: number[] = [];
  const sinks: number[] = [];
  for (let i = 0; i < graph.nodeCount; i++) {
    if (workflow.nodes[i]!.handler === "output") declared.push(i);
    if (graph.childStart[i] === graph.childStart[i + 1]) sinks.push(i);
  }
  return declared.length > 0 ? declared : sinks;
}

function isCaught(index: number, graph: Graph): boolean {
  for (let k = graph.childStart[index]!; k < graph.childStart[index + 1]!; k++) {
    if (graph.edgeOn[graph.childEdge[k]!] !== 0) return true;
  }
  return false;
}

/** An `output` node without config collects its parents' outputs, as does any node that says `inputs: true`. */
export function collectsParents(spec: WorkflowNode): boolean {
  return spec.inputs || (spec.handler === "output" && Object.keys(spec.config).length === 0);
}
