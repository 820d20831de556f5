import { once } from "node:events";
import { type Call, hasSwitch } from "./call.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";

/** Asks before something is done to all that a filter has found. Off a terminal nobody can answer: then it is not done. */
export async function confirm(call: Call, what: string): Promise<void> {
  if (hasSwitch(call, "yes")) return;
  if (!call.terminal.isInteractive) throw new Failure(EXIT.usage, `this would ${what}.`, { hint: "say so with --yes" });
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // Ctrl-C and Ctrl-D are answers, too.
  const closed = once(lines, "close").then(() => "\n");
  const answer = await Promise.race([lines.question(`${what}? [y/N] `).catch(() => "\n"), closed]);
  lines.close();
  if (answer === "\n") process.stderr.write("\n");
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure(EXIT.interrupted, "nothing was done.");
}
