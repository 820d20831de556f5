import { MillraceError } from "../errors/millrace-error.ts";
import { quote } from "../errors/registry.ts";

/** A number of milliseconds, or a text such as "500ms", "30s", "5m", "2h" or "7d". */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const EXPECTED = 'must be a number of milliseconds, or a text such as "500ms", "30s", "5m", "2h" or "7d"';

/** `field` is what the message calls it. Code that was not type-checked may hand over anything. */
export function durationMs(duration: Duration, field: string): number {
  const text = typeof duration === "string" ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration) : null;
  const ms = text === null ? duration : Number(text[1]) * UNIT_MS[text[2]!]!;
  if (typeof ms === "number" && Number.isFinite(ms) && ms >= 0) return ms;
  const got = typeof duration === "string" ? quote(duration) : String(duration);
  throw new MillraceError("INVALID_TIMEOUT", { field, reason: `${EXPECTED}, not ${got}` });
}

export function durationSeconds(duration: Duration, field: string): number {
  return durationMs(duration, field) / 1_000;
}
