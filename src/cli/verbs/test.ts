import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Workflow } from "../../definition/workflow.ts";
import { shownDuration } from "../../drawing/states.ts";
import { option, type Verb } from "../call.ts";
import { definitionText, goodDefinition, unreadable } from "../definition-file.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { oneLine, printJson } from "../print.ts";
import { differences } from "../replay/compare.ts";
import { readRecording } from "../replay/recording.ts";
import { replay } from "../replay/replay.ts";

/** Replays exported executions, and says what comes out otherwise. */
export const verb: Verb = async (call) => {
  const file = option(call, "definition");
  const anything = { get: () => undefined, names: () => [], allowMissing: true };
  const other =
    file === undefined ? undefined : await goodDefinition(await definitionText(call.terminal, file), anything);
  const told: object[] = [];
  for (const name of call.args) {
    const { found, text } = await one(name, resolve(call.terminal.directory, name), other);
    told.push({ file: name, same: found.length === 0, differences: found });
    if (!call.json) call.terminal.out(`${oneLine(text)}\n${found.map((line) => `  ${oneLine(line)}\n`).join("")}`);
  }
  if (call.json) printJson(call, told.length === 1 ? told[0] : told);
  return told.every((report) => (report as { same: boolean }).same) ? EXIT.done : EXIT.failed;
};

function count(differences: number): string {
  return differences === 1 ? "1 difference" : `${differences} differences`;
}

async function one(
  name: string,
  path: string,
  other: Workflow | undefined,
): Promise<{ readonly found: readonly string[]; readonly text: string }> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(name, error);
  }
  const recording = readRecording(text);
  if ("fault" in recording)
    throw new Failure(EXIT.invalid, `${name}: ${recording.fault}.`, {
      hint: "make one with: millrace export <execution>",
    });
  const startedAtMs = performance.now();
  const replayed = await replay(recording, other);
  if ("fault" in replayed) throw new Failure(EXIT.invalid, `${name}: ${replayed.fault}`);
  const found = differences(recording.execution, replayed.execution);
  const took = `${shownDuration(replayed.virtualMs)} of its time in ${shownDuration(performance.now() - startedAtMs)}`;
  const outcome = found.length === 0 ? `the same: ${replayed.execution.status}` : count(found.length);
  return { found, text: `${name}: ${outcome}, ${took}` };
}
