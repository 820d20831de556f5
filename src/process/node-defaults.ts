import type { NodeDefaults } from "../definition/handlers.ts";
import type { Settings } from "../settings/declarations.ts";

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
    ...(settings.singleQueue !== undefined && { queue: settings.singleQueue }),
  };
}
