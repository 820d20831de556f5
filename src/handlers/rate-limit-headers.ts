import type { Host } from "../host/host.ts";
import type { HandlerCall } from "../worker/handler.ts";
import type { HttpAnswer } from "./http-client.ts";

/** The headers by which services tell what is left of a limit, and when more comes. */
const LIMITS: readonly { readonly remaining: string; readonly reset: string }[] = [
  { remaining: "x-ratelimit-remaining-requests", reset: "x-ratelimit-reset-requests" },
  { remaining: "x-ratelimit-remaining-tokens", reset: "x-ratelimit-reset-tokens" },
  { remaining: "anthropic-ratelimit-requests-remaining", reset: "anthropic-ratelimit-requests-reset" },
  { remaining: "anthropic-ratelimit-tokens-remaining", reset: "anthropic-ratelimit-tokens-reset" },
  { remaining: "anthropic-ratelimit-input-tokens-remaining", reset: "anthropic-ratelimit-input-tokens-reset" },
  { remaining: "anthropic-ratelimit-output-tokens-remaining", reset: "anthropic-ratelimit-output-tokens-reset" },
  { remaining: "x-ratelimit-remaining", reset: "x-ratelimit-reset" },
  { remaining: "x-rate-limit-remaining", reset: "x-rate-limit-reset" },
  { remaining: "ratelimit-remaining", reset: "ratelimit-reset" },
];

/** A number of seconds above this is a date. */
const DATE_SECONDS = 1_000_000_000;

/** After how long the limits that are used up have something left again; undefined if none says so. */
export function limitResetMs({ headers }: Pick<HttpAnswer, "headers">, nowMs: number): number | undefined {
  const waits = LIMITS.flatMap(({ remaining, reset }) => {
    const text = headers[reset];
    if (Number(headers[remaining] ?? Number.NaN) !== 0 || typeof text !== "string") return [];
    return durationMs(text, nowMs) ?? [];
  });
  waits.push(...policyWaits(headers["ratelimit"]));
  return waits.length === 0 ? undefined : Math.max(...waits);
}

/** An answer as wanted may be the last for a while: then the next call need not be made to be refused. */
export function mindLimits(call: Pick<HandlerCall, "closeLimit">, answer: HttpAnswer, host: Host): void {
  const resetMs = limitResetMs(answer, host.wallMs());
  if (resetMs !== undefined) call.closeLimit(resetMs);
}

/**
 * The one header of the standard to be: `"burst";r=0;t=7, "day";r=12;t=3600`, a policy each, or as it was before,
 * `limit=100, remaining=0, reset=7`.
 */
function policyWaits(header: string | readonly string[] | undefined): readonly number[] {
  if (typeof header !== "string") return [];
  const waits = header.split(",").flatMap((policy) => {
    const isUsedUp = /;\s*r=0\s*(?:;|$)/.test(policy);
    const [, seconds] = (isUsedUp && /;\s*t=(\d{1,9})\s*(?:;|$)/.exec(policy)) || [];
    return seconds === undefined ? [] : [Number(seconds) * 1000];
  });
  const isUsedUp = /(?:^|,)\s*remaining=0\s*(?:,|$)/.test(header);
  const [, seconds] = (isUsedUp && /(?:^|,)\s*reset=(\d{1,9})\s*(?:,|$)/.exec(header)) || [];
  return seconds === undefined ? waits : [...waits, Number(seconds) * 1000];
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `6m0s` and `20ms`, seconds, a date in seconds, or a date as it is written. */
function durationMs(text: string, nowMs: number): number | undefined {
  if (/^\d{1,12}(\.\d+)?$/.test(text)) {
    const seconds = Number(text);
    return Math.max(0, Math.ceil(seconds >= DATE_SECONDS ? seconds * 1000 - nowMs : seconds * 1000));
  }
  if (/^(\d{1,9}(\.\d+)?(ms|s|m|h))+$/.test(text)) {
    const parts = text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g);
    return Math.ceil(Array.from(parts).reduce((sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit!]!, 0));
  }
  const atMs = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
