import { destination, type Logger, pino } from "pino";
import type { Settings } from "../settings/declarations.ts";

export type Log = Logger;

const MAX_CHARS = 2_000;

/** JSON lines, one for each thing that happened. Written at once: the line before a crash is the one that matters. */
export function openLog(settings: Pick<Settings, "logLevel" | "environment">, fd: 1 | 2): Log {
  const { logLevel: level, environment: env } = settings;
  return pino(
    {
      level,
      base: { env },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination({ dest: fd, sync: true }),
  );
}

/** Text that users wrote, short enough for a line. */
export function brief(text: string): string {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS).toWellFormed()}…` : text;
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
