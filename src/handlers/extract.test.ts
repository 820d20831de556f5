import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../json/json.ts";
import { handlersWith, testFolder } from "./test-folder.ts";
import { sendJson, serve } from "./test-server.ts";

const SCHEMA = {
  type: "object",
  properties: { number: { type: "string" }, total: { type: "number" }, note: { type: "string" } },
  required: ["number", "total"],
};
const TEXT = "Invoice  No. A-17\nTotal: 1,250.50 USD";

/** A model that answers with these fields, and what it was asked. */
async function model(...answers: readonly Json[]): Promise<{ env: Record<string, string>; asked: JsonObject[] }> {
  const asked: JsonObject[] = [];
  let turn = 0;
  const server = await serve(({ body }, response) => {
    asked.push(JSON.parse(body) as JsonObject);
    const content = JSON.stringify(answers[Math.min(turn++, answers.length - 1)]);
    const usage = { prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 };
    sendJson(response, { model: "m-1", choices: [{ message: { content }, finish_reason: "stop" }], usage });
  });
  return { env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "sk-test" }, asked };
}

function field(value: Json, confidence: number, evidence: string | null): JsonObject {
  return { value, confidence, evidence };
}

const GOOD = {
  number: field("A-17", 0.99, "invoice no. A-17"),
  total: field(1250.5, 0.97, "Total: 1,250.50 USD"),
  note: field(null, 0.2, null),
};

describe("llm.extract", () => {
  test("gives each field with confidence and evidence, and is as sure as its least sure field", async () => {
    const { env, asked } = await model(GOOD);
    const config = { text: TEXT, schema: SCHEMA, instructions: "Amounts are in USD.", model: "m", temperature: 0 };
    const output = await handlersWith(env)("llm.extract", config);
    expect(output).toEqual({
      fields: {
        number: { value: "A-17", confidence: 0.99, evidence: "invoice no. A-17", grounded: true },
        total: { value: 1250.5, confidence: 0.97, evidence: "Total: 1,250.50 USD", grounded: true },
        note: { value: null, confidence: 0.2, evidence: null, grounded: false },
      },
      values: { number: "A-17", total: 1250.5, note: null },
      // What is not there and need not be does not count.
      confidence: 0.97,
      missing: [],
      model: "m-1",
    });
    expect(output.call.usage).toEqual([{ prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 }]);
    const [{ messages, ...rest } = {} as JsonObject] = asked;
    expect(rest).toMatchObject({ model: "m", temperature: 0, response_format: { type: "json_schema" } });
    expect((messages as readonly JsonObject[])[0]!["content"]).toContain("Amounts are in USD.");
    expect((messages as readonly JsonObject[])[1]).toEqual({ role: "user", content: TEXT });
  });

  test("trusts no value whose evidence is not in the text", async () => {
    const { env } = await model({
      ...GOOD,
      total: field(9999, 1, "Total: 9,999.00 USD"),
      number: field("A-17", 1, null),
    });
    const run = handlersWith(env);
    expect(await run("llm.extract", { text: TEXT, schema: SCHEMA })).toMatchObject({
      fields: { total: { confidence: 0.5, grounded: false }, number: { confidence: 0.5, grounded: false } },
      confidence: 0.5,
    });
    const strict = { text: TEXT, schema: SCHEMA, ungrounded_confidence: 0 };
    expect(await run("llm.extract", strict)).toMatchObject({ confidence: 0 });
  });

  test("is not sure at all when a required field is missing", async () => {
    const { env } = await model({ ...GOOD, number: field(null, 0.9, null) });
    expect(await handlersWith(env)("llm.extract", { text: TEXT, schema: SCHEMA })).toMatchObject({
      confidence: 0,
      missing: ["number"],
    });
  });

  test("sends back once what does not fit", async () => {
    const { env, asked } = await model({ number: "A-17" }, GOOD);
    expect(await handlersWith(env)("llm.extract", { text: TEXT, schema: SCHEMA })).toMatchObject({ confidence: 0.97 });
    expect(asked).toHaveLength(2);
    const { env: hopeless } = await model({ number: "A-17" });
    await expect(handlersWith(hopeless)("llm.extract", { text: TEXT, schema: SCHEMA })).rejects.toMatchObject({
      code: "LLM_OUTPUT_INVALID",
      retryable: true,
    });
  });

  test("takes a definition from the schema", async () => {
    const schema = {
      type: "object",
      properties: { total: { $ref: "#/$defs/money" } },
      $defs: { money: { type: "number", minimum: 0 } },
    };
    const { env, asked } = await model({ total: field(-1, 1, "x") }, { total: field(3, 1, "x") });
    expect(await handlersWith(env)("llm.extract", { text: "x", schema })).toMatchObject({ values: { total: 3 } });
    expect(asked).toHaveLength(2);
  });
});

const FIXTURES = [
  {
    match: ["Invoice", "USD"],
    fields: {
      number: { pattern: "No\\. (\\S+)" },
      total: { pattern: "Total: ([\\d.,]+)", type: "number", confidence: 0.96 },
      rows: { each: "^(?P<day>\\d\\d\\w{3}\\d{4}) (?P<amount>\\S+)$", types: { day: "date", amount: "number" } },
      currency: { value: "USD", evidence: "USD" },
    },
  },
];

describe("fixtures instead of a model", () => {
  function fixtures(content: unknown): Record<string, string> {
    const file = join(testFolder(), "fixtures.json");
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
    return { MILLRACE_LLM_FIXTURES: file };
  }

  test("read the fields of documents they know", async () => {
    const run = handlersWith(fixtures(FIXTURES));
    const properties = { ...SCHEMA.properties, currency: { type: "string" }, rows: { type: "array" } };
    const text = `${TEXT}\n01Aug2018 1454\n31Jul2018 1,500.00\n`;
    const output = await run("llm.extract", { text, schema: { ...SCHEMA, properties } });
    expect(output).toMatchObject({
      values: {
        number: "A-17",
        total: 1250.5,
        note: null,
        currency: "USD",
        rows: [
          { day: "2018-08-01", amount: 1454 },
          { day: "2018-07-31", amount: 1500 },
        ],
      },
      fields: { rows: { evidence: "01Aug2018 1454", grounded: true } },
      confidence: 0.96,
      model: "fixtures",
    });
    expect(output.call.usage).toHaveLength(1);
  });

  test("know nothing of others, and are not sure of it", async () => {
    const nothing = { values: { number: null, total: null, note: null }, confidence: 0, missing: ["number", "total"] };
    for (const env of [fixtures(FIXTURES), {}]) {
      expect(await handlersWith(env)("llm.extract", { text: "Receipt", schema: SCHEMA })).toMatchObject(nothing);
    }
  });

  test("answer for a node that is mocked, though there is a model", async () => {
    const { env, asked } = await model(GOOD);
    const run = handlersWith({ ...env, ...fixtures(FIXTURES) });
    expect(await run("llm.extract", { text: TEXT, schema: SCHEMA, mock: true })).toMatchObject({ model: "fixtures" });
    expect(asked).toEqual([]);
  });

  test.each([
    ["not JSON", "["],
    ["not a list", {}],
    ["a field nobody knows", [{ match: [], fields: { a: { patern: "x" } } }]],
    ["a pattern that is none", [{ match: [], fields: { a: { pattern: "(" } } }]],
  ])("that are %s are refused by name", async (_, content) => {
    const run = handlersWith(fixtures(content));
    await expect(run("llm.extract", { text: TEXT, schema: SCHEMA })).rejects.toMatchObject({
      code: "FIXTURES_INVALID",
      retryable: false,
    });
  });
});
