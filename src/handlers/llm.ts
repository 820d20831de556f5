import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import type { HttpClient } from "./http-client.ts";
import { askForObject } from "./llm-ask.ts";
import { LlmClient, type LlmMessage, type LlmSettings } from "./llm-client.ts";

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface LlmConfig {
  readonly prompt?: string;
  readonly messages?: readonly LlmMessage[];
  readonly model?: string;
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly output_schema?: Json;
  /** Give the text as `result` too, which is how the source documents read it. */
  readonly result?: boolean;
}

/**
 * `llm`: one completion by any server that speaks OpenAI's chat format. With `output_schema` the output is the object
 * itself; one that does not fit is sent back once with what is wrong with it, since models mostly mend it then.
 */
export function llmHandler(http: HttpClient, host: Host, settings: LlmSettings): Handler {
  const client = new LlmClient(http, host, settings);
  return async (call) => {
    const { prompt, messages, output_schema: outputSchema, result: givesResult, ...rest } = call.config as LlmConfig;
    const asked = messages ?? [{ role: "user", content: prompt! }];
    if (outputSchema !== undefined) {
      return (await askForObject(client, call, { ...rest, messages: asked }, outputSchema, "/output_schema")).value;
    }
    const { text, model, finishReason, usage } = await client.complete({ ...rest, messages: asked }, call);
    const output = { text, model, finish_reason: finishReason, usage: usage ?? null };
    return givesResult === true ? { ...output, result: text } : output;
  };
}
