import { buildGraph, type Graph } from "../../definition/graph.ts";
import { type Workflow, type WorkflowNode, ENGINE_HANDLERS } from "../../definition/workflow.ts";
import { compileCondition } from "../../expression/condition.ts";
import type { CompiledCondition, CompiledValue, Reference } from "../../expression/scope.ts";
import { compileValue } from "../../expression/template.ts";
import { type JoinRule, joinRule } from "./joins.ts";

/** A definition made ready to run: compiled once per version, shared by all its executions, never changed. */
export interface Plan {
  readonly hash: string;
  readonly workflow: Workflow;
  readonly graph: Graph;
  readonly nodes: readonly PlanNode[];
  /** The nodes whose outputs make the execution's output. */
  readonly outputs: readonly number[];
  /** Every queue its tasks go to, in document order; the empty name stands for the engine's own nodes. */
  readonly queues: readonly string[];
  /** True if the execution's output is that of its only `output` node, not an object by node id. */
  readonly soleOutput: boolean;
}

export interface PlanNode {
  readonly index: number;
  readonly id: string;
  readonly spec: WorkflowNode;
  /** Runs in the engine, without a worker. */
  readonly engine: boolean;
  readonly config: CompiledValue;
  readonly condition: CompiledCondition | null;
  readonly join: JoinRule;
  /** Has a dependant `on: failed | done`, so that its failure is somebody's business and stops nothing. */
  readonly caught: boolean;
  /** Nodes whose output this one may read: in templates, conditions or as `inputs`. */
  readonly reads: readonly number[];
  /** How many nodes may read this one's output. */
  readonly readerCount: number;
  /** Its output is part of the execution's. */
  readonly final: boolean;
}

export function buildPlan(hash: string, workflow: Workflow): Plan {
  const graph = buildGraph(workflow.nodes);
  const readerCount = new Int32Array(graph.nodeCount);
  const outputs = outputNodes(workflow, graph);
  const final = new Set(outputs);
  const drafts = workflow.nodes.map((spec, index) => {
    const config = compileValue(spec.config, { nodeIds: graph.indexOf });
    const condition =
      spec.condition === undefined ? null : compileCondition(spec.condition, { nodeIds: graph.indexOf });
    const reads = nodesRead(spec, index, graph, config.references, condition?.references ?? []);
    for (const read of reads) readerCount[read]!++;
    return { index, id: spec.id, spec, config, condition, reads };
  });
  const nodes = drafts.map((draft): PlanNode => ({
    ...draft,
    engine: ENGINE_HANDLERS.has(draft.spec.handler),
    join: joinRule(draft.spec.join),
    caught: isCaught(draft.index, graph),
    readerCount: readerCount[draft.index]!,
    final: final.has(draft.index),
  }));
  const soleOutput = outputs.length === 1 && workflow.nodes[outputs[0]!]!.handler === "output";
  const queues = [...new Set(nodes.map((node) => (node.engine ? "" : node.spec.queue)))];
  return { hash, workflow, graph, nodes, outputs, queues, soleOutput };
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

function nodesRead(
  spec: WorkflowNode,
  index: number,
  graph: Graph,
  ...references: readonly (readonly Reference[])[]
): readonly number[] {
  const reads = new Set<number>();
  for (const list of references) {
    for (const reference of list) {
      const read = reference.kind === "node" ? graph.indexOf.get(reference.id) : undefined;
      if (read !== undefined) reads.add(read);
    }
  }
  if (collectsParents(spec)) {
    for (let edge = graph.parentStart[index]!; edge < graph.parentStart[index + 1]!; edge++) {
      reads.add(graph.edgeParent[edge]!);
    }
  }
  return reads.size === 0 ? NONE : [...reads];
}

const NONE: readonly number[] = [];
