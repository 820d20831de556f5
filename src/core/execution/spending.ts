import { isJsonObject, type Json } from "../../json/json.ts";
import type { Amounts } from "../gate/amounts.ts";
import type { TaskCompletedEvent, TaskFailedEvent } from "./events.ts";
import type { PlanGate } from "./plan-gates.ts";
import type { Prepared } from "./prepare.ts";
import { isDefinite } from "./units.ts";

/** A token of an LLM is about so many characters. */
const CHARS_PER_TOKEN = 4;
/** How long an answer is thought to be that may have any length. */
const ANSWER_TOKENS = 1_000;

/** How long a task is thought to run. */
const RUN_SECONDS = 1;

/** What a task may use, as far as can be known before: what it is given has to be read, and an answer written. */
export function estimateOf({ rule, estimate }: PlanGate, prepared: Prepared, fallback?: string): Amounts {
  const { tokens, usd, seconds = RUN_SECONDS, prices = {} } = estimate ?? {};
  const { read, written } = tokensOf(prepared);
  if (rule.kind === "tokens") return { tokens: tokens ?? read + written };
  const model = fallback ?? modelOf(prepared);
  const { input = 0, output = 0 } = prices[model] ?? prices[ANY_MODEL] ?? {};
  const priced = (read * input + written * output) / 1_000_000;
  // Of a model that was taken because there is too little left only the money counts.
  if (fallback !== undefined) return { usd: priced };
  return { tokens: tokens ?? read + written, usd: usd ?? priced, calls: 1, seconds };
}

const ANY_MODEL = "*";

function modelOf({ config }: Prepared): string {
  const model = isJsonObject(config) ? config["model"] : undefined;
  return typeof model === "string" ? model : ANY_MODEL;
}

function tokensOf({ text, config, holes }: Prepared): { readonly read: number; readonly written: number } {
  const largeBytes = holes.reduce((sum, hole) => sum + (hole.kind === "blob" ? hole.ref.bytes : 0), 0);
  const most = isJsonObject(config) ? config["max_tokens"] : undefined;
  const written = typeof most === "number" && most >= 0 ? most : ANSWER_TOKENS;
  return { read: Math.ceil((text.length + largeBytes) / CHARS_PER_TOKEN), written };
}

/** What a result says it has used; of what it does not say as much as was reserved. */
export function usedByResult({ usage, startedAtMs, atMs }: TaskCompletedEvent): Amounts {
  return { ...reported(usage), calls: 1, seconds: Math.max(0, atMs - startedAtMs) / 1000 };
}

/**
 * What a failed attempt has used. A handler that has answered has counted what it used, and what it does not report was
 * nothing; otherwise nobody knows how far it came, and what was reserved is used up.
 */
export function usedByFailure({ error, usage, ranMs = 0 }: TaskFailedEvent): Amounts {
  if (!isDefinite(error.code)) return {};
  return { tokens: 0, usd: 0, ...reported(usage), calls: 1, seconds: ranMs / 1000 };
}

/** Handlers name what they count; these names mean tokens, and money. */
function reported(usage: Json | undefined): Amounts {
  if (!isJsonObject(usage)) return {};
  const counted = (name: string): number | undefined => {
    const amount = usage[name];
    return typeof amount === "number" && amount >= 0 && Number.isFinite(amount) ? amount : undefined;
  };
  const sum = (...names: string[]): number | undefined => {
    const found = names.map(counted).filter((amount) => amount !== undefined);
    return found.length === 0 ? undefined : found.reduce((one, other) => one + other, 0);
  };
  const tokens =
    counted("total_tokens") ??
    sum("prompt_tokens", "completion_tokens") ??
    sum("input_tokens", "output_tokens") ??
    counted("tokens");
  const usd = counted("usd");
  return { ...(tokens !== undefined && { tokens }), ...(usd !== undefined && { usd }) };
}
