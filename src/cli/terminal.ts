import { once } from "node:events";
import { writeSync } from "node:fs";
import { styleText } from "node:util";
import type { Terminal } from "./call.ts";
import { EXIT } from "./exit-code.ts";

type Streams = Pick<NodeJS.Process, "stdout" | "stderr" | "stdin" | "env">;

/** The real terminal, or whatever the standard streams are connected to. */
export function processTerminal({ stdout, stderr, stdin, env }: Streams = process): Terminal {
  let interrupts: AbortSignal | undefined;
  stdout.on("error", endUnread);
  // What is only told on the way may be lost. What came of the command is told by its exit all the same.
  stderr.on("error", () => undefined);
  // Each for itself: what goes into a file or a pipe has no colours, though somebody looks at the other.
  const hasColour = { stdout: wantsColour(stdout, env), stderr: wantsColour(stderr, env) };
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    isLive: stderr.isTTY && env["CI"] === undefined && env["TERM"] !== "dumb",
    isInteractive: stdin.isTTY && stderr.isTTY,
    // Asked each time: windows change.
    get columns() {
      return stderr.columns || 80;
    },
    get rows() {
      return stderr.rows || 24;
    },
    directory: process.cwd(),
    env,
    style: (format, text, stream = "stdout") =>
      hasColour[stream] ? styleText(format, text, { validateStream: false }) : text,
    readInput: async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of stdin) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString("utf8");
    },
    inputBytes: () => stdin as AsyncIterable<Uint8Array>,
    outInTurn: async (text) => {
      if (!stdout.write(text)) await once(stdout, "drain");
    },
    interrupts: () => (interrupts ??= interruptSignal()),
  };
}

function wantsColour({ isTTY }: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  if ((env["NO_COLOR"] ?? "") !== "") return false;
  return (env["FORCE_COLOR"] ?? "0") !== "0" || (isTTY === true && env["TERM"] !== "dumb");
}

/**
 * Nothing that is written arrives any more. Whoever reads us may stop reading, as `head` does; that is no error. With a
 * full disk what a script finds later is not what there was to say, and it must not take it for that.
 */
export function endUnread(error: NodeJS.ErrnoException): never {
  if (error.code === "EPIPE") process.exit(EXIT.done);
  try {
    writeSync(2, `millrace: what there was to say could not be written: ${error.message}\n`);
  } catch {
    // Then nobody hears it.
  }
  process.exit(EXIT.unreachable);
}

/** From now on an interrupt is the caller's to handle. The second one ends the process. */
function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(EXIT.interrupted);
      controller.abort(name);
    });
  }
  return controller.signal;
}
