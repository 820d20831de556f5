import { destination, type Logger, pino } from "pino";
import type { TaskText } from "../core/execution/prepare.ts";
import type { Settings } from "../settings/declarations.ts";
import type { LogEntry } from "../worker/delivery.ts";

export type Log = Logger;

const MAX_CHARS = 2_000;
/** What a log that cannot be written just now may keep in memory; the rest is lost. */
const MOST_UNWRITTEN = 1024 * 1024;

/**
 * JSON lines, one for each thing that happened. Written at once: the line before a crash is the one that matters. One that cannot be
 * written, as its file is on a full disk or its terminal is gone, is lost: whoever has something to log has done it, and must not fail.
 */
export function openLog(settings: Pick<Settings, "logLevel" | "environment">, fd: 1 | 2): Log {
  const { logLevel: level, environment: env } = settings;
  const lines = destination({ dest: fd, sync: true, maxLength: MOST_UNWRITTEN });
  lines.on("error", () => undefined);
  return pino(
    {
      level,
      base: { env },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    lines,
  );
}

/** Text that users wrote, short enough for a line. */
export function brief(text: string): string {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS).toWellFormed()}…` : text;
}

/** What a handler has said, and at a level of its own the stack of what it threw. */
export function logTask(
  log: Log,
  stacks: "debug" | "warn",
  { execution, node, attempt }: Pick<TaskText, "execution" | "node" | "attempt">,
  { level, message, fields }: LogEntry,
): void {
  const place = { execution_id: execution, node_id: node, attempt };
  if (level === "error") log[stacks]({ ...place, stack: message }, "a handler threw");
  else log.info({ ...place, fields }, brief(message));
}

/** A handler was given up and keeps its slot, or has ended at last; `deaf` is how many there are now. */
export function logDegraded(
  log: Log,
  deaf: number,
  { execution, node, handler, attempt }: Pick<TaskText, "execution" | "node" | "handler" | "attempt">,
  hasEnded: boolean,
): void {
  const place = { deaf, handler, execution_id: execution, node_id: node, attempt };
  if (hasEnded) log.info(place, deaf === 0 ? "all slots are free again" : "a handler that did not stop has ended");
  else log.warn(place, "a handler does not stop when asked, and keeps its slot until it ends");
}

/** The thread that keeps a worker's leases does not reach the store, or does again. */
export function logSilence(log: Log, isSilent: boolean): void {
  if (isSilent) log.warn("the thread that keeps the leases cannot reach the store; the worker keeps them meanwhile");
  else log.info("the thread that keeps the leases reaches the store again");
}

/** An error as a log has it. */
export function briefError(error: unknown): {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
} {
  if (!(error instanceof Error)) return { name: typeof error, message: brief(String(error)) };
  return {
    name: error.name,
    message: brief(error.message),
    ...(error.stack !== undefined && { stack: brief(error.stack) }),
  };
}
