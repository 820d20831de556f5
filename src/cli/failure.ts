import type { ExitCode } from "./exit-code.ts";

/** Ends a command with a sentence for its user and an exit code for scripts. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly exit: ExitCode;
  /** What to do about it, ready to be pasted where it can be. */
  readonly hint: string | undefined;
  readonly code: string | undefined;
  /** Further lines, such as the single problems of a definition. */
  readonly lines: readonly string[];

  constructor(
    exit: ExitCode,
    message: string,
    more: {
      readonly hint?: string | undefined;
      readonly code?: string | undefined;
      readonly lines?: readonly string[];
    } = {},
  ) {
    super(message);
    this.exit = exit;
    this.hint = more.hint;
    this.code = more.code;
    this.lines = more.lines ?? [];
  }
}
