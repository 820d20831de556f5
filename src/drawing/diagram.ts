import { topologicalOrder } from "../definition/cycles.ts";
import { buildGraph, EDGE_ON, type Graph } from "../definition/graph.ts";
import type { DependencyOn, Workflow, WorkflowNode } from "../definition/workflow.ts";
import { foldParts } from "./fold-parts.ts";

/** A workflow as it is drawn: what stands beside what, and who waits for whom. */
export interface Diagram {
  readonly name: string;
  readonly nodes: readonly DiagramNode[];
  readonly edges: readonly DiagramEdge[];
  /** Node numbers by level, each in document order: a level depends only on those before it. */
  readonly levels: readonly (readonly number[])[];
}

export interface DiagramNode {
  readonly id: string;
  readonly handler: string;
  readonly condition?: string;
  readonly level: number;
}

/** By node numbers. */
export interface DiagramEdge {
  readonly from: number;
  readonly to: number;
  readonly on: DependencyOn;
}

/** The diagram of a valid workflow, as it was written. O(nodes + edges). */
export function diagramOf(workflow: Workflow): Diagram {
  const written = foldParts(workflow);
  const graph = buildGraph(written);
  const level = levelsOf(graph);
  const levels: number[][] = [];
  for (let node = 0; node < graph.nodeCount; node++) (levels[level[node]!] ??= []).push(node);
  const edges = Array.from({ length: graph.edgeCount }, (_, edge): DiagramEdge => {
    return { from: graph.edgeParent[edge]!, to: graph.edgeChild[edge]!, on: EDGE_ON[graph.edgeOn[edge]!]! };
  });
  const nodes = written.map((node, i): DiagramNode => {
    const { id, condition } = node;
    return { id, handler: shownHandler(node), level: level[i]!, ...(condition !== undefined && { condition }) };
  });
  return { name: workflow.name, nodes, edges, levels };
}

/** The length of the longest way to each node. */
function levelsOf(graph: Graph): Int32Array {
  const level = new Int32Array(graph.nodeCount);
  for (const node of topologicalOrder(graph).order) {
    for (let edge = graph.parentStart[node]!; edge < graph.parentStart[node + 1]!; edge++) {
      level[node] = Math.max(level[node]!, level[graph.edgeParent[edge]!]! + 1);
    }
  }
  return level;
}

/** A map is one box, whatever is in it. */
function shownHandler({ handler, config }: WorkflowNode): string {
  if (handler === "workflow" && typeof config["name"] === "string") return `workflow ${config["name"]}`;
  if (handler !== "map") return handler;
  const { handler: inner, nodes } = config;
  if (typeof inner === "string") return `map of ${inner}`;
  const count = Array.isArray(nodes) ? nodes.length : Object.keys(nodes ?? {}).length;
  return `map of ${count} ${count === 1 ? "node" : "nodes"}`;
}
