import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Json } from "../json/json.ts";
import { Schema } from "../json/schema.ts";
import { checkDefinition } from "./read.ts";
import { schemaText, workflowSchema } from "./schema.ts";
import { catalogue } from "./test-catalogue.ts";

test("schema/workflow.json is what the field table says", () => {
  const file = readFileSync(new URL("../../schema/workflow.json", import.meta.url), "utf8");
  expect(file, "run: node src/definition/write-schema.ts").toBe(schemaText());
});

describe("the editor's schema", () => {
  const compiled = Schema.compile(workflowSchema());
  const check = (value: Json): string[] =>
    (compiled as Schema).check(value).map(({ pointer, keyword }) => `${pointer} ${keyword}`);
  const good: Json = {
    $schema: "./schema/workflow.json",
    name: "w",
    "x-mine": 1,
    retry: { max_attempts: 5, jitter: true },
    nodes: [
      { id: "a", handler: "http", config: { url: "{{ input.url }}", expect: "{{ input.expect }}", mock: { a: 1 } } },
      {
        id: "b",
        handler: "mine",
        dependencies: ["a", { id: "a", on: "failed" }],
        join: "quorum:2",
        config: { free: 1 },
      },
      {
        id: "r",
        handler: "router",
        dependencies: ["a"],
        config: { routes: [{ when: "a.status == 200", to: "c" }], else: ["c"] },
      },
      { id: "c", handler: "wait", dependencies: ["r"], config: { signal: "go" } },
    ],
  };

  test("accepts what the loader accepts, and the canonical form", () => {
    expect(compiled).toBeInstanceOf(Schema);
    expect(check(good)).toEqual([]);
    const { workflow, errors } = checkDefinition(good, { handlers: catalogue({ mine: {} }) });
    expect(errors).toEqual([]);
    expect(check(JSON.parse(JSON.stringify(workflow)) as Json)).toEqual([]);
  });

  test.each<[Json, string]>([
    [{ nodes: [{ id: "a", handler: "work", timeout_seconds: 0 }] }, "/nodes/0/timeout_seconds exclusiveMinimum"],
    [{ nodes: [{ id: "a", handler: "http", config: { ulr: "x" } }] }, "/nodes/0/config additionalProperties"],
    [{ nodes: [{ id: "a b", handler: "work" }] }, "/nodes/0/id pattern"],
    [{ name: "..", nodes: [{ id: "a", handler: "work" }] }, "/name not"],
    [{ nodes: [{ id: "a", handler: "work" }], on_error: "stop" }, "/on_error enum"],
    [{ name: "w" }, " required"],
  ])("shows mistake %#", (value, expected) => {
    expect(check(value)).toContain(expected);
  });
});
