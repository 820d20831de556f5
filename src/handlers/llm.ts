import type { Host } from "../host/host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { Schema } from "../json/schema.ts";
import { type Handler, type HandlerCall, HandlerError } from "../worker/handler.ts";
import type { HttpClient } from "./http-client.ts";
import { type Completion, LlmClient, type LlmMessage, type LlmSettings } from "./llm-client.ts";
import { readObject, repairMessages, withInstruction } from "./llm-object.ts";
import { configInvalid } from "./prepared-handler.ts";

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface LlmConfig {
  readonly prompt?: string;
  readonly messages?: readonly LlmMessage[];
  readonly model?: string;
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly output_schema?: Json;
}

/**
 * `llm`: one completion by any server that speaks OpenAI's chat format. With `output_schema` the output is the object
 * itself; one that does not fit is sent back once with what is wrong with it, since models mostly mend it then.
 */
export function llmHandler(http: HttpClient, host: Host, settings: LlmSettings): Handler {
  const client = new LlmClient(http, host, settings);
  return async (call) => {
    const { prompt, messages, output_schema: outputSchema, ...rest } = call.config as LlmConfig;
    const asked = messages ?? [{ role: "user", content: prompt! }];
    if (outputSchema !== undefined) return object(client, call, { ...rest, messages: asked }, outputSchema);
    const { text, model, finishReason, usage } = await client.complete({ ...rest, messages: asked }, call);
    return { text, model, finish_reason: finishReason, usage: usage ?? null };
  };
}

type Asked = Omit<LlmConfig, "prompt" | "output_schema"> & { readonly messages: readonly LlmMessage[] };

async function object(client: LlmClient, call: HandlerCall, config: Asked, outputSchema: Json): Promise<Json> {
  const schema = Schema.compile(outputSchema);
  if (!(schema instanceof Schema)) {
    const faults = schema.map(({ pointer, reason }) => ({ path: `/output_schema${pointer}`, message: reason }));
    throw configInvalid(call.nodeId, faults);
  }
  const format: JsonObject = { type: "json_schema", json_schema: { name: "output", schema: outputSchema } };
  const messages = withInstruction(config.messages, outputSchema);
  const first = await client.complete({ ...config, messages, response_format: format }, call);
  const firstTry = readObject(first, schema);
  if ("value" in firstTry) return firstTry.value;
  const repair = repairMessages(messages, first.text, firstTry.faults);
  const second = await client.complete({ ...config, messages: repair, response_format: format }, call);
  const secondTry = readObject(second, schema);
  if ("value" in secondTry) return secondTry.value;
  throw unfit(second, secondTry.faults);
}

function unfit({ text, finishReason }: Completion, faults: readonly string[]): HandlerError {
  const isCut = finishReason === "length" ? " The answer was cut off: raise max_tokens." : "";
  const message = `The model's answer does not fit output_schema, nor did it when told so: ${faults[0]}.${isCut}`;
  const details = { errors: faults, text: text.slice(0, 2_000).toWellFormed() };
  return new HandlerError("LLM_OUTPUT_INVALID", message, { retryable: true, details });
}
