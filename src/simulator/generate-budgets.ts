import type { BudgetSpec, Workflow, WorkflowNode } from "../definition/workflow.ts";
import type { Json } from "../json/json.ts";
import { Random } from "./random.ts";

/** Part of the worlds spend; the others are what they were before there were budgets. */
const SPENDING_WORLDS = 0.25;

/** Draws whether a world spends, beside all else that is drawn of its seed. The number spares the worlds that have names. */
function ownRandom(seed: number): { readonly random: Random; readonly isSpending: boolean } {
  const random = new Random(seed ^ 0x4f5a9de5);
  return { random, isSpending: random.chance(SPENDING_WORLDS) };
}

export function isSpendingWorld(seed: number): boolean {
  return ownRandom(seed).isSpending;
}

/** What a call uses in such a world: mostly what was thought, and now and then much more. Some do not say. */
export function usageOf(name: number): { readonly tokens: number } | undefined {
  const random = new Random(name ^ 0x5bd1e995);
  if (random.chance(0.2)) return undefined;
  return { tokens: random.chance(0.1) ? random.integer(20, 60) : random.integer(0, 12) };
}

/** In part of these a budget that is used up has another model to do with, at a price. */
const THRIFTY_WORLDS = 0.5;
const SMALL_MODEL = "small";

/** The budgets of one world, and limits on what it spends. */
export class WorldBudgets {
  private readonly random: Random;
  private readonly isSpending: boolean;
  /** Beside all else that is drawn, as before; the number spares the worlds that have names. */
  private readonly models: Random;
  private readonly isThrifty: boolean;

  constructor(seed: number) {
    const { random, isSpending } = ownRandom(seed);
    this.random = random;
    this.isSpending = isSpending;
    this.models = new Random(seed ^ 0xea54e58b);
    this.isThrifty = this.models.chance(THRIFTY_WORLDS);
  }

  put(workflow: Workflow): Workflow {
    if (!this.isSpending) return workflow;
    const { random } = this;
    const limits = { words: { tokens_per_minute: random.pick([600, 3_000]), tokens_burst: random.integer(10, 60) } };
    return {
      ...workflow,
      limits: { ...workflow.limits, ...limits },
      ...(random.chance(0.4) && { budget: this.budget("{{ input.n | default(0) }}") }),
      nodes: workflow.nodes.map((node) => this.spending(node)),
    };
  }

  private spending(node: WorkflowNode): WorkflowNode {
    const { handler, config } = node;
    const inner = handler === "map" ? config["nodes"] : undefined;
    if (Array.isArray(inner)) {
      const nodes = (inner as unknown as readonly WorkflowNode[]).map((each) => this.spending(each));
      return { ...node, config: { ...config, nodes: nodes as unknown as Json } };
    }
    const { random } = this;
    const isTask = handler === "step" || (handler === "map" && config["handler"] === "step");
    if (!isTask || !random.chance(0.6)) return node;
    const limit = { name: "words", cost: 1, tokens: random.integer(1, 20) };
    return {
      ...node,
      ...(random.chance(0.5) && { budget: this.budget("{{ input.n | default(0) }}") }),
      ...(node.limit === undefined && random.chance(0.4) && { limit }),
    };
  }

  private budget(key: string): BudgetSpec {
    const { random } = this;
    return this.thrifty({
      ...(random.chance(0.6) && { tokens: random.integer(10, 200) }),
      calls: random.integer(1, 30),
      ...(random.chance(0.4) && { key }),
      on_limit: random.pick(["fail", "pause", "pause"]),
      estimate: { tokens: random.integer(1, 12) },
    });
  }

  /** A small model costs a dollar and more, for its answer may have a thousand words; the node's own is free. */
  private thrifty(budget: BudgetSpec): BudgetSpec {
    const { models } = this;
    if (!this.isThrifty || !models.chance(0.6)) return budget;
    const prices = { [SMALL_MODEL]: { input: 1, output: 1_000 } };
    const money = models.chance(0.7) ? { usd: models.integer(2, 12), prices } : {};
    return { ...budget, on_limit: "fallback", fallback: SMALL_MODEL, ...money };
  }
}
