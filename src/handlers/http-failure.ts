import type { Host } from "../host/host.ts";
import { HandlerError } from "../worker/handler.ts";
import { bodyOf } from "./http-body.ts";
import type { HttpAnswer } from "./http-client.ts";
import { limitResetMs } from "./rate-limit-headers.ts";

/** How much of an answer is read and shown when it is a refusal. */
export const MAX_REFUSAL_BYTES = 4_000;

/** Timeout, too early, too many: the same request may well be answered another time. */
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429]);

export function isRetryable(status: number): boolean {
  return RETRYABLE.has(status) || status >= 500;
}

/** An answer that is not the one wanted, as the failure of a node: `HTTP_404`. */
export function httpFailure(message: string, answer: HttpAnswer, host: Host): HandlerError {
  const { status } = answer;
  const nowMs = host.wallMs();
  const retryAfterMs = retryAfterOf(answer, nowMs) ?? (status === 429 ? limitResetMs(answer, nowMs) : undefined);
  return new HandlerError(`HTTP_${status}`, message, {
    retryable: isRetryable(status),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    details: { status, body: bodyOf(answer) },
  });
}

/** `Retry-After` in seconds or as a date; `retry-after-ms` is what LLM services say more exactly. */
function retryAfterOf({ headers }: Pick<HttpAnswer, "headers">, nowMs: number): number | undefined {
  const exact = headers["retry-after-ms"];
  if (typeof exact === "string" && /^\d{1,9}(\.\d+)?$/.test(exact)) return Math.ceil(Number(exact));
  const text = headers["retry-after"];
  if (typeof text !== "string") return undefined;
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1000);
  const atMs = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
