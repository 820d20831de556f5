import type { Json, JsonObject } from "../json/json.ts";
import { Schema } from "../json/schema.ts";
import { type HandlerCall, HandlerError } from "../worker/handler.ts";
import type { Completion, LlmProvider, LlmRequest } from "./llm-client.ts";
import { readObject, repairMessages, withInstruction } from "./llm-object.ts";
import { configInvalid } from "./prepared-handler.ts";

/**
 * A value that fits a schema. One that does not fit is sent back once with what is wrong with it, since models mostly
 * mend it then. `at` is where the config has the schema.
 */
export async function askForObject(
  provider: LlmProvider,
  call: HandlerCall,
  request: Omit<LlmRequest, "response_format">,
  outputSchema: Json,
  at: string,
): Promise<{ readonly value: Json; readonly model: string }> {
  const schema = Schema.compile(outputSchema);
  if (!(schema instanceof Schema)) {
    const faults = schema.map(({ pointer, reason }) => ({ path: `${at}${pointer}`, message: reason }));
    throw configInvalid(call.nodeId, faults);
  }
  const format: JsonObject = { type: "json_schema", json_schema: { name: "output", schema: outputSchema } };
  const messages = withInstruction(request.messages, outputSchema);
  const first = await provider.complete({ ...request, messages, response_format: format }, call);
  const firstTry = readObject(first, schema);
  if ("value" in firstTry) return { value: firstTry.value, model: first.model };
  const repair = repairMessages(messages, first.text, firstTry.faults);
  const second = await provider.complete({ ...request, messages: repair, response_format: format }, call);
  const secondTry = readObject(second, schema);
  if ("value" in secondTry) return { value: secondTry.value, model: second.model };
  throw unfit(second, secondTry.faults, at.slice(1));
}

function unfit({ text, finishReason }: Completion, faults: readonly string[], name: string): HandlerError {
  const isCut = finishReason === "length" ? " The answer was cut off: raise max_tokens." : "";
  const message = `The model's answer does not fit ${name}, nor did it when told so: ${faults[0]}.${isCut}`;
  const details = { errors: faults, text: text.slice(0, 2_000).toWellFormed() };
  return new HandlerError("LLM_OUTPUT_INVALID", message, { retryable: true, details });
}
