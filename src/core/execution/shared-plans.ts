import type { Workflow } from "../../definition/workflow.ts";
import { buildPlan, type Plan } from "./plan.ts";

/** A plan, and what it was made from. */
interface Made {
  readonly plan: Plan;
  readonly text: string;
}

/** They last as long as somebody has their plan. */
const made = new WeakMap<Plan, Made>();
const byHash = new Map<string, WeakRef<Made>>();
const gone = new FinalizationRegistry<string>((hash) => {
  // Another may have been made under the same hash since.
  if (byHash.get(hash)?.deref() === undefined) byHash.delete(hash);
});

/**
 * The plan of a definition, made once for all of a process that have it at the time: the engine that runs it and the API that shows
 * it would have one each, and of 100,000 nodes it is 160 MB. Nothing is kept for it: whoever uses plans again and again
 * has a cache of its own. The text is compared, because a store may hold anything under a hash.
 */
export function planOf(hash: string, text: string): Plan {
  const known = byHash.get(hash)?.deref();
  if (known?.text === text) return known.plan;
  const plan = buildPlan(hash, JSON.parse(text) as Workflow);
  const entry = { plan, text };
  made.set(plan, entry);
  byHash.set(hash, new WeakRef(entry));
  gone.register(entry, hash);
  return plan;
}
