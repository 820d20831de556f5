import { expect, test } from "vitest";
import type { Terminal } from "../call.ts";
import type { ShownExecution, ShownNode } from "../shapes.ts";
import { runSummary } from "./run-summary.ts";

const terminal = { style: (_format: string, text: string) => text } as unknown as Terminal;

/** At work from one millisecond to the other; one without never was. */
function node(...span: readonly number[]): ShownNode {
  const [started_at = null, finished_at = null] = span.map((ms) => new Date(ms).toISOString());
  return { status: "COMPLETED", attempt: 1, started_at, finished_at } as ShownNode;
}

test("nodes that were at work at the same time are said to be, and one that nobody worked on has no time", () => {
  const nodes = { load: node(0, 50), ocr: node(50, 250), meta: node(249, 300), merge: node() };
  const parts = { execution_id: "id", workflow: "hello", status: "COMPLETED", error: null };
  const execution = { ...parts, ...node(0, 310), ...parts, nodes } as unknown as ShownExecution;
  expect(runSummary(execution, 1, "http://here", terminal).replaceAll(/ {2,}/g, "  ")).toBe(
    [
      "  hello #1  completed in 310 ms",
      "  ✓ load  50 ms",
      "  ✓ ocr  200 ms  (parallel)",
      "  ✓ meta  51 ms  (parallel)",
      "  ✓ merge",
      "  open http://here/runs/id",
      "",
    ].join("\n"),
  );
});

test("what the SDK adds is shown only if it is what goes wrong", () => {
  const added = { flag: node(0, 1), "flag#when": node(0, 1), "a#b": node(0, 1), "output#": node() };
  const execution = { ...node(0, 1), execution_id: "id", workflow: "w", error: null };
  const shown = (nodes: Readonly<Record<string, ShownNode>>): readonly string[] =>
    runSummary({ ...execution, nodes } as unknown as ShownExecution, 1, "", terminal)
      .split("\n")
      .flatMap((line) => /^ {4}\S (\S+)/.exec(line)?.[1] ?? []);
  expect(shown(added)).toEqual(["flag", "a#b"]);
  expect(shown({ ...added, "flag#when": { ...node(0, 1), status: "FAILED" } })).toEqual(["flag", "flag#when", "a#b"]);
});
