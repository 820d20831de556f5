import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { BudgetSpec } from "../../definition/workflow.ts";
import { type Evidence, isExecution } from "./evidence.ts";
import { LEAVING } from "./gates.ts";
import { type Found, type Invariant, placeOf, type Step } from "./invariant.ts";

type Asked = Extract<ExecutionEvent, { readonly kind: "gateAsked" }>;

/** What one task has asked of budgets since it last left its gates. */
interface Purse {
  /** The last ask, and whether it was refused. */
  last?: Asked;
  isRefused: boolean;
  /** The model it has to do with instead of its own. */
  model?: string;
}

interface Facts {
  /** By execution and version: of each dispatch, of each result and of each end, the model it had to do with. */
  readonly models: ReadonlyMap<string, string>;
  /** By execution and version: how a task stood with its budgets before the event. */
  readonly purses: ReadonlyMap<string, Purse>;
}

const KNOWN = new WeakMap<Evidence, Facts>();

/** The model that a task was sent out with, or has answered with, in place of its own. */
export function fallbackAt({ evidence, story }: Pick<Step, "evidence" | "story">): string | undefined {
  return factsOf(evidence).models.get(`${story.entity} ${story.version + 1}`);
}

function factsOf(evidence: Evidence): Facts {
  let known = KNOWN.get(evidence);
  if (known === undefined) KNOWN.set(evidence, (known = gatherFacts(evidence)));
  return known;
}

function gatherFacts(evidence: Evidence): Facts {
  const models = new Map<string, string>();
  const purses = new Map<string, Purse>();
  const open = new Map<string, Purse>();
  const out = new Set<string>();
  for (const { entry } of evidence.surviving) {
    for (const { entity, events, version } of entry.records) {
      if (!isExecution(entity)) continue;
      for (const [i, event] of events.entries()) {
        // What was out when it ended is not out in its next generation.
        if (event.kind === "executionEnded") {
          for (const task of out) if (task.startsWith(`${entity} `)) out.delete(task);
        }
        if (event.kind === "paused" || event.kind === "executionEnded") {
          for (const task of open.keys()) {
            const stays = event.kind === "paused" && out.has(task);
            if (task.startsWith(`${entity} `) && !stays) open.delete(task);
          }
        }
        if (!("node" in event)) continue;
        const task = `${entity} ${event.node}`;
        const purse = open.get(task) ?? { isRefused: false };
        const place = `${entity} ${version + i}`;
        if (event.kind === "gateAsked" || event.kind === "nodeFailed") purses.set(place, { ...purse });
        if (purse.model !== undefined && OF_MODEL.has(event.kind)) models.set(place, purse.model);
        if (event.kind === "taskDispatched") out.add(task);
        if (event.kind === "gateAsked" && event.wait === "budget") {
          purse.last = event;
          purse.isRefused = false;
          if (event.fallback !== undefined) purse.model = event.fallback;
          open.set(task, purse);
        }
        if (event.kind === "gateRefused" && event.ask === purse.last?.ask) purse.isRefused = true;
        if (!LEAVING.has(event.kind)) continue;
        out.delete(task);
        for (const one of open.keys()) if (one === task || one.startsWith(`${task}[`)) open.delete(one);
      }
    }
  }
  return { models, purses };
}

/** These depend on the model: what goes out, what came back, and what had come late and counts now. */
const OF_MODEL: ReadonlySet<ExecutionEvent["kind"]> = new Set(["taskDispatched", "taskCompleted", "nodeCompleted"]);

/** Another model is asked for once, where a budget that names it has refused; and who has one fails only after that. */
const fallbacksAreRight: Invariant = {
  id: "I38d",
  name: "another model when a budget is not enough",
  before(step, found) {
    const { event, evidence, story } = step;
    if (event.kind !== "gateAsked" && event.kind !== "nodeFailed") return;
    const purse = factsOf(evidence).purses.get(`${story.entity} ${story.version + 1}`);
    if (purse === undefined) return;
    if (event.kind === "gateAsked" && event.wait === "budget") judgeAsk(step, event, purse, found);
    if (event.kind === "nodeFailed" && event.error.code === "BUDGET_EXCEEDED") {
      const { budget } = event.error.details as { readonly budget: string };
      judgeEnd(step, budget, purse, found);
    }
  },
};

function judgeAsk(step: Step, { fallback, gate }: Asked, { last, isRefused }: Purse, found: Found): void {
  if (fallback === undefined) {
    if (isRefused) found(`It asks ${gate} for its own model, and was refused it`, placeOf(step));
    return;
  }
  if (!isRefused || last?.gate !== gate) found(`It asks ${gate} for ${fallback}, and was not refused`, placeOf(step));
  else if (last.fallback !== undefined) found(`It asks ${gate} for ${fallback} a second time`, placeOf(step));
  const named = budgetsOf(step).map((budget) => budget.fallback);
  if (!named.includes(fallback)) found(`It asks for ${fallback}, which none of its budgets names`, placeOf(step));
}

function judgeEnd(step: Step, name: string, { last, isRefused }: Purse, found: Found): void {
  const { story, node } = step;
  const workflow = story.shape?.workflow;
  // What runs inside of a map has the budget of the workflow around it, by that one's name.
  const isWorkflows = name === (workflow?.budget?.name ?? workflow?.name);
  const budget = isWorkflows ? workflow?.budget : node?.spec.budget;
  if (budget?.on_limit !== "fallback") return;
  if (!isRefused || last?.fallback === undefined) {
    found(`It failed for want of money, and nobody was asked for ${budget.fallback}`, placeOf(step));
  }
}

function budgetsOf({ story, node }: Step): readonly BudgetSpec[] {
  return [node?.spec.budget, story.shape?.workflow.budget].filter((budget) => budget !== undefined);
}

export const FALLBACKS: readonly Invariant[] = [fallbacksAreRight];
