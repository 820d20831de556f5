import type { Host } from "../host/host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { type Handler, type HandlerCall } from "../worker/handler.ts";
import { configInvalid } from "./prepared-handler.ts";
import { sampleOf } from "./sample.ts";

/**
 * What `http` and `llm` do when they are mocked: they take as long as the source documents' services do, and answer in
 * the shape of the real ones. `result` beside it is what those documents read of any service.
 */

/** One to two seconds. */
export function mockHttp(host: Host): Handler {
  return async (call) => {
    await pause(host, call, 1_000);
    const { method = "GET", url = "mock:" } = call.config as { method?: string; url?: string };
    const result = `mock result of ${call.nodeId}`;
    const headers = { "content-type": "application/json" };
    return { status: 200, headers, body: { mock: true, method, url, result }, result };
  };
}

/** Half a second to a second. */
export function mockLlm(host: Host): Handler {
  return async (call) => {
    await pauseLikeLlm(host, call);
    return cannedAnswer(call);
  };
}

/** As long as a model takes for a short answer. */
export function pauseLikeLlm(host: Host, call: HandlerCall): Promise<void> {
  return pause(host, call, 500);
}

/** The provider of those who have none yet: the same answer to the same question, at once, and it says what it is. */
export const cannedAnswer: Handler = (call) => {
  const { prompt, messages, output_schema: schema } = call.config as JsonObject;
  const asked = typeof prompt === "string" ? prompt : JSON.stringify(messages ?? "nothing");
  if (schema !== undefined) {
    const made = sample(call, schema);
    call.addUsage(usageOf(asked, JSON.stringify(made)));
    return made;
  }
  const text = `mock answer to: ${asked.length > 200 ? `${asked.slice(0, 200).toWellFormed()}…` : asked}`;
  const usage = usageOf(asked, text);
  call.addUsage(usage);
  return { text, model: "mock", finish_reason: "stop", usage, result: text };
};

function sample(call: HandlerCall, schema: Json): Json {
  const made = sampleOf(schema);
  if (made !== undefined) return made;
  const message = 'no value that fits this output_schema can be made up; give it as "mock"';
  throw configInvalid(call.nodeId, [{ path: "/output_schema", message }]);
}

async function pause(host: Host, { signal }: HandlerCall, atLeastMs: number): Promise<void> {
  await host.sleep(atLeastMs * (1 + host.random()), signal);
  signal.throwIfAborted();
}

/** As if it had been paid for: else a budget would count what it expected of the call. */
function usageOf(asked: string, answered: string): Record<string, number> {
  const [prompt, completion] = [tokens(asked), tokens(answered)];
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** About four characters each, as a rule of thumb. */
function tokens(text: string): number {
  return Math.ceil(text.length / 4);
}
