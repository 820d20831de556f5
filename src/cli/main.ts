import type { Call, Terminal } from "./call.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import type { Parsed } from "./parse-arguments.ts";
import { harmless } from "./print.ts";
import { endUnread, processTerminal } from "./terminal.ts";

/** What bin/millrace calls. */
export async function start(): Promise<void> {
  const code = await main(process.argv.slice(2), processTerminal());
  // Whatever a handler module has left open must not keep a command from ending.
  process.stdout.write("", (unwritten) => {
    if (unwritten) endUnread(process.stdout.errored ?? unwritten);
    process.stderr.write("", () => process.exit(code));
  });
}

/** One command, from its words to its exit code. Prints what went wrong; never throws. */
export async function main(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const isJson = argv.includes("--json");
  try {
    if (argv.length === 0 || isHelp(argv)) {
      const { overview } = await import("./overview.ts");
      terminal.out(overview());
      return argv.length === 0 ? EXIT.usage : EXIT.done;
    }
    if (argv[0] === "--version" || argv[0] === "-V") {
      const { version } = await import("./version.ts");
      terminal.out(`${version()}\n`);
      return EXIT.done;
    }
    const { parseArguments } = await import("./parse-arguments.ts");
    const parsed = parseArguments(argv[0] === "help" ? [...argv.slice(1), "--help"] : argv);
    if (parsed.options["help"] !== undefined) {
      const { commandHelp } = await import("./help.ts");
      terminal.out(commandHelp(parsed.spec));
      return EXIT.done;
    }
    const { verb } = await parsed.spec.load();
    return await verb(callOf(parsed, terminal));
  } catch (error) {
    return report(error, terminal, isJson);
  }
}

function isHelp([first, second]: readonly string[]): boolean {
  return first === "--help" || first === "-h" || (first === "help" && second === undefined);
}

function callOf({ spec, args, options, flags }: Parsed, terminal: Terminal): Call {
  return {
    command: spec.name,
    args,
    options,
    json: options["json"] !== undefined,
    terminal,
    settings: async (defaults) => {
      const { callSettings } = await import("./call-settings.ts");
      const last = (name: string): string | undefined => {
        const given = options[name];
        return given === undefined || given === true ? undefined : given.at(-1);
      };
      return callSettings(terminal, { flags, defaults, config: last("config"), context: last("context") });
    },
  };
}

const FILE_CODES: ReadonlySet<string> = new Set(
  [
    "EACCES",
    "EDQUOT",
    "EIO",
    "EISDIR",
    "EMFILE",
    "ENAMETOOLONG",
    "ENOENT",
    "ENOSPC",
    "ENOTDIR",
    "EPERM",
    "EROFS",
  ].flatMap((code) => [code, `ERR_FS_${code}`]),
);

/** A file that cannot be read or written is the user's to mend, wherever that was noticed. */
function refusedByFiles(error: unknown): Failure | undefined {
  if (!(error instanceof Error) || !("code" in error) || !FILE_CODES.has(String(error.code))) return undefined;
  return new Failure(EXIT.unreachable, `a file cannot be read or written: ${error.message}.`);
}

function report(thrown: unknown, terminal: Terminal, isJson: boolean): ExitCode {
  const error = thrown instanceof Failure ? thrown : refusedByFiles(thrown);
  if (error === undefined) {
    // Ours, not the user's: what helps to mend it is the whole of it.
    terminal.err(
      `millrace: this is a bug: ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}\n`,
    );
    return EXIT.unreachable;
  }
  const { message, hint, code, exit, lines } = error;
  if (isJson) {
    const told = { exit, message, ...(code !== undefined && { code }), ...(hint !== undefined && { hint }) };
    terminal.err(`${JSON.stringify({ error: { ...told, ...(lines.length > 0 && { lines }) } })}\n`);
    return exit;
  }
  const more = [...lines, ...(hint === undefined ? [] : [`hint: ${hint}`])];
  terminal.err(harmless([`millrace: ${message}`, ...more.map((line) => `  ${line}`), ""].join("\n")));
  return exit;
}
