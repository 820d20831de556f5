import { builtinHandlers, type Builtins } from "../handlers/builtins.ts";
import type { Host } from "../host/host.ts";
import type { Settings } from "../settings/declarations.ts";
import { ofHandler } from "../settings/setting.ts";
import type { WorkerSettings } from "../worker/worker.ts";

/** How a worker behaves, as the settings say. */
export function workerSettings(settings: Settings): Partial<WorkerSettings> {
  return {
    slots: settings.workerConcurrency,
    leaseMs: settings.workerHeartbeatTimeout * 1_000,
    heartbeatMs: settings.workerHeartbeatInterval * 1_000,
    graceMs: settings.workerGrace * 1_000,
  };
}

/** The handlers that have slots of their own. */
export function ownSlots(settings: Settings, handlers: Iterable<string>): ReadonlyMap<string, number> {
  const slots = new Map<string, number>();
  for (const handler of handlers) {
    const own = ofHandler(settings.workerConcurrencyOf, handler);
    if (own !== undefined) slots.set(handler, own);
  }
  return slots;
}

/** The queues that a worker takes tasks from, those first that come first. */
export function queuesOf(
  { queues, singleQueue }: Settings,
  handlers: Iterable<string>,
  more: Iterable<string> = [],
): readonly string[] {
  if (queues.length > 0) return [...new Set(queues)];
  // What was submitted before there was a single queue, or names a queue, is done too.
  return [...new Set([...(singleQueue === undefined ? [] : [singleQueue]), ...handlers, ...more])];
}

/** The handlers that come with Millrace. They read the environment by its own names. */
export function openBuiltins(settings: Settings, host: Host, loopback: boolean): Builtins {
  const env = {
    MILLRACE_ENV: settings.environment,
    MILLRACE_EGRESS_ALLOW: settings.egressAllow.join(","),
    OPENAI_API_KEY: settings.openaiApiKey,
    OPENAI_BASE_URL: settings.openaiBaseUrl,
    OPENAI_MODEL: settings.openaiModel,
    MILLRACE_PRICES: settings.prices.join(","),
    MILLRACE_FILES_FOLDER: settings.filesFolder,
    MILLRACE_OUTPUT_FOLDER: settings.outputFolder,
    MILLRACE_LLM_FIXTURES: settings.llmFixtures,
  };
  return builtinHandlers({ host, env, loopback, mock: settings.mock });
}
