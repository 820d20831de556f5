import { describe, expect, test } from "vitest";
import { node, workflow } from "../../../test/support/workflows.ts";
import { executionMachine } from "./machine.ts";
import { buildPlan, type Plan } from "./plan.ts";
import type { PlanNode } from "./plan-node.ts";
import { randomBeginning, randomHistory } from "./test-histories.ts";
import { imprint } from "./test-execution.ts";

/** All that a node of a plan has, however it holds it. */
const FIELDS: Readonly<Record<Exclude<keyof PlanNode, "config" | "given" | "graphs" | "join" | "item">, true>> = {
  index: true,
  id: true,
  spec: true,
  engine: true,
  line: true,
  firstTry: true,
  condition: true,
  caught: true,
  reads: true,
  readerCount: true,
  final: true,
  until: true,
  routes: true,
  routed: true,
  gates: true,
  cache: true,
};

const shown = (planned: PlanNode): unknown => [
  ...Object.keys(FIELDS).map((field) => JSON.stringify(planned[field as keyof typeof FIELDS])),
  planned.config.references,
  planned.config.problems,
  planned.config.constant,
  planned.given.write({ x: 1 }, [], undefined, true),
  [0, 1, 2, 3].map((ok) => planned.join({ undecided: 0, ok, void: 1, bad: 1 })),
  planned.item === null,
  planned.graphs === null,
];

const histories = Array.from({ length: 60 }, (_, i) => (i % 2 === 0 ? randomHistory(i) : randomBeginning(i)));

describe("a plan in less room", () => {
  test("says the same of every node", () => {
    for (const { state } of histories) {
      const { hash, workflow: definition, nodes, quotedIds: _, ...plan } = state.plan;
      const { hash: __, workflow: ___, nodes: leanNodes, quotedIds: ____, ...lean } = buildPlan(hash, definition, 0);
      expect(leanNodes.map(shown)).toEqual(nodes.map(shown));
      expect(JSON.stringify(lean)).toEqual(JSON.stringify(plan));
    }
  });

  test("holds nodes by their number, their definition, what they read and what they share", () => {
    const nodes = [node("a"), node("b", ["a"], { config: { x: "{{ a.x }}" } }), node("c", ["a"], { condition: "a.x" })];
    const { nodes: lean } = buildPlan("hash", workflow(nodes), 0);
    expect(lean.map((each) => Object.keys(each).length < 5)).toEqual([true, true, false]);
  });

  test("has its executions fold to the same, and make the same tasks", () => {
    for (const trial of histories) {
      const { hash, workflow: definition } = trial.state.plan;
      const lean: Plan = buildPlan(hash, definition, 0);
      const state = executionMachine.create("x", lean);
      for (const event of trial.events) executionMachine.evolve(state, event);
      expect(imprint(state)).toBe(imprint(trial.state));
      const tasks = (of: typeof state): readonly string[] =>
        executionMachine.openTasks(of, trial.context).tasks.map(({ text }) => text);
      expect(tasks(state)).toEqual(tasks(trial.state));
      for (const event of trial.events) {
        expect(executionMachine.eventText!(state, event)).toBe(executionMachine.eventText!(trial.state, event));
      }
    }
  });

  test("compiles a config anew whose place another node has taken meanwhile", () => {
    const count = 1_025;
    const nodes = Array.from({ length: count }, (_, i) => node(`n${i}`, [], { config: { own: i } }));
    const plan = buildPlan("hash", workflow(nodes), 0);
    const own = (i: number): unknown => plan.nodes[i]!.config.resolve({} as never);
    for (const i of [0, 1_024, 0, 1, 1_024]) expect(own(i)).toMatchObject({ value: { own: i } });
  });
});
