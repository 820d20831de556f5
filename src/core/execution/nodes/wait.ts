import { isDate, withZone } from "../../../definition/dates.ts";
import { MAX_SECONDS } from "../../../definition/fields.ts";
import { configOf, type EngineNode, invalid } from "./engine-node.ts";

/** Waits for a while, for a date, or for a signal; one that came early was kept for it. */
export const waitNode: EngineNode = (state, unit, context) => {
  const resolved = configOf(state, unit, context);
  if (resolved.kind !== "config") return resolved;
  const { seconds, until, signal, timeout_seconds: timeout } = resolved.config;
  if (seconds !== undefined) {
    if (!isDuration(seconds)) return invalid("/seconds", `must be a number of seconds, ${DURATION}`);
    if (seconds === 0) return { kind: "completed", output: null };
    return { kind: "waits", wait: { for: "timer" }, dueAtMs: context.nowMs + seconds * 1000 };
  }
  if (until !== undefined) {
    const isText = typeof until === "string" && isDate(until);
    const calendarAtMs = typeof until === "number" ? until : isText ? Date.parse(withZone(until)) : NaN;
    if (!(calendarAtMs <= LATEST_DATE_MS)) return invalid("/until", "must be a date such as 2030-01-31T09:00:00Z");
    if (calendarAtMs <= context.calendarMs) return { kind: "completed", output: null };
    return { kind: "waits", wait: { for: "timer", calendarAtMs }, dueAtMs: null };
  }
  if (typeof signal !== "string" || signal === "") return invalid("/signal", "must be the name of a signal");
  if (!isDuration(timeout)) return invalid("/timeout_seconds", `must be a number of seconds, ${DURATION}`);
  const kept = state.signals.get(signal)?.[0];
  if (kept !== undefined) return { kind: "taken", value: kept, signal };
  return { kind: "waits", wait: { for: "signal", signal }, dueAtMs: context.nowMs + timeout * 1000 };
};

/** No date is later: nobody could say when it is. */
const LATEST_DATE_MS = 8_640_000_000_000_000;

const DURATION = `from 0 to ${MAX_SECONDS}`;

function isDuration(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MAX_SECONDS;
}
