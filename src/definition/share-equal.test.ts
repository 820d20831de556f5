import { expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { shareEqualParts } from "./share-equal.ts";
import type { Workflow } from "./workflow.ts";

test("equal parts of different nodes become one, and the definition says the same as before", () => {
  const config = { prompt: "the same for all of them", deep: [{ x: 1 }] };
  const text = JSON.stringify(
    workflow([node("a", [], { config }), node("b", ["a"], { config }), node("c", ["a"], { config: { other: 1 } })]),
  );
  const read = JSON.parse(text) as Workflow;
  shareEqualParts(read);
  const [a, b, c] = read.nodes;
  expect(a!.retry).toBe(b!.retry);
  expect(a!.config).toBe(b!.config);
  expect(b!.dependencies).toBe(c!.dependencies);
  expect(JSON.stringify(read)).toBe(text);
});
