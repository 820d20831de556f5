import { isJsonObject, type Json } from "../json/json.ts";
import type { Schema } from "../json/schema.ts";
import type { Completion, LlmMessage } from "./llm-client.ts";

export type ReadObject = { readonly value: Json } | { readonly faults: readonly string[] };

/** The value in a model's answer, or what is wrong with it, in words the model can use. */
export function readObject({ text }: Pick<Completion, "text">, schema: Schema): ReadObject {
  let value: Json;
  try {
    value = JSON.parse(withoutFence(text)) as Json;
  } catch {
    return { faults: ["it is not JSON"] };
  }
  const faults = schema.check(value);
  if (faults.length === 0) return { value };
  return { faults: faults.map(({ pointer, reason }) => (pointer === "" ? `it ${reason}` : `"${pointer}" ${reason}`)) };
}

/** Models like to put JSON into a code block, whatever they are told. */
function withoutFence(text: string): string {
  const [, inner = text] = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/i.exec(text) ?? [];
  return inner;
}

/** Said in words too: not every server minds `response_format`, and those that do not know it ignore it. */
export function withInstruction(messages: readonly LlmMessage[], schema: Json): readonly LlmMessage[] {
  const instruction = `Answer with one JSON value that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`;
  const [first, ...rest] = messages;
  // Some models take no more than one system message, and only in front.
  if (isJsonObject(first) && first["role"] === "system" && typeof first["content"] === "string") {
    return [{ ...first, content: `${first["content"]}\n\n${instruction}` }, ...rest];
  }
  return [{ role: "system", content: instruction }, ...messages];
}

export function repairMessages(
  messages: readonly LlmMessage[],
  answer: string,
  faults: readonly string[],
): readonly LlmMessage[] {
  const content = `This answer does not fit: ${faults.join("; ")}. Answer again with the corrected JSON, and with nothing else.`;
  return [...messages, { role: "assistant", content: answer }, { role: "user", content }];
}
