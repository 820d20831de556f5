import type { Graph } from "./graph.ts";

/** An order in which every node comes after its parents, as far as there is one. */
export interface TopologicalOrder {
  /** The nodes in order. Nodes in a circle or behind one are missing. */
  readonly order: Int32Array;
  /** The position of a node in `order`, or -1. */
  readonly rank: Int32Array;
}

/** Kahn's algorithm: O(nodes + edges), no recursion. */
export function topologicalOrder(graph: Graph): TopologicalOrder {
  const { nodeCount, parentStart, childStart, childEdge, edgeChild } = graph;
  const waiting = new Int32Array(nodeCount);
  const order = new Int32Array(nodeCount);
  const rank = new Int32Array(nodeCount).fill(-1);
  let count = 0;
  for (let node = 0; node < nodeCount; node++) {
    waiting[node] = parentStart[node + 1]! - parentStart[node]!;
    if (waiting[node] === 0) order[count++] = node;
  }
  for (let next = 0; next < count; next++) {
    const node = order[next]!;
    rank[node] = next;
    for (let k = childStart[node]!; k < childStart[node + 1]!; k++) {
      const child = edgeChild[childEdge[k]!]!;
      if (--waiting[child]! === 0) order[count++] = child;
    }
  }
  return { order: order.subarray(0, count), rank };
}

export interface Cycles {
  /**
   * One circle for each group of nodes that all depend on each other: the shortest one through the group's first node
   * in the document, starting there, each node followed by one that depends on it. The number of all circles can be
   * exponential.
   */
  readonly cycles: readonly (readonly number[])[];
  /** Nodes that are in no circle, but behind one: they could never run. */
  readonly behind: readonly number[];
}

const NO_CYCLES: Cycles = { cycles: [], behind: [] };

export function findCycles(graph: Graph, { order, rank }: TopologicalOrder): Cycles {
  if (order.length === graph.nodeCount) return NO_CYCLES;
  const group = stronglyConnected(graph, rank);
  const size = new Map<number, number>();
  for (let node = 0; node < graph.nodeCount; node++) {
    if (rank[node] === -1) size.set(group[node]!, (size.get(group[node]!) ?? 0) + 1);
  }
  const cycles: number[][] = [];
  const behind: number[] = [];
  const seen = new Set<number>();
  const cameFrom = new Int32Array(graph.nodeCount).fill(-1);
  for (let node = 0; node < graph.nodeCount; node++) {
    if (rank[node] !== -1) continue;
    const own = group[node]!;
    if (size.get(own) === 1) behind.push(node);
    else if (!seen.has(own)) {
      seen.add(own);
      cycles.push(shortestCycle(graph, node, group, cameFrom));
    }
  }
  return { cycles, behind };
}

/** Tarjan's algorithm with a stack of its own, on the nodes that have no rank. Gives each node the number of its group. */
function stronglyConnected(graph: Graph, rank: Int32Array): Int32Array {
  const { nodeCount, childStart, childEdge, edgeChild } = graph;
  const visited = new Int32Array(nodeCount).fill(-1);
  const low = new Int32Array(nodeCount);
  const group = new Int32Array(nodeCount).fill(-1);
  const next = childStart.slice(0, nodeCount);
  const path: number[] = [];
  const open: number[] = [];
  let time = 0;
  let groups = 0;
  for (let root = 0; root < nodeCount; root++) {
    if (rank[root] !== -1 || visited[root] !== -1) continue;
    path.push(root);
    while (path.length > 0) {
      const node = path.at(-1)!;
      if (visited[node] === -1) {
        visited[node] = low[node] = time++;
        open.push(node);
      }
      let child = -1;
      while (next[node]! < childStart[node + 1]! && child === -1) {
        const candidate = edgeChild[childEdge[next[node]!]!]!;
        next[node]!++;
        if (rank[candidate] !== -1) continue;
        if (visited[candidate] === -1) child = candidate;
        else if (group[candidate] === -1) low[node] = Math.min(low[node]!, visited[candidate]!);
      }
      if (child !== -1) {
        path.push(child);
        continue;
      }
      path.pop();
      const parent = path.at(-1);
      if (parent !== undefined) low[parent] = Math.min(low[parent]!, low[node]!);
      if (low[node] !== visited[node]) continue;
      for (let member = open.pop(); member !== undefined; member = open.pop()) {
        group[member] = groups;
        if (member === node) break;
      }
      groups++;
    }
  }
  return group;
}

/** Breadth first from a node, within its group, until the way leads back to it. */
function shortestCycle(graph: Graph, start: number, group: Int32Array, cameFrom: Int32Array): number[] {
  const { childStart, childEdge, edgeChild } = graph;
  const queue = [start];
  for (const node of queue) {
    for (let k = childStart[node]!; k < childStart[node + 1]!; k++) {
      const child = edgeChild[childEdge[k]!]!;
      if (child === start) return wayTo(node, start, cameFrom);
      if (group[child] !== group[start] || cameFrom[child] !== -1) continue;
      cameFrom[child] = node;
      queue.push(child);
    }
  }
  throw new Error("a group of more than one node has a circle through each of them");
}

function wayTo(node: number, start: number, cameFrom: Int32Array): number[] {
  const way: number[] = [];
  for (let at = node; at !== start; at = cameFrom[at]!) way.push(at);
  way.push(start);
  return way.reverse();
}
