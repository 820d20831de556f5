import { shareEqualParts } from "../../definition/share-equal.ts";
import type { Workflow } from "../../definition/workflow.ts";
import { contentHash } from "../../json/hash.ts";
import type { DefinitionAtHand } from "../machine.ts";
import { LEAN_FROM } from "./lean-nodes.ts";
import { buildPlan, type Plan } from "./plan.ts";
import { WeakIndex } from "./weak-index.ts";

/** A plan, and what it was made from. */
interface Made {
  readonly plan: Plan;
  /** The text, or the hash of a long one. */
  readonly from: string;
}

/** Somebody who has the text of a definition. */
interface TextHolder {
  readonly text: string;
  readonly chars: number;
  /** Its plan, once there is one. */
  readonly made: Plan | undefined;
  /** From now on there is a plan of it, which may hold all that the text does. */
  adopt(plan: Plan): void;
}

/** They last as long as somebody has their plan. */
const made = new WeakMap<Plan, Made>();
const plans = new WeakIndex<Made>();
const holders = new WeakIndex<TextHolder>();

/** Beyond this many characters a text is told from another by its hash, so that it need not be kept. */
const LONG_CHARS = 256 * 1024;

/**
 * The plan of a definition, made once for all of a process that have it at the time: the engine that runs it and the API that shows
 * it would have one each. Nothing is kept for it: whoever uses plans again and again has a cache of its own. The text is compared,
 * because a store may hold anything under a hash.
 */
export function planOf(hash: string, text: string): Plan {
  const from = text.length > LONG_CHARS ? contentHash(text) : text;
  const known = plans.get(hash);
  if (known?.from === from) return known.plan;
  const workflow = readWorkflow(text);
  const plan = buildPlan(hash, workflow);
  const entry = { plan, from };
  made.set(plan, entry);
  plans.set(hash, entry);
  return plan;
}

function readWorkflow(text: string): Workflow {
  const workflow = JSON.parse(text) as Workflow;
  if (workflow.nodes.length >= LEAN_FROM) shareEqualParts(workflow);
  return workflow;
}

/**
 * The definition of a large plan as a text, which nobody has to keep beside it: of 100,000 nodes it is 37 MB. It has the same
 * hash as the one the plan was made from, and is that one if it was written here. undefined of a small plan: its text is kept.
 */
export function textOfPlan({ workflow }: Plan): (() => string) | undefined {
  return workflow.nodes.length < LEAN_FROM ? undefined : () => JSON.stringify(workflow);
}

/** Says who has a text, for others of this process that need it. Only a long one is worth that. */
export function offerText(hash: string, holder: TextHolder): void {
  if (holder.chars > LONG_CHARS) holders.set(hash, holder);
}

/** A long definition that somebody in this process has checked and holds, or has made ready. */
export function planAtHand(hash: string): DefinitionAtHand | undefined {
  const holder = holders.get(hash);
  if (holder === undefined) return undefined;
  return {
    chars: holder.chars,
    text: () => holder.text,
    prepare: () => {
      if (holder.made !== undefined) return holder.made;
      const plan = planOf(hash, holder.text);
      holder.adopt(plan);
      return plan;
    },
  };
}
