import type { DependencyOn, Join, Workflow, WorkflowNode } from "../../definition/workflow.ts";

/** A definition as a graph. Made once per definition. */
export interface Shape {
  readonly workflow: Workflow;
  readonly nodes: readonly ShapeNode[];
  readonly indexOf: ReadonlyMap<string, number>;
}

export interface ShapeNode {
  readonly index: number;
  readonly id: string;
  readonly spec: WorkflowNode;
  /** In the order in which they are listed. */
  readonly parents: readonly Edge[];
  readonly children: readonly Edge[];
  /** Its failure is somebody's business: a dependant waits for it `on: failed | done`. */
  readonly caught: boolean;
  /** It, and every node before it, runs only when all parents have ended. */
  readonly waitsForAll: boolean;
}

interface Edge {
  /** The node at the other end. */
  readonly node: number;
  readonly on: DependencyOn;
}

const SHAPES = new WeakMap<Workflow, Shape>();

export function shapeOf(workflow: Workflow): Shape {
  let shape = SHAPES.get(workflow);
  if (shape === undefined) SHAPES.set(workflow, (shape = build(workflow)));
  return shape;
}

function build(workflow: Workflow): Shape {
  const indexOf = new Map(workflow.nodes.map((node, index) => [node.id, index]));
  const children: Edge[][] = workflow.nodes.map(() => []);
  const parents = workflow.nodes.map((node, index) =>
    node.dependencies.map((dependency): Edge => {
      const { id, on } = typeof dependency === "string" ? { id: dependency, on: "completed" as const } : dependency;
      const parent = indexOf.get(id)!;
      children[parent]!.push({ node: index, on });
      return { node: parent, on };
    }),
  );
  const patient: (boolean | undefined)[] = [];
  const waitsForAll = (index: number): boolean =>
    (patient[index] ??=
      isPatient(workflow.nodes[index]!.join) && parents[index]!.every((edge) => waitsForAll(edge.node)));
  const nodes = workflow.nodes.map((spec, index) => ({
    index,
    id: spec.id,
    spec,
    parents: parents[index]!,
    children: children[index]!,
    caught: children[index]!.some((edge) => edge.on !== "completed"),
    waitsForAll: waitsForAll(index),
  }));
  return { workflow, nodes, indexOf };
}

function isPatient(join: Join): boolean {
  return join !== "one_success" && !join.startsWith("quorum:");
}
