import { once } from "node:events";
import { styleText } from "node:util";
import type { Format, Terminal } from "./call.ts";
import { EXIT } from "./exit-code.ts";

/** The real terminal, or whatever the standard streams are connected to. */
export function processTerminal(): Terminal {
  const { stdout, stderr, stdin, env } = process;
  let interrupts: AbortSignal | undefined;
  // Whoever reads us may stop reading, as `head` does; that is no error.
  for (const stream of [stdout, stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") process.exit(EXIT.done);
      throw error;
    });
  }
  const isPlain = env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "";
  const hasColour = !isPlain && (stderr.isTTY || (env["FORCE_COLOR"] ?? "0") !== "0");
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    isLive: stderr.isTTY && env["CI"] === undefined && env["TERM"] !== "dumb",
    isInteractive: stdin.isTTY && stderr.isTTY,
    columns: stderr.columns || 80,
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
