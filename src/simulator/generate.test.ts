import { expect, test } from "vitest";
import { readDefinition } from "../definition/read.ts";
import { randomWorkflow } from "./generate.ts";
import { Random } from "./random.ts";

const SURROUNDINGS = { library: ["lib1", "lib2"], depth: 0, epochMs: 1_700_000_000_000, around: [], inMap: false };

/** What people get wrong and a template can hide from a submit, so that it fails only when it runs. */
const MAY_BE_WRONG = new Set(["TEMPLATE_UNKNOWN_FIELD", "CONFIG_INVALID"]);

test("what is generated could be submitted, but for what may also fail at run time", () => {
  const handlers = { get: () => undefined, names: () => [], allowMissing: true };
  const refused: string[] = [];
  for (let seed = 0; seed < 4000; seed++) {
    const workflow = randomWorkflow(new Random(seed), "w", SURROUNDINGS);
    const { errors } = readDefinition(JSON.stringify(workflow), { format: "json", handlers });
    for (const { code, path, message } of errors) {
      if (!MAY_BE_WRONG.has(code)) refused.push(`seed ${seed} ${code} ${path}: ${message}`);
    }
  }
  expect(refused).toEqual([]);
});
