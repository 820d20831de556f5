import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../json/json.ts";
import { Schema } from "../json/schema.ts";
import {
  BREAKER_FIELDS,
  BUDGET_FIELDS,
  CACHE_FIELDS,
  CONCURRENCY_FIELDS,
  DEPENDENCY_FIELDS,
  ESTIMATE_FIELDS,
  type FieldTable,
  IGNORED_WORKFLOW_FIELDS,
  LIMIT_FIELDS,
  NODE_FIELDS,
  NODE_LIMIT_FIELDS,
  PRICE_FIELDS,
  REPEAT_FIELDS,
  RETRY_FIELDS,
  WORKFLOW_CONCURRENCY_FIELDS,
  WORKFLOW_FIELDS,
} from "./fields.ts";
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
    [{ name: "w" }, " anyOf"],
    [{ nodes: [{ handler: "work" }] }, "/nodes/0 anyOf"],
    [{ nodes: [{ id: "a", handler: null }] }, "/nodes/0/handler type"],
    [{ nodes: [{ id: "a", handler: "work", timeout: 5 }] }, "/nodes/0 additionalProperties"],
  ])("shows mistake %#", (value, expected) => {
    expect(check(value)).toContain(expected);
  });

  /** Where the fields of a table are read: the least that has to be there, and what is around it. */
  const step: JsonObject = { id: "a", handler: "work" };
  const onNode = (field: string) => (value: Json) => ({ name: "w", nodes: [{ ...step, [field]: value }] });
  const places: readonly (readonly [string, FieldTable, JsonObject, (value: JsonObject) => Json])[] = [
    ["a workflow", WORKFLOW_FIELDS, { nodes: [step] }, (value) => value],
    ["a workflow inside dag", WORKFLOW_FIELDS, { nodes: [step] }, (dag) => ({ dag })],
    ["a node", NODE_FIELDS, step, (node) => ({ name: "w", nodes: [node] })],
    ["a node by its id", NODE_FIELDS, { handler: "work" }, (a) => ({ name: "w", nodes: { a } })],
    [
      "a dependency",
      DEPENDENCY_FIELDS,
      { id: "b" },
      (on) => ({
        nodes: [
          { id: "b", handler: "work" },
          { ...step, dependencies: [on] },
        ],
      }),
    ],
    ["a retry policy", RETRY_FIELDS, {}, onNode("retry")],
    ["that of a workflow", RETRY_FIELDS, {}, (retry) => ({ nodes: [step], retry })],
    ["a repeat", REPEAT_FIELDS, { until: "true" }, onNode("repeat")],
    ["a limit", LIMIT_FIELDS, { rate: 1 }, (fast) => ({ nodes: [step], limits: { fast } })],
    ["a breaker", BREAKER_FIELDS, {}, (breaker) => onNode("limit")({ rate: 1, breaker })],
    ["the limit of a node", NODE_LIMIT_FIELDS, { concurrency: 1 }, onNode("limit")],
    ["a concurrency", CONCURRENCY_FIELDS, { limit: 1 }, onNode("concurrency")],
    [
      "that of a workflow",
      WORKFLOW_CONCURRENCY_FIELDS,
      { limit: 1 },
      (concurrency) => ({ nodes: [step], concurrency }),
    ],
    ["a cache", CACHE_FIELDS, {}, onNode("cache")],
    ["a budget", BUDGET_FIELDS, { calls: 1 }, onNode("budget")],
    ["an estimate", ESTIMATE_FIELDS, {}, (estimate) => onNode("budget")({ calls: 1, estimate })],
    ["a price", PRICE_FIELDS, {}, (price) => onNode("budget")({ usd: 1, prices: { m: price } })],
  ];
  const samples: JsonObject = {
    nodes: [step],
    retry: { max_attempts: 2 },
    id: "a",
    type: "step",
    base_delay_seconds: 1,
    max_delay_seconds: 2,
    jitter: 0.5,
    ttl_seconds: 5,
  };
  const accepted = (value: Json): void => {
    expect(checkDefinition(value, { handlers: catalogue({ work: {} }) }).errors).toEqual([]);
    expect(check(value), JSON.stringify(value)).toEqual([]);
  };

  test.each(places)("takes the other names and the nulls of %s, as the server does", (_, table, least, around) => {
    for (const [name, { aliases = [] }] of Object.entries(table)) {
      const { [name]: given, ...rest } = least;
      for (const alias of aliases) {
        expect(samples[name], `a sample of ${name}`).toBeDefined();
        accepted(around({ ...rest, [alias]: samples[name]! }));
        accepted(around({ ...least, [alias]: null }));
      }
      if (given === undefined) accepted(around({ ...least, [name]: null }));
    }
  });

  test("takes what the server passes over", () => {
    for (const name of IGNORED_WORKFLOW_FIELDS) {
      accepted({ nodes: [step], [name]: { any: 1 } });
      accepted({ dag: { nodes: [step], [name]: "x" }, [name]: null });
    }
    accepted({ nodes: [{ ...step, retry: { retryable_errors: ["TimeoutError"], max_retries: null } }] });
    accepted({
      nodes: [
        { ...step, max_retries: 2 },
        { id: "b", handler: "work", max_retries: null },
      ],
    });
    accepted({ nodes: [{ id: "end", handler: "end", config: null }] });
  });

  test("takes a template for any part of a config", () => {
    const config = { url: "u", expect: ["{{ input.status }}"], query: { ids: "{{ input.ids }}" } };
    accepted({ nodes: [{ id: "a", handler: "http", config }] });
    const escalate = { after_seconds: "{{ input.soon }}", assignees: ["{{ input.boss }}"] };
    accepted({ nodes: [{ id: "a", handler: "review", config: { escalate, on_due: "{{ input.due }}" } }] });
  });
});
