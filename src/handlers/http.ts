import { errorMessage } from "../errors/registry.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import { type Handler, type HandlerCall, HandlerError } from "../worker/handler.ts";
import { MAX_OUTPUT_BYTES } from "../worker/output.ts";
import { bodyOf } from "./http-body.ts";
import type { HttpClient } from "./http-client.ts";
import { httpFailure, MAX_REFUSAL_BYTES } from "./http-failure.ts";
import { writtenHeaders } from "./http-headers.ts";
import { mindLimits } from "./rate-limit-headers.ts";

type Scalar = string | number | boolean;

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface HttpConfig {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, Scalar>>;
  readonly query?: Readonly<Record<string, Scalar | readonly Scalar[] | null>>;
  readonly json?: Json;
  readonly body?: string;
  readonly expect?: readonly number[];
  /** Give the body as `result` too, which is how the source documents read it. */
  readonly result?: boolean;
}

/** A larger body is not given twice: with it the output could become too large to be one. */
const MAX_REPEATED_BYTES: number = MAX_OUTPUT_BYTES / 4;

/** `http`: one call, `{status, headers, body}` of its answer. */
export function httpHandler(client: HttpClient, host: Host): Handler {
  return async (call) => {
    const config = call.config as unknown as HttpConfig;
    const method = config.method ?? "GET";
    const isWanted = (status: number): boolean => config.expect?.includes(status) ?? (status >= 200 && status <= 299);
    const url = urlOf(config);
    const body = config.json === undefined ? config.body : JSON.stringify(config.json);
    const answer = await client.send({
      url,
      method,
      headers: headersOf(config, call),
      ...(body !== undefined && { body }),
      signal: call.signal,
      maxBytes: (status) => (isWanted(status) ? MAX_OUTPUT_BYTES : MAX_REFUSAL_BYTES),
      ...(config.expect !== undefined && { wanted: config.expect }),
    });
    const { status, headers, isCut } = answer;
    if (!isWanted(status)) {
      throw httpFailure(`${method} ${withoutQuery(url)} was answered with ${status}`, answer, host);
    }
    if (isCut) {
      throw new HandlerError(
        "RESPONSE_TOO_LARGE",
        errorMessage("RESPONSE_TOO_LARGE", { limitBytes: MAX_OUTPUT_BYTES }),
      );
    }
    mindLimits(call, answer, host);
    const read = bodyOf(answer);
    const isRepeated = config.result === true && answer.body.length <= MAX_REPEATED_BYTES;
    return { status, headers, body: read, ...(isRepeated && { result: read }) };
  };
}

function urlOf({ url, query }: HttpConfig): string {
  if (query === undefined) return url;
  const parsed = URL.parse(url);
  // Nothing can be added to what is no URL; the client says so.
  if (parsed === null) return url;
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value ?? []].flat()) parsed.searchParams.append(name, String(each));
  }
  return parsed.href;
}

function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function headersOf(config: HttpConfig, call: HandlerCall): Record<string, string> {
  const headers: Record<string, string> = {
    accept: "*/*",
    "accept-encoding": "gzip, deflate, br",
    "user-agent": "millrace",
    // Whoever minds it does the same work once, however often we try.
    "idempotency-key": call.idempotencyKey,
  };
  if (config.json !== undefined) headers["content-type"] = "application/json";
  else if (config.body !== undefined) headers["content-type"] = "text/plain; charset=utf-8";
  return { ...headers, ...writtenHeaders(config.headers) };
}
