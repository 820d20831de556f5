import { expect, test } from "vitest";
import { node, workflow } from "../../../test/support/workflows.ts";
import { planOf } from "./shared-plans.ts";

const text = JSON.stringify(workflow([node("a")]));

test("whoever asks for a definition while another has its plan is given the same plan", () => {
  expect(planOf("shared", text)).toBe(planOf("shared", text));
});

test("another text under the same hash has a plan of its own", () => {
  const plan = planOf("tampered", text);
  const other = planOf("tampered", JSON.stringify(workflow([node("a"), node("b")])));
  expect(other.nodes).toHaveLength(2);
  expect(plan.nodes).toHaveLength(1);
});
