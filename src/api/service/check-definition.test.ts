import { describe, expect, test } from "vitest";
import { type CheckOrder, checkSource } from "./check-definition.ts";

const order = (source: string, more: Partial<CheckOrder> = {}): CheckOrder => ({
  source,
  format: "json",
  isWritten: true,
  handlers: [],
  allowMissing: false,
  defaults: {},
  ...more,
});

const JSON_TEXT = `{
  "input_params": {"nodes": 5, "constructor": 1},
  "definition": {
    "name": "w",
    "nodes": [
      {"id": "a", "handler": "http"},
      {"id": "b", "handler": "output", "dependencies": ["zz"]}
    ]
  }
}`;
const YAML_TEXT = "definition:\n  name: w\n  nodes:\n    - { id: b, handler: output, dependencies: [zz] }\n";

describe("problems of a definition inside another object", () => {
  test("have their place in the text", () => {
    const { errors } = checkSource(order(JSON_TEXT));
    expect(errors).toMatchObject([
      { code: "CONFIG_INVALID", path: "/nodes/0/config", line: 6, column: 7 },
      { code: "UNKNOWN_DEPENDENCY", path: "/nodes/1/dependencies/0", line: 7, column: 57 },
    ]);
  });

  test("have it in YAML too", () => {
    const { errors } = checkSource(order(YAML_TEXT, { format: "yaml" }));
    expect(errors).toMatchObject([{ code: "UNKNOWN_DEPENDENCY", line: 4, column: 48 }]);
  });

  test("have it where the definition is nothing one could look at further", () => {
    const { errors } = checkSource(order('{"definition":\n {"nodes": [1e999]}}'));
    expect(errors[0]).toMatchObject({ path: "/nodes/0", line: 2, column: 13 });
  });

  test("have none in a text that nobody wrote", () => {
    const [first] = checkSource(order(JSON_TEXT, { isWritten: false })).errors;
    expect(first).not.toHaveProperty("line");
  });
});
