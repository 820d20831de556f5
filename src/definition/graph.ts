import type { Dependency, DependencyOn } from "./workflow.ts";

/**
 * The shape of a workflow as typed arrays: 100,000 nodes and 1,000,000 edges take about 20 MB and no object each.
 *
 * Nodes are numbered 0..n-1 in document order. Edges are numbered in the order in which the children list them, so the
 * edges of one child are neighbours; `childEdge` groups the same edge numbers by parent.
 */
export interface Graph {
  readonly nodeCount: number;
  readonly edgeCount: number;
  readonly ids: readonly string[];
  readonly indexOf: ReadonlyMap<string, number>;
  /** Length n+1: the edges into child i are [parentStart[i], parentStart[i+1]). */
  readonly parentStart: Int32Array;
  /** Per edge. */
  readonly edgeParent: Int32Array;
  /** Per edge. */
  readonly edgeChild: Int32Array;
  /** Per edge: an index into EDGE_ON. */
  readonly edgeOn: Uint8Array;
  /** Length n+1: the edges out of parent i are childEdge[childStart[i]] to childEdge[childStart[i+1]-1]. */
  readonly childStart: Int32Array;
  /** Edge numbers, grouped by parent, in document order of the children. */
  readonly childEdge: Int32Array;
}

/** What `edgeOn` counts by. */
export const EDGE_ON: readonly DependencyOn[] = ["completed", "failed", "done"];

const EDGE_ON_CODE: Readonly<Record<DependencyOn, number>> = { completed: 0, failed: 1, done: 2 };

/** The part of a node that makes the graph. */
export interface GraphNode {
  readonly id: string;
  readonly dependencies: readonly Dependency[];
}

/**
 * Builds the graph in O(nodes + edges).
 *
 * Validation builds it from definitions that may still be wrong, so what has no place in a graph leaves no edge: a
 * dependency on an unknown node, on the node itself, and everything that a second node with the same id lists (the
 * first one counts). In a valid definition there is none of these.
 */
export function buildGraph(nodes: readonly GraphNode[]): Graph {
  const nodeCount = nodes.length;
  const ids: string[] = Array.from({ length: nodeCount });
  const indexOf = new Map<string, number>();
  let edgeLimit = 0;
  for (let i = 0; i < nodeCount; i++) {
    const node = nodes[i]!;
    ids[i] = node.id;
    if (!indexOf.has(node.id)) indexOf.set(node.id, i);
    edgeLimit += node.dependencies.length;
  }

  const parentStart = new Int32Array(nodeCount + 1);
  const edgeParents = new Int32Array(edgeLimit);
  const edgeChildren = new Int32Array(edgeLimit);
  const edgeOns = new Uint8Array(edgeLimit);
  let edgeCount = 0;
  for (let child = 0; child < nodeCount; child++) {
    parentStart[child] = edgeCount;
    const node = nodes[child]!;
    if (indexOf.get(node.id) !== child) continue;
    for (const dependency of node.dependencies) {
      const bare = typeof dependency === "string";
      const parent = indexOf.get(bare ? dependency : dependency.id);
      if (parent === undefined || parent === child) continue;
      edgeParents[edgeCount] = parent;
      edgeChildren[edgeCount] = child;
      edgeOns[edgeCount] = bare ? 0 : EDGE_ON_CODE[dependency.on];
      edgeCount++;
    }
  }
  parentStart[nodeCount] = edgeCount;

  const edgeParent = edgeParents.subarray(0, edgeCount);
  return {
    nodeCount,
    edgeCount,
    ids,
    indexOf,
    parentStart,
    edgeParent,
    edgeChild: edgeChildren.subarray(0, edgeCount),
    edgeOn: edgeOns.subarray(0, edgeCount),
    ...groupByParent(nodeCount, edgeParent),
  };
}

/** A counting sort of the edge numbers by parent; stable, so children keep their document order. */
function groupByParent(nodeCount: number, edgeParent: Int32Array): Pick<Graph, "childStart" | "childEdge"> {
  const childStart = new Int32Array(nodeCount + 1);
  for (let edge = 0; edge < edgeParent.length; edge++) childStart[edgeParent[edge]! + 1]!++;
  for (let i = 0; i < nodeCount; i++) childStart[i + 1]! += childStart[i]!;

  const childEdge = new Int32Array(edgeParent.length);
  const next = childStart.slice(0, nodeCount);
  for (let edge = 0; edge < edgeParent.length; edge++) childEdge[next[edgeParent[edge]!]!++] = edge;
  return { childStart, childEdge };
}
