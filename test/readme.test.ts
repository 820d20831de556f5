import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { MEASURED, withFigures } from "../bench/report/readme.ts";
import { shownProblems } from "../src/cli/problems-text.ts";
import { readDefinition } from "../src/definition/read.ts";

const README = readFileSync(join(import.meta.dirname, "..", "README.md"), "utf8");
const WORKFLOW = /```yaml\n([\s\S]*?)```/.exec(README)![1]!;

describe("the README", () => {
  test("shows a workflow that is valid", () => {
    const { errors, warnings } = readDefinition(WORKFLOW, { format: "yaml" });
    expect(errors).toEqual([]);
    expect(warnings.map(({ code }) => code)).toEqual([]);
  });

  test("shows an error as it is", () => {
    const misspelt = WORKFLOW.replace("dependencies: [fetch]", "dependencies: [fetsh]");
    const report = readDefinition(misspelt, { format: "yaml" });
    expect(README).toContain(`\n${shownProblems("invoice.yaml", report).join("\n")}\n`);
  });

  test("shows the figures that were measured", () => {
    expect(withFigures(README, JSON.parse(readFileSync(MEASURED, "utf8")))).toBe(README);
  });
});
