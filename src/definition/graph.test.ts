import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { answerAncestors } from "./ancestors.ts";
import { findCycles, topologicalOrder } from "./cycles.ts";
import { buildGraph, EDGE_ON, type Graph, type GraphNode } from "./graph.ts";

const parentsOf = (graph: Graph, node: number): number[] => [
  ...graph.edgeParent.subarray(graph.parentStart[node], graph.parentStart[node + 1]),
];
const childrenOf = (graph: Graph, node: number): number[] =>
  [...graph.childEdge.subarray(graph.childStart[node], graph.childStart[node + 1])].map(
    (edge) => graph.edgeChild[edge]!,
  );

describe("buildGraph", () => {
  test("numbers nodes and edges in document order and groups edges both ways", () => {
    const graph = buildGraph([
      { id: "a", dependencies: [] },
      { id: "b", dependencies: ["a", { id: "c", on: "failed" }] },
      { id: "c", dependencies: [{ id: "a", on: "done" }] },
    ]);
    expect([graph.nodeCount, graph.edgeCount]).toEqual([3, 3]);
    expect([0, 1, 2].map((node) => parentsOf(graph, node))).toEqual([[], [0, 2], [0]]);
    expect([0, 1, 2].map((node) => childrenOf(graph, node))).toEqual([[1, 2], [], [1]]);
    expect([...graph.edgeOn].map((on) => EDGE_ON[on])).toEqual(["completed", "failed", "done"]);
    expect(graph.indexOf.get("c")).toBe(2);
  });

  test("what has no place in a graph leaves no edge", () => {
    const graph = buildGraph([
      { id: "a", dependencies: ["a", "nobody"] },
      { id: "b", dependencies: ["a"] },
      { id: "a", dependencies: ["b"] },
    ]);
    expect(graph.edgeCount).toBe(1);
    expect(graph.indexOf.get("a")).toBe(0);
  });
});

const randomGraph = fc
  .tuple(fc.integer({ min: 1, max: 9 }), fc.array(fc.tuple(fc.nat(8), fc.nat(8)), { maxLength: 20 }))
  .map(([size, edges]): GraphNode[] =>
    Array.from({ length: size }, (_, i) => ({
      id: `n${i}`,
      dependencies: [...new Set(edges.filter(([child]) => child === i).map(([, parent]) => parent))]
        .filter((parent) => parent !== i && parent < size)
        .map((parent) => `n${parent}`),
    })),
  );

/** reach[a][b]: there is a way of at least one edge from a to b. The slow and obvious way. */
function reachability(graph: Graph): boolean[][] {
  const reach = Array.from({ length: graph.nodeCount }, (_, a) =>
    Array.from({ length: graph.nodeCount }, (_, b) => parentsOf(graph, b).includes(a)),
  );
  for (let k = 0; k < graph.nodeCount; k++)
    for (const row of reach) if (row[k]) for (let b = 0; b < graph.nodeCount; b++) row[b] ||= reach[k]![b]!;
  return reach;
}

/** The length of the shortest way from a node back to itself. */
function girth(graph: Graph, start: number): number {
  let frontier = new Set(childrenOf(graph, start));
  for (let length = 1; length <= graph.nodeCount; length++) {
    if (frontier.has(start)) return length;
    frontier = new Set([...frontier].flatMap((node) => childrenOf(graph, node)));
  }
  return Number.POSITIVE_INFINITY;
}

test("a question beyond the work limit has no answer, the others keep theirs", () => {
  const graph = buildGraph([
    { id: "a", dependencies: [] },
    { id: "b", dependencies: [] },
    { id: "c", dependencies: ["a", "b"] },
    { id: "d", dependencies: ["c"] },
  ]);
  const questions = [
    { node: 3, ancestor: 0 },
    { node: 3, ancestor: 1 },
    { node: 0, ancestor: 3 },
  ];
  const topology = topologicalOrder(graph);
  expect(answerAncestors(graph, topology, questions)).toEqual([true, true, false]);
  expect(answerAncestors(graph, topology, questions, 0)).toEqual([true, undefined, false]);
});

describe("random graphs against the slow and obvious way", () => {
  test("a topological order has parents first, and misses exactly what is in or behind a circle", () => {
    fc.assert(
      fc.property(randomGraph, (nodes) => {
        const graph = buildGraph(nodes);
        const reach = reachability(graph);
        const { order, rank } = topologicalOrder(graph);
        for (const node of order)
          for (const parent of parentsOf(graph, node)) expect(rank[parent]).toBeLessThan(rank[node]!);
        for (let node = 0; node < graph.nodeCount; node++) {
          const stuck = reach.some((row, a) => row[a] && (a === node || row[node]));
          expect(rank[node] === -1).toBe(stuck);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("one shortest circle is found for each group of nodes that reach each other", () => {
    fc.assert(
      fc.property(randomGraph, (nodes) => {
        const graph = buildGraph(nodes);
        const reach = reachability(graph);
        const { cycles, behind } = findCycles(graph, topologicalOrder(graph));
        const firsts: number[] = [];
        const stuckBehind: number[] = [];
        for (let node = 0; node < graph.nodeCount; node++) {
          const isFirst = reach[node]![node] && !firsts.some((first) => reach[first]![node] && reach[node]![first]);
          if (isFirst) firsts.push(node);
          if (!reach[node]![node] && reach.some((row, a) => row[a] && row[node])) stuckBehind.push(node);
        }
        expect(cycles.map(([first]) => first)).toEqual(firsts);
        expect(behind).toEqual(stuckBehind);
        for (const cycle of cycles) {
          expect(cycle).toHaveLength(girth(graph, cycle[0]!));
          cycle.forEach((node, i) => expect(childrenOf(graph, node)).toContain(cycle[(i + 1) % cycle.length]));
        }
      }),
      { numRuns: 500 },
    );
  });

  test("ancestors are those from which there is a way", () => {
    fc.assert(
      fc.property(randomGraph, (nodes) => {
        const graph = buildGraph(nodes);
        const reach = reachability(graph);
        const topology = topologicalOrder(graph);
        const ranked = [...topology.order];
        const questions = ranked.flatMap((node) =>
          ranked.filter((a) => a !== node).map((ancestor) => ({ node, ancestor })),
        );
        const answers = answerAncestors(graph, topology, questions);
        questions.forEach(({ node, ancestor }, i) => expect(answers[i]).toBe(reach[ancestor]![node]));
      }),
      { numRuns: 500 },
    );
  });
});
