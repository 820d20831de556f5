import { topologicalOrder } from "../definition/cycles.ts";
import { buildGraph } from "../definition/graph.ts";
import { ENGINE_HANDLERS, type RetryPolicy, type Workflow, type WorkflowNode } from "../definition/workflow.ts";

/** What can be said of a workflow before it has ever run. */
export interface WorkflowPlan {
  readonly nodes: number;
  readonly levels: number;
  /** The most nodes of one level: so many can run side by side at least. */
  readonly width: number;
  /** The workflow's own bound on that, if it has one. */
  readonly maxParallel: number | null;
  /** The way through the graph that can take longest, and how long that is. Time in queues is not in it. */
  readonly criticalPath: readonly string[];
  readonly worstCaseSeconds: number;
  /** 0 = none. Ends the execution, whatever the nodes may take. */
  readonly timeoutSeconds: number;
  /** Nodes whose time nobody can tell from the definition; they count as 0 above. */
  readonly unknown: readonly { readonly id: string; readonly why: string }[];
  /** Handlers that a worker has to bring. */
  readonly handlers: readonly string[];
}

/** Plans a workflow: worst case means that every attempt runs into its time limit and every wait lasts to its end. */
export function planWorkflow(workflow: Workflow): WorkflowPlan {
  const graph = buildGraph(workflow.nodes);
  const { order } = topologicalOrder(graph);
  const unknown: { id: string; why: string }[] = [];
  const until = new Float64Array(graph.nodeCount);
  const before = new Int32Array(graph.nodeCount).fill(-1);
  const level = new Int32Array(graph.nodeCount);
  let last = order[0] ?? 0;
  for (const node of order) {
    for (let edge = graph.parentStart[node]!; edge < graph.parentStart[node + 1]!; edge++) {
      const parent = graph.edgeParent[edge]!;
      level[node] = Math.max(level[node]!, level[parent]! + 1);
      if (before[node] === -1 || until[parent]! > until[before[node]!]!) before[node] = parent;
    }
    const own = nodeSeconds(workflow.nodes[node]!);
    if (typeof own === "string") unknown.push({ id: graph.ids[node]!, why: own });
    until[node] = (before[node] === -1 ? 0 : until[before[node]!]!) + (typeof own === "number" ? own : 0);
    if (until[node] > until[last]!) last = node;
  }
  const criticalPath: string[] = [];
  for (let node = last; node !== -1; node = before[node]!) criticalPath.unshift(graph.ids[node]!);
  const widths = new Map<number, number>();
  for (const one of level) widths.set(one, (widths.get(one) ?? 0) + 1);
  return {
    nodes: graph.nodeCount,
    levels: widths.size,
    width: Math.max(...widths.values()),
    maxParallel: workflow.max_parallel_nodes,
    criticalPath,
    worstCaseSeconds: until[last]!,
    timeoutSeconds: workflow.timeout_seconds,
    unknown,
    handlers: [...handlersOf(workflow.nodes)].sort(),
  };
}

/** Seconds, or why nobody can tell. */
function nodeSeconds(node: WorkflowNode): number | string {
  const once = ENGINE_HANDLERS.has(node.handler)
    ? engineSeconds(node)
    : attemptsSeconds(node.timeout_seconds ?? 0, node.retry);
  if (typeof once === "string" || node.repeat === undefined) return once;
  const { max, every_seconds: every } = node.repeat;
  return max * once + (max - 1) * every;
}

function attemptsSeconds(timeout: number, retry: RetryPolicy): number {
  let total = retry.max_attempts * timeout;
  for (let attempt = 1; attempt < retry.max_attempts; attempt++) {
    const wait = Math.min(retry.max_delay_seconds, retry.base_delay_seconds * retry.exponential_base ** (attempt - 1));
    total += wait * (1 + retry.jitter);
  }
  return total;
}

function engineSeconds({ handler, config }: WorkflowNode): number | string {
  switch (handler) {
    case "delay":
    case "wait": {
      const { seconds, signal, timeout_seconds: timeout } = config;
      if (signal !== undefined) return typeof timeout === "number" ? timeout : "its time limit is a template";
      if (config["until"] !== undefined) return "it waits for a date";
      return typeof seconds === "number" ? seconds : "its time is a template";
    }
    case "review":
      return typeof config["due_seconds"] === "number" ? config["due_seconds"] : "when it is due is a template";
    case "map":
      return "it depends on how many items there are";
    case "workflow":
      return "it depends on the other workflow";
    default:
      return 0;
  }
}

/** Handlers of workers, in maps too. */
function handlersOf(nodes: readonly WorkflowNode[]): Set<string> {
  const found = new Set<string>();
  for (const { handler, config } of nodes) {
    if (!ENGINE_HANDLERS.has(handler)) found.add(handler);
    if (handler !== "map") continue;
    const { handler: inner, nodes: within } = config;
    if (typeof inner === "string" && !ENGINE_HANDLERS.has(inner)) found.add(inner);
    if (Array.isArray(within)) for (const name of handlersOf(within)) found.add(name);
  }
  return found;
}
