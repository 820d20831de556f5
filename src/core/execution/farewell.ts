import type { BudgetSpec, WorkflowNode } from "../../definition/workflow.ts";
import { entityKey } from "../entity.ts";
import { gateEntity } from "../gate/rule.ts";
import type { Message } from "../message.ts";
import type { ExecutionState } from "./state.ts";

/** Whoever knows this execution only for its sake: the budgets that nobody else spends. */
export function farewell(state: ExecutionState): readonly Message[] {
  const { plan, tenant, trace, parent, id } = state;
  // A part of a map has spent for another.
  if (!plan.isSpending || parent?.account !== undefined) return [];
  const { name, budget, nodes } = plan.workflow;
  const execution = entityKey("execution", id);
  const names = new Set([...named(name, budget), ...budgetsIn(name, nodes)]);
  return Array.from(names, (called) => {
    const to = gateEntity({ kind: "budget", tenant, name: called, key: id });
    const body = { kind: "gateForsaken", execution } as const;
    return { id: `gateForsaken:${to}`, to, by: execution, trace, tenant, body };
  });
}

function named(own: string, budget: BudgetSpec | undefined): string[] {
  return budget === undefined || budget.key !== undefined ? [] : [budget.name ?? own];
}

/** Those of the graphs of maps too. A large map calls its parts, and these their items: there the names are longer. */
function* budgetsIn(workflow: string, nodes: readonly WorkflowNode[]): Generator<string, void> {
  for (const { id, handler, config, budget } of nodes) {
    yield* named(`${workflow}/${id}`, budget);
    const inner = handler === "map" ? config["nodes"] : undefined;
    if (!Array.isArray(inner)) continue;
    const below = inner as unknown as readonly WorkflowNode[];
    for (const called of [`${workflow}[${id}]`, `${workflow}[${id}][${id}]`]) yield* budgetsIn(called, below);
  }
}
