import type { ReadSettings } from "../settings/read-settings.ts";
import type { Settings } from "../settings/declarations.ts";
import type { ExitCode } from "./exit-code.ts";

/** A command as it was called. */
export interface Call {
  /** The proper name of the command. */
  readonly command: string;
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, readonly string[] | true>>;
  readonly json: boolean;
  readonly terminal: Terminal;
  /** All settings, with the flags of this call. Faults end the command. */
  settings(defaults?: Partial<Settings>): Promise<ReadSettings>;
}

/** Where a command writes and what it reads. stdout holds data only; everything else goes to stderr. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether somebody looks at stderr, so that lines may be drawn over. */
  readonly isLive: boolean;
  readonly isInteractive: boolean;
  readonly columns: number;
  readonly rows: number;
  readonly directory: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** In bold, dim or a colour, if that is wanted where it goes; that is stdout if nothing is said. */
  style(format: Format, text: string, stream?: "stdout" | "stderr"): string;
  readInput(): Promise<string>;
  /** stdin piece by piece, for what may be of any length. */
  inputBytes(): AsyncIterable<Uint8Array>;
  /** Like `out`, but done only when whoever reads has room for more. */
  outInTurn(text: string): Promise<void>;
  /**
   * Aborted at the first interrupt or SIGTERM, with the name of the signal as its reason; a second one ends the process.
   * Until somebody calls this, a signal ends the process as it always does.
   */
  interrupts(): AbortSignal;
}

export type Format = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

export type Verb = (call: Call) => Promise<ExitCode>;

/** The value of an option that may be given once; the last counts. */
export function option(call: Call, name: string): string | undefined {
  const given = call.options[name];
  return given === undefined || given === true ? undefined : given.at(-1);
}

export function hasSwitch(call: Call, name: string): boolean {
  return call.options[name] === true;
}
