import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { processTerminal } from "./terminal.ts";

type Streams = NonNullable<Parameters<typeof processTerminal>[0]>;

/** Which of stdout and stderr gets colours. */
function coloured(isTTY: { readonly stdout: boolean; readonly stderr: boolean }, env: NodeJS.ProcessEnv): string {
  const stream = (is: boolean): PassThrough => Object.assign(new PassThrough(), { isTTY: is });
  const streams = { stdout: stream(isTTY.stdout), stderr: stream(isTTY.stderr), stdin: stream(false), env };
  const terminal = processTerminal(streams as unknown as Streams);
  return (["stdout", "stderr"] as const).filter((name) => terminal.style("bold", "x", name) !== "x").join(" ");
}

const both = { stdout: true, stderr: true };
const piped = { stdout: false, stderr: true };
const neither = { stdout: false, stderr: false };

test.each([
  ["on a terminal", both, {}, "stdout stderr"],
  ["into a pipe, with somebody who looks at the rest", piped, {}, "stderr"],
  ["into files", neither, {}, ""],
  ["with NO_COLOR", both, { NO_COLOR: "1" }, ""],
  ["with an empty NO_COLOR", both, { NO_COLOR: "" }, "stdout stderr"],
  ["with FORCE_COLOR", neither, { FORCE_COLOR: "1" }, "stdout stderr"],
  ["with FORCE_COLOR=0", neither, { FORCE_COLOR: "0" }, ""],
  ["with both of them", both, { NO_COLOR: "1", FORCE_COLOR: "1" }, ""],
  ["on a terminal that knows none", both, { TERM: "dumb" }, ""],
])("colours %s", (_, isTTY, env, expected) => {
  expect(coloured(isTTY, env)).toBe(expected);
});
