import { DEFAULT_MODEL } from "../definition/builtin-handlers.ts";
import type { Prices } from "../definition/workflow.ts";
import type { Host } from "../host/host.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { type HandlerCall, HandlerError } from "../worker/handler.ts";
import type { Usage } from "../worker/usage.ts";
import { bodyOf } from "./http-body.ts";
import type { HttpAnswer, HttpClient } from "./http-client.ts";
import { httpFailure, isRetryable, MAX_REFUSAL_BYTES } from "./http-failure.ts";
import { mindLimits } from "./rate-limit-headers.ts";

export interface LlmSettings {
  /** Of the server, such as `https://api.openai.com/v1`; that one by default. */
  readonly baseUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  /** For nodes that name none. */
  readonly model?: string | undefined;
  /** What tokens cost, by model. */
  readonly prices?: Prices | undefined;
}

export type LlmMessage = JsonObject;

export interface LlmRequest {
  readonly messages: readonly LlmMessage[];
  readonly model?: string;
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly response_format?: JsonObject;
}

export interface Completion {
  readonly text: string;
  readonly model: string;
  readonly finishReason: string | null;
  readonly usage: Usage | undefined;
}

/** Whoever answers: a server, or fixtures in its place. */
export interface LlmProvider {
  complete(request: LlmRequest, call: HandlerCall): Promise<Completion>;
}

const OPENAI_HOST = "api.openai.com";
const OPENAI_URL = `https://${OPENAI_HOST}/v1`;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** One wire format, which nearly every server of models speaks. Plain HTTP: retries, time and limits are the engine's. */
export class LlmClient implements LlmProvider {
  readonly #http: HttpClient;
  readonly #host: Host;
  readonly #settings: LlmSettings;

  constructor(http: HttpClient, host: Host, settings: LlmSettings) {
    this.#http = http;
    this.#host = host;
    this.#settings = settings;
  }

  async complete(request: LlmRequest, call: HandlerCall): Promise<Completion> {
    const { model = this.#settings.model ?? DEFAULT_MODEL, ...rest } = request;
    const body: JsonObject = { model, ...(rest as unknown as JsonObject) };
    let answer = await this.#post(body, call);
    const adapted = answer.status === 400 ? withoutRefused(body, bodyOf(answer)) : undefined;
    if (adapted !== undefined) answer = await this.#post(adapted, call);
    if (answer.status !== 200) throw this.#refusal(answer);
    mindLimits(call, answer, this.#host);
    const completion = this.#read(bodyOf(answer), model);
    // Paid for, whatever is done with it.
    if (completion.usage !== undefined) {
      call.addUsage({ ...completion.usage, ...costOf(completion.usage, this.#settings.prices, model) });
    }
    return completion;
  }

  async #post(body: JsonObject, call: HandlerCall): Promise<HttpAnswer> {
    const { baseUrl = OPENAI_URL, apiKey } = this.#settings;
    if (apiKey !== undefined) call.conceal(apiKey);
    else if (URL.parse(baseUrl)?.hostname === OPENAI_HOST) {
      throw new HandlerError("SECRET_MISSING", "llm needs OPENAI_API_KEY, which is not set on this worker");
    }
    const answer = await this.#http.send({
      url: `${baseUrl.replace(/\/+$/, "")}/chat/completions`,
      method: "POST",
      headers: {
        accept: "application/json",
        "content-type": "application/json",
        "user-agent": "millrace",
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify(body),
      signal: call.signal,
      maxBytes: (status) => (status === 200 ? MAX_ANSWER_BYTES : MAX_REFUSAL_BYTES),
    });
    if (answer.status === 200 && answer.isCut) {
      throw new HandlerError("RESPONSE_TOO_LARGE", `The model's answer is larger than ${MAX_ANSWER_BYTES} bytes.`);
    }
    return answer;
  }

  #refusal(answer: HttpAnswer): HandlerError {
    const { status } = answer;
    const isKeyless = status === 401 && this.#settings.apiKey === undefined;
    const hint = isKeyless ? " OPENAI_API_KEY is not set on this worker." : "";
    return httpFailure(`${refused(status, bodyOf(answer))}${hint}`, answer, this.#host);
  }

  #read(answer: Json, asked: string): Completion {
    const choice =
      isJsonObject(answer) && Array.isArray(answer["choices"]) ? (answer["choices"][0] as Json) : undefined;
    const message = isJsonObject(choice) ? choice["message"] : undefined;
    if (!isJsonObject(answer) || !isJsonObject(choice) || !isJsonObject(message)) throw notACompletion(answer);
    const { model } = answer;
    const { finish_reason: finishReason } = choice;
    return {
      text: textOf(message["content"]) || textOf(message["refusal"]),
      model: typeof model === "string" ? model : asked,
      finishReason: typeof finishReason === "string" ? finishReason : null,
      usage: usageOf(answer["usage"]),
    };
  }
}

/** Text, or a list of parts of which some are text. */
function textOf(content: Json | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const parts = (content as readonly Json[]).map((part) => (isJsonObject(part) ? part["text"] : undefined));
  return parts.filter((text) => typeof text === "string").join("");
}

/** What a call has cost in money, where that is known. */
function costOf(
  { prompt_tokens: read = 0, completion_tokens: written = 0 }: Usage,
  prices: Prices = {},
  model: string,
): Usage {
  const price = prices[model] ?? prices["*"];
  return price === undefined ? {} : { usd: (read * price.input + written * price.output) / 1_000_000 };
}

const COUNTS = ["prompt_tokens", "completion_tokens", "total_tokens"] as const;

function usageOf(usage: Json | undefined): Usage | undefined {
  if (!isJsonObject(usage)) return undefined;
  const counted = COUNTS.flatMap((name) => {
    const count = usage[name];
    return typeof count === "number" && count >= 0 ? [[name, count] as const] : [];
  });
  return counted.length === 0 ? undefined : Object.fromEntries(counted);
}

/**
 * The same request in other words, if that is what a server asks for: newer models of OpenAI have another name for
 * `max_tokens`, and servers without `response_format` still have the instruction in the messages.
 */
function withoutRefused(body: JsonObject, answer: Json): JsonObject | undefined {
  const error = isJsonObject(answer) ? answer["error"] : undefined;
  const refused = isJsonObject(error) && typeof error["param"] === "string" ? error["param"] : "";
  if (refused === "max_tokens" && body["max_tokens"] !== undefined) {
    const { max_tokens: limit, ...rest } = body;
    return { ...rest, max_completion_tokens: limit! };
  }
  if (refused.startsWith("response_format") && body["response_format"] !== undefined) {
    const { response_format: _, ...rest } = body;
    return rest;
  }
  return undefined;
}

function refused(status: number, answer: Json): string {
  const reason = messageOf(answer);
  return `The llm server refused with ${status}${reason === undefined ? "" : `: ${reason}`}.`;
}

function messageOf(answer: Json): string | undefined {
  const error = isJsonObject(answer) ? answer["error"] : undefined;
  if (typeof error === "string") return error.slice(0, 500);
  const message = isJsonObject(error) ? error["message"] : undefined;
  return typeof message === "string" ? message.slice(0, 500) : undefined;
}

/** Some gateways answer 200 and put the refusal of whoever is behind them into the body. */
function notACompletion(answer: Json): HandlerError {
  const error = isJsonObject(answer) ? answer["error"] : undefined;
  const status = isJsonObject(error) ? Number(error["code"]) : Number.NaN;
  if (Number.isInteger(status) && status >= 400 && status <= 599) {
    return new HandlerError(`HTTP_${status}`, refused(status, answer), { retryable: isRetryable(status) });
  }
  const reason = messageOf(answer);
  const message = `The llm server's answer is not a completion${reason === undefined ? "" : `: ${reason}`}`;
  return new HandlerError("LLM_RESPONSE_INVALID", message, { retryable: true });
}
