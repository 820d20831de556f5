import { expect, test } from "vitest";
import type { Json } from "../../json/json.ts";
import { node, workflow } from "../../../test/support/workflows.ts";
import type { Plan } from "./plan.ts";
import { offerText, planAtHand, planOf, textOfPlan } from "./shared-plans.ts";

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

const fan = (name: string, count: number, config: Json): string =>
  JSON.stringify(
    workflow(
      Array.from({ length: count }, (_, i) => node(`${name}${i}`, i === 0 ? [] : [`${name}0`], { config: { config } })),
    ),
  );

/** Long enough to be told by its hash. */
const long = (name: string): string => fan(name, 2, "x".repeat(200_000));

test("the text of a large definition can be had from its plan, and that of a small one has to be kept", () => {
  const text = fan("n", 5_000, 1);
  expect(textOfPlan(planOf("large", text))!()).toBe(text);
  expect(textOfPlan(planOf("small", JSON.stringify(workflow([node("a")]))))).toBeUndefined();
});

test("another long text under the same hash has a plan of its own as well", () => {
  const [one, other] = [long("n"), long("m")];
  const plan = planOf("tampered-long", one);
  expect(one.length).toBe(other.length);
  expect(planOf("tampered-long", one)).toBe(plan);
  expect(planOf("tampered-long", other).nodes[0]!.id).toBe("m0");
});

test("a long text that somebody holds is at hand, and its plan is the one that others have", () => {
  const [text, short] = [long("n"), "{}"];
  const adopted: Plan[] = [];
  const holders = [text, short].map((held) => ({
    text: held,
    chars: held.length,
    get made() {
      return adopted[0];
    },
    adopt: (plan: Plan) => void adopted.push(plan),
  }));
  expect(planAtHand("held")).toBeUndefined();
  offerText("held", holders[0]!);
  offerText("short", holders[1]!);
  expect(planAtHand("short")).toBeUndefined();
  expect(planAtHand("held")).toMatchObject({ chars: text.length });
  const plan = planOf("held", text);
  expect(planAtHand("held")!.prepare()).toBe(plan);
  expect(planAtHand("held")!.prepare()).toBe(plan);
  expect(adopted).toEqual([plan]);
});
