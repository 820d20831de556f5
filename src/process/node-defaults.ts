import { DEFAULT_MODEL } from "../definition/builtin-handlers.ts";
import type { NodeDefaults } from "../definition/handlers.ts";
import { pricesOf } from "../definition/prices.ts";
import { rateLimit, tokenLimit } from "../definition/load-limits.ts";
import type { LimitSpec } from "../definition/workflow.ts";
import type { Settings } from "../settings/declarations.ts";
import { limitOf } from "../settings/setting.ts";

/** Under this name the settings say how often a model may be called. */
const MODEL_LIMIT = "openai";

/** What the settings give to nodes that state none. */
export function nodeDefaults(settings: Settings): NodeDefaults {
  return {
    retry: {
      max_attempts: settings.retryMaxAttempts,
      base_delay_seconds: settings.retryInitialDelay,
      max_delay_seconds: settings.retryMaxDelay,
      exponential_base: settings.retryExponentialBase,
      jitter: settings.retryJitter ? 0.1 : 0,
    },
    timeoutSeconds: settings.staleTimeoutDefault,
    timeoutSecondsOf: { http: settings.staleTimeoutHttp, llm: settings.staleTimeoutLlm },
    timeoutSecondsOfCapitals: settings.staleTimeoutOf,
    limits: Object.fromEntries(settings.limits.map(settingLimit)),
    ...(callsModels(settings) && {
      limitOf: ofModels(MODEL_LIMIT),
      modelOf: ofModels(settings.openaiModel ?? DEFAULT_MODEL),
    }),
    ...(settings.prices.length > 0 && { prices: pricesOf(settings.prices) }),
    ...(settings.singleQueue !== undefined && { queue: settings.singleQueue }),
  };
}

function ofModels(value: string): Readonly<Record<string, string>> {
  return { llm: value, "llm.extract": value };
}

/** A mock needs no limit. */
function callsModels({ mock, openaiApiKey, openaiBaseUrl }: Settings): boolean {
  return !mock && (openaiApiKey !== undefined || openaiBaseUrl !== undefined);
}

function settingLimit(word: string): readonly [string, LimitSpec] {
  const { name, size, per, tokensPerMinute: tokens } = limitOf(word)!;
  const calls = per === undefined ? { concurrency: size } : rateLimit(size, per);
  return [name, { ...calls, ...(tokens !== undefined && tokenLimit(tokens)) }];
}
