import { expect, test } from "vitest";
import { Definition } from "./definitions.ts";

test("an input is checked by a stored schema as far as it is understood, also if it would be refused now", () => {
  const inputSchema = { type: "object", required: ["who"], unevaluatedProperties: false };
  const definition = new Definition({ hash: "h", text: "{}", name: "w", inputSchema });
  expect(definition.inputFaults({})).toMatchObject([{ pointer: "", keyword: "required" }]);
  expect(definition.inputFaults({ who: 1, other: 2 })).toEqual([]);
});
