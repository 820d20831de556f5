import type { WorkflowNode } from "../../definition/workflow.ts";
import type { CompiledCondition, CompiledValue } from "../../expression/scope.ts";
import type { GivenText } from "./given-text.ts";
import type { JoinRule } from "./joins.ts";
import type { PlanCache } from "./plan-cache.ts";
import type { PlanGate } from "./plan-gates.ts";

/** What is known of a node before anything runs; also of the items of a map, which all have the same. */
export interface PlanNode {
  readonly index: number;
  readonly id: string;
  readonly spec: WorkflowNode;
  /** Runs in the engine, without a worker. */
  readonly engine: boolean;
  /** Its line in the plan. */
  readonly line: number;
  readonly config: CompiledValue;
  /** Its config and inputs as text. */
  readonly given: GivenText;
  /** The end of the token of its first try in the first generation; most never have another. */
  readonly firstTry: string;
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
  /** When enough rounds have been made. */
  readonly until: CompiledCondition | null;
  readonly routes: readonly PlanRoute[];
  /** Dependants of a router that some route names. */
  readonly routed: readonly number[];
  /** What a map runs for each item. */
  readonly item: PlanNode | null;
  /** The gates that each of its tasks has to pass, in this order. */
  readonly gates: readonly PlanGate[];
  /** Where its results are kept for others; null if they are not. */
  readonly cache: PlanCache | null;
  /** The workflow of a child that is no workflow of its own: the graph inside a map, or a part of a large map. */
  readonly graphs: { readonly item: SubWorkflow | null; chunk(): SubWorkflow } | null;
}

export interface PlanRoute {
  /** null for `else`. */
  readonly when: CompiledCondition | null;
  readonly to: readonly number[];
}

/** A definition that is stored when it is first needed. */
export interface SubWorkflow {
  readonly hash: string;
  readonly text: string;
  readonly name: string;
  readonly timeoutSeconds: number;
  readonly around: readonly string[];
}
