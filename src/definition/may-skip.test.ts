import * as fc from "fast-check";
import { expect, test } from "vitest";
import { topologicalOrder } from "./cycles.ts";
import { buildGraph } from "./graph.ts";
import { SkipAnalysis } from "./may-skip.ts";
import type { Dependency, Join, WorkflowNode } from "./workflow.ts";

const SIZE = 6;

const randomNodes = fc
  .array(
    fc.record({
      condition: fc.boolean(),
      join: fc.constantFrom<Join>("none_failed", "none_failed", "all_success", "all_done", "one_success", "quorum:2"),
      parents: fc.array(
        fc.tuple(fc.nat(SIZE), fc.constantFrom("completed", "completed", "completed", "failed", "done")),
        { maxLength: 3 },
      ),
    }),
    { minLength: 2, maxLength: SIZE },
  )
  .map((list) =>
    list.map(({ condition, join, parents }, i) => {
      const dependencies: Dependency[] = parents
        .filter(([parent]) => parent < i)
        .map(([parent, on]) => (on === "completed" ? `n${parent}` : { id: `n${parent}`, on: on }));
      const quorumFits = join !== "quorum:2" || dependencies.length >= 2;
      const base = { id: `n${i}`, dependencies, join: quorumFits ? join : "none_failed", on_error: "fail_fast" };
      return (condition ? { ...base, condition: "true" } : base) as unknown as WorkflowNode;
    }),
  );

/** Runs the workflow by the table of the contract, without failures. Bit i of `choices` decides condition i. */
function completedNodes(nodes: readonly WorkflowNode[], choices: number): boolean[] {
  const completed: boolean[] = [];
  for (const [i, { dependencies, join, condition }] of nodes.entries()) {
    const ok = dependencies.filter((dependency) => {
      const id = typeof dependency === "string" ? dependency : dependency.id;
      const on = typeof dependency === "string" ? "completed" : dependency.on;
      return on === "done" || (on === "completed" && completed[Number(id.slice(1))]!);
    }).length;
    const needed = join === "all_success" ? dependencies.length : join === "quorum:2" ? 2 : 1;
    const runs = dependencies.length === 0 || join === "all_done" || ok >= needed;
    completed.push(runs && (condition === undefined || (choices & (1 << i)) !== 0));
  }
  return completed;
}

test("a reference without a warning always finds an output, whatever the conditions say", () => {
  fc.assert(
    fc.property(randomNodes, (nodes) => {
      const graph = buildGraph(nodes);
      const skips = new SkipAnalysis(graph, topologicalOrder(graph), nodes, new Set());
      const reach = ancestorsOf(nodes);
      for (let choices = 0; choices < 1 << nodes.length; choices++) {
        const completed = completedNodes(nodes, choices);
        for (let node = 0; node < nodes.length; node++) {
          if (!completed[node]) continue;
          for (const ancestor of reach[node]!) {
            if (!completed[ancestor]) expect(skips.mayLack(node, ancestor)).toBe(true);
          }
        }
      }
    }),
    { numRuns: 1_000 },
  );
});

test("without conditions, routes and loose edges nothing is warned of", () => {
  const plain = randomNodes.map((nodes) =>
    nodes.map(({ id, dependencies }) => {
      const parents = [...new Set(dependencies.map((each) => (typeof each === "string" ? each : each.id)))];
      return { id, dependencies: parents, join: "none_failed", on_error: "fail_branch" } as unknown as WorkflowNode;
    }),
  );
  fc.assert(
    fc.property(plain, (nodes) => {
      const graph = buildGraph(nodes);
      const skips = new SkipAnalysis(graph, topologicalOrder(graph), nodes, new Set());
      ancestorsOf(nodes).forEach((ancestors, node) => {
        for (const ancestor of ancestors) expect(skips.mayLack(node, ancestor)).toBe(false);
      });
    }),
  );
});

function ancestorsOf(nodes: readonly WorkflowNode[]): Set<number>[] {
  const all: Set<number>[] = [];
  for (const { dependencies } of nodes) {
    const own = new Set<number>();
    for (const dependency of dependencies) {
      const parent = Number((typeof dependency === "string" ? dependency : dependency.id).slice(1));
      own.add(parent);
      for (const further of all[parent]!) own.add(further);
    }
    all.push(own);
  }
  return all;
}
