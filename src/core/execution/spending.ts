import { isJsonObject, type Json } from "../../json/json.ts";
import type { Amounts } from "../gate/amounts.ts";
import type { TaskCompletedEvent, TaskFailedEvent } from "./events.ts";
import type { EstimateSpec } from "./plan-gates.ts";
import type { Prepared } from "./prepare.ts";
import { isDefinite } from "./units.ts";

/** A token of an LLM is about so many characters. */
const CHARS_PER_TOKEN = 4;
/** How long an answer is thought to be that may have any length. */
const ANSWER_TOKENS = 1_000;

/** What a task may use, as far as can be known before: what it is given has to be read, and an answer written. */
export function estimateOf({ tokens }: EstimateSpec, prepared: Prepared): Amounts {
  return { tokens: tokens ?? tokensOf(prepared) };
}

function tokensOf({ text, config, holes }: Prepared): number {
  const largeBytes = holes.reduce((sum, hole) => sum + (hole.kind === "blob" ? hole.ref.bytes : 0), 0);
  const most = isJsonObject(config) ? config["max_tokens"] : undefined;
  const answer = typeof most === "number" && most >= 0 ? most : ANSWER_TOKENS;
  return Math.ceil((text.length + largeBytes) / CHARS_PER_TOKEN) + answer;
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
