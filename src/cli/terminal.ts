import { once } from "node:events";
import { writeSync } from "node:fs";
import { styleText } from "node:util";
import type { Format, Terminal } from "./call.ts";
import { EXIT } from "./exit-code.ts";

/** The real terminal, or whatever the standard streams are connected to. */
export function processTerminal(): Terminal {
  const { stdout, stderr, stdin, env } = process;
  let interrupts: AbortSignal | undefined;
  stdout.on("error", endUnread);
  // What is only told on the way may be lost.
  stderr.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(EXIT.done);
  });
  const isPlain = env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "";
  const hasColour = !isPlain && (stderr.isTTY || (env["FORCE_COLOR"] ?? "0") !== "0");
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
    style: (format: Format, text) => (hasColour ? styleText(format, text, { validateStream: false }) : text),
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
