import { expect, test } from "vitest";
import type { Json, JsonObject } from "../json/json.ts";
import { withChange } from "./changed-config.ts";

const cases: readonly [handler: string, config: JsonObject, path: string, value: Json, then: JsonObject][] = [
  ["transform", { value: "{{ 1 }}" }, "expression", "2", { expression: "2" }],
  ["transform", { value: "{{ 1 }}" }, "value", 2, { value: 2 }],
  ["transform", { value: { x: 1, y: 2 } }, "value.x", 3, { value: { x: 3, y: 2 } }],
  ["transform", { value: { x: "{{ 1 }}" } }, "fields", { y: "2" }, { fields: { y: "2" } }],
  ["transform", { value: { x: "{{ 1 }}", y: 2 } }, "fields.x", "a.b", { value: { x: "{{ a.b }}", y: 2 } }],
  ["transform", { expression: "1" }, "fields.x", "2", { fields: { x: "2" } }],
  ["llm", { prompt: "hello", model: "m" }, "messages", [], { messages: [], model: "m" }],
  ["llm", { prompt: "hello", model: "m" }, "model", "n", { prompt: "hello", model: "n" }],
  ["wait", { signal: "go" }, "seconds", 1, { seconds: 1 }],
  ["http", { url: "u", value: 1 }, "value", 2, { url: "u", value: 2 }],
];

test.each(cases)("of %s %j, --set %s=%j makes %j", (handler, config, path, value, then) => {
  expect(withChange(handler, config, { path: path.split("."), value })).toEqual(then);
});
