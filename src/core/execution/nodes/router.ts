import type { Need } from "../../machine.ts";
import { templateError } from "../prepare.ts";
import { missingValues, scopeOf } from "../scope.ts";
import type { EngineNode } from "./engine-node.ts";

/**
 * Chooses among its dependants: the first route that fits, or all that fit; `else` if none does. What it has not chosen
 * is skipped, which `evolve` sees to. A condition that cannot be evaluated fails it, or does not fit if it says so.
 */
export const routerNode: EngineNode = (state, unit, context) => {
  const { routes, spec } = state.planOf(unit);
  const missing = missingValues(state, unit, context);
  if (missing.length > 0) return { kind: "needs", needs: missing };
  const scope = scopeOf(state, unit, context);
  const chosen = new Set<number>();
  for (const { when, to } of routes) {
    if (chosen.size > 0 && (when === null || spec.config["mode"] === "exclusive")) break;
    const verdict = when === null ? FITS : when.evaluate(scope);
    if (verdict.kind === "needs") return { kind: "needs", needs: verdict.blobs.map((blob): Need => ({ blob })) };
    if (verdict.kind === "failed") {
      if (spec.config["on_error"] === "skip") continue;
      return { kind: "failed", error: templateError(verdict.failure) };
    }
    if (verdict.value) for (const target of to) chosen.add(target);
  }
  return { kind: "completed", output: { chosen: [...chosen].map((node) => state.plan.graph.ids[node]!) } };
};

const FITS = { kind: "resolved", value: true } as const;
