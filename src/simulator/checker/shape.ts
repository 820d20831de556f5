import type { DependencyOn, Join, RetryPolicy, Workflow, WorkflowNode } from "../../definition/workflow.ts";
import { isJsonObject, type Json } from "../../json/json.ts";

/** A definition as a graph. Made once per definition. */
export interface Shape {
  readonly workflow: Workflow;
  readonly nodes: readonly ShapeNode[];
  readonly indexOf: ReadonlyMap<string, number>;
  /** The nodes whose outputs make that of the execution. */
  readonly finals: readonly number[];
  /** Of the graph inside a map: the nodes around it that something inside refers to. */
  readonly around: ReadonlySet<string>;
  /** It is a part of a large map. */
  readonly isPart: boolean;
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
  /** What a router can choose from, in order; `else` comes last, without a condition. */
  readonly routes: readonly Route[];
  /** Everything that comes after it, however far. */
  readonly descendants: ReadonlySet<number>;
}

interface Edge {
  /** The node at the other end. */
  readonly node: number;
  readonly on: DependencyOn;
}

export interface Route {
  readonly when: string | null;
  readonly to: readonly string[];
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
      isPatient(workflow.nodes[index]!) &&
      parents[index]!.every(({ node }) => workflow.nodes[node]!.handler !== "router" && waitsForAll(node)));
  const below: (Set<number> | undefined)[] = [];
  const descendantsOf = (index: number): Set<number> => {
    let found = below[index];
    if (found !== undefined) return found;
    below[index] = found = new Set();
    for (const { node } of children[index]!) {
      found.add(node);
      for (const deeper of descendantsOf(node)) found.add(deeper);
    }
    return found;
  };
  const nodes = workflow.nodes.map((spec, index) => ({
    index,
    id: spec.id,
    spec,
    parents: parents[index]!,
    children: children[index]!,
    caught: children[index]!.some((edge) => edge.on !== "completed"),
    waitsForAll: waitsForAll(index),
    routes: spec.handler === "router" ? routesOf(spec) : [],
    descendants: descendantsOf(index),
  }));
  const declared = nodes.filter(({ spec }) => spec.handler === "output");
  const finals = declared.length > 0 ? declared : nodes.filter((node) => node.children.length === 0);
  const around = new Set((workflow["x-millrace-around"] as readonly string[] | undefined) ?? []);
  const isPart = workflow["x-millrace-part"] === true;
  return { workflow, nodes, indexOf, finals: finals.map(({ index }) => index), around, isPart };
}

function isPatient({ join, join_timeout_seconds }: WorkflowNode): boolean {
  return join !== "one_success" && !join.startsWith("quorum:") && join_timeout_seconds === undefined;
}

function routesOf({ config }: WorkflowNode): Route[] {
  const ids = (to: Json | undefined): string[] => [to ?? []].flat().filter((id) => typeof id === "string");
  const routes = Array.isArray(config["routes"]) ? (config["routes"] as readonly Json[]) : [];
  const named = routes.flatMap((route): Route[] =>
    isJsonObject(route) && typeof route["when"] === "string" ? [{ when: route["when"], to: ids(route["to"]) }] : [],
  );
  return config["else"] === undefined ? named : [...named, { when: null, to: ids(config["else"]) }];
}

/** What a map runs for each item, as a node without parents. An item that is a graph of its own has no handler. */
export function itemOf(map: ShapeNode, spec: WorkflowNode): ShapeNode {
  let item = ITEMS.get(spec);
  if (item !== undefined) return item;
  const { condition: _, repeat: _repeat, join_timeout_seconds: _timeout, ...plain } = spec;
  const { handler, config, retry, nodes } = spec.config;
  const own: WorkflowNode = {
    ...plain,
    handler: nodes === undefined && typeof handler === "string" ? handler : GRAPH,
    config: isJsonObject(config) ? config : {},
    dependencies: [],
    join: "none_failed" satisfies Join,
    inputs: false,
    ...(isJsonObject(retry) && { retry: retry as unknown as RetryPolicy }),
  };
  item = { ...map, spec: own, parents: [], children: [], caught: true, waitsForAll: true, routes: [] };
  ITEMS.set(spec, item);
  return item;
}

const ITEMS = new WeakMap<WorkflowNode, ShapeNode>();

/** Stands in the place of a handler where an item is a child execution of its own. */
export const GRAPH = "";
