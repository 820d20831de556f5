import { compileValue } from "../expression/template.ts";
import { isJsonObject, type Json } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { BUDGET_FIELDS, ESTIMATE_FIELDS, PRICE_FIELDS } from "./fields.ts";
import type { ProblemList } from "./problems.ts";
import { fieldReader, readFields, reportIdle, wrongType } from "./read-fields.ts";
import type { BudgetSpec, Prices } from "./workflow.ts";

const BUDGET = fieldReader("A budget", BUDGET_FIELDS);
const ESTIMATE = fieldReader("An estimate", ESTIMATE_FIELDS);
const PRICE = fieldReader("A price", PRICE_FIELDS);

/**
 * A budget with its defaults. The prices of the settings are written out where money is counted, so that a stored workflow
 * reckons as it did when it was accepted.
 */
export function loadBudget(
  raw: Json,
  pointer: string,
  known: Prices | undefined,
  problems: ProblemList,
): BudgetSpec | undefined {
  if (!isJsonObject(raw)) {
    wrongType("budget", "an object", raw, pointer, problems);
    return undefined;
  }
  const given = readFields(BUDGET, raw, () => pointer, problems);
  const { tokens, usd, calls, seconds, key, on_limit: onLimit = "fail", fallback } = given as Partial<BudgetSpec>;
  if ([tokens, usd, calls, seconds].every((each) => each === undefined)) {
    const reason = 'a budget needs "usd", "tokens", "calls" or "seconds"';
    problems.add("CONFIG_INVALID", pointer, { id: "", reason }, { hint: 'For instance {"usd": 5}.' });
  }
  if (onLimit === "fallback" && fallback === undefined) {
    const reason = '"on_limit": "fallback" needs the name of a model under "fallback"';
    problems.add("CONFIG_INVALID", pointer + pointerStep("on_limit"), { id: "", reason });
  }
  if (onLimit !== "fallback") reportIdle(given, "fallback", '"on_limit": "fallback"', pointer, problems);
  if (usd === undefined) reportIdle(given, "prices", '"usd"', pointer, problems);
  const estimate = loadEstimate(given["estimate"], pointer + pointerStep("estimate"), problems);
  const prices = { ...known, ...loadPrices(given["prices"], pointer + pointerStep("prices"), problems) };
  return {
    ...(tokens !== undefined && { tokens }),
    ...(usd !== undefined && { usd }),
    ...(calls !== undefined && { calls }),
    ...(seconds !== undefined && { seconds }),
    ...(key !== undefined && { key }),
    on_limit: onLimit,
    ...(onLimit === "fallback" && fallback !== undefined && { fallback }),
    ...(estimate !== undefined && { estimate }),
    ...(usd !== undefined && Object.keys(prices).length > 0 && { prices }),
  };
}

/** That of a workflow counts for all its nodes, before any of them has run: its key can only be made of the input. */
export function loadWorkflowBudget(
  raw: Json,
  pointer: string,
  known: Prices | undefined,
  problems: ProblemList,
): BudgetSpec | undefined {
  const budget = loadBudget(raw, pointer, known, problems);
  if (budget?.key === undefined) return budget;
  const { references, problems: faults } = compileValue(budget.key, { nodeIds: new Set() });
  const at = pointer + pointerStep("key");
  for (const { code, message, hint } of faults) problems.add(code, at, { reason: message }, { hint });
  if (references.some(({ kind }) => kind !== "input" && kind !== "execution")) {
    const reason = '"key" of the budget of a workflow can be made of the input only';
    problems.add("CONFIG_INVALID", at, { id: "", reason });
  }
  return budget;
}

function loadEstimate(raw: Json | undefined, pointer: string, problems: ProblemList): BudgetSpec["estimate"] {
  if (raw === undefined) return undefined;
  if (isJsonObject(raw)) return readFields(ESTIMATE, raw, () => pointer, problems);
  wrongType("estimate", "an object", raw, pointer, problems);
  return undefined;
}

function loadPrices(raw: Json | undefined, pointer: string, problems: ProblemList): Prices {
  if (raw === undefined) return {};
  if (!isJsonObject(raw)) {
    wrongType("prices", "an object", raw, pointer, problems);
    return {};
  }
  const prices: Record<string, Prices[string]> = {};
  for (const [model, value] of Object.entries(raw)) {
    const at = pointer + pointerStep(model);
    if (!isJsonObject(value)) {
      wrongType(model, "an object", value, at, problems);
      continue;
    }
    const { input = 0, output = 0 } = readFields(PRICE, value, () => at, problems) as Partial<Prices[string]>;
    prices[model] = { input, output };
  }
  return prices;
}
