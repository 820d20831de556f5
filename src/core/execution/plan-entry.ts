import type { Workflow } from "../../definition/workflow.ts";
import type { CompiledValue } from "../../expression/scope.ts";
import { compileValue } from "../../expression/template.ts";
import type { ConcurrencyRule } from "../gate/rule.ts";
import { isCount } from "./plan-gates.ts";

/** The gate that executions of a workflow have to pass before anything of them runs. */
export interface PlanEntry {
  readonly rule: ConcurrencyRule;
  /** What makes it one of many; it can read the input only. */
  readonly key: CompiledValue | null;
  readonly name: string;
}

/** Definitions of an earlier release hold what was written there, looked at by nobody. */
export function planEntry({ name, concurrency }: Workflow): PlanEntry | null {
  if (!isCount(concurrency?.limit)) return null;
  const { limit, on_conflict: onConflict } = concurrency;
  const key = typeof concurrency.key === "string" ? compileValue(concurrency.key, { nodeIds: NO_NODES }) : null;
  // No limit has a space in its name, and nothing of a node is without a slash.
  return { rule: { kind: "concurrency", limit, onConflict }, key, name: `workflow ${name}` };
}

const NO_NODES: ReadonlySet<string> = new Set();
