import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../json/json.ts";
import { handlersWith } from "./test-folder.ts";

const SCHEMA = {
  type: "object",
  properties: { number: { type: "string", pattern: "^INV-" }, total: { type: "number", minimum: 0 } },
  required: ["number", "total"],
};

function validate(config: JsonObject): Promise<Readonly<Record<string, Json>>> {
  return handlersWith({})("validate", config);
}

describe("validate", () => {
  test("finds nothing wrong with what is right", async () => {
    const rules = [{ assert: "value.total > 0.0" }];
    const value = { number: "INV-1", total: 3 };
    expect(await validate({ value, schema: SCHEMA, rules })).toEqual({ valid: true, problems: [], checked: 2 });
  });

  test("lists everything that is wrong, by schema and by rules", async () => {
    const rules = [
      { assert: "value.total == value.net + value.tax", name: "sum", message: "must add up", fields: ["total"] },
      { assert: "size(value.number) > 2" },
      { assert: "value.date < '2030'" },
    ];
    const value = { number: "17", total: -1, net: 1, tax: 1 };
    const output = await validate({ value, schema: SCHEMA, rules });
    expect(output).toMatchObject({ valid: false, checked: 4 });
    expect(output["problems"]).toEqual([
      { rule: "schema", path: "/number", message: '"number" must match ^INV-', fields: ["number"] },
      { rule: "schema", path: "/total", message: '"total" must be at least 0', fields: ["total"] },
      { rule: "sum", path: "", message: "must add up", fields: ["total"] },
      {
        rule: "size(value.number) > 2",
        path: "",
        message: "must be true: size(value.number) > 2",
        fields: [],
      },
      // What cannot be judged is not right.
      {
        rule: "value.date < '2030'",
        path: "",
        message: expect.stringContaining("could not be checked") as string,
        fields: [],
      },
    ]);
  });

  test("asks a rule for every entry of a list, which can see the one before", async () => {
    const rows = [10, 12, 99, 17].map((balance, index) => ({ balance, amount: [0, 2, 3, 2][index]! }));
    const rule = {
      name: "running balance",
      each: "page.rows",
      assert: "index == 0 || item.balance - previous.balance == item.amount",
      message: "does not follow from the row before",
    };
    const output = await validate({ value: { page: { rows } }, rules: [rule] });
    expect(output).toMatchObject({ valid: false, checked: 4 });
    expect((output["problems"] as readonly JsonObject[]).map(({ path }) => path)).toEqual([
      "/page/rows/2",
      "/page/rows/3",
    ]);
  });

  test("finds a list that is none", async () => {
    const rules = [{ each: "rows", assert: "item > 0" }];
    for (const value of [{}, { rows: 7 }, null]) {
      expect(await validate({ value, rules })).toMatchObject({
        valid: false,
        problems: [{ path: "/rows", message: '"rows" is not a list', fields: ["rows"] }],
      });
    }
    expect(await validate({ value: { rows: [] }, rules })).toMatchObject({ valid: true, checked: 0 });
  });

  test.each<[string, JsonObject, string]>([
    ["a rule that cannot be read", { value: 1, rules: [{ assert: "value >" }] }, "rules that can be read"],
    ["a name that a rule cannot see", { value: 1, rules: [{ assert: "other.x" }] }, 'no node \\"other\\"'],
    ["nothing to check by", { value: 1 }, '"schema" or "rules"'],
    ["a schema that is none", { value: 1, schema: { type: "nonsense" } }, ""],
  ])("refuses %s", async (_, config, message) => {
    await expect(validate(config)).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining(message.replaceAll("\\", "")) as string,
    });
  });
});

describe("merge", () => {
  function merge(config: JsonObject): Promise<Readonly<Record<string, Json>>> {
    return handlersWith({})("merge", config);
  }
  const MODEL = {
    name: "model",
    fields: {
      number: { value: "INV-1", confidence: 0.9, evidence: "No. INV-1" },
      total: { value: 1454, confidence: 0.99, evidence: "1454" },
      date: { value: null, confidence: 1 },
    },
  };
  const REGISTER = { name: "register", values: { number: "INV-2", vendor: "V-7" }, confidence: 0.95 };

  test("takes the value that is surest, and says where others disagree", async () => {
    expect(await merge({ sources: [MODEL, REGISTER] })).toEqual({
      fields: {
        number: { value: "INV-2", confidence: 0.95, evidence: null, source: "register", locked: false },
        total: { value: 1454, confidence: 0.99, evidence: "1454", source: "model", locked: false },
        date: { value: null, confidence: 1, evidence: null, source: "model", locked: false },
        vendor: { value: "V-7", confidence: 0.95, evidence: null, source: "register", locked: false },
      },
      values: { number: "INV-2", total: 1454, date: null, vendor: "V-7" },
      confidences: { number: 0.95, total: 0.99, date: 1, vendor: 0.95 },
      evidence: { number: null, total: "1454", date: null, vendor: null },
      locks: {},
      confidence: 0.95,
      conflicts: [
        {
          field: "number",
          values: [
            { source: "register", value: "INV-2" },
            { source: "model", value: "INV-1" },
          ],
        },
      ],
    });
  });

  test.each([
    ["first", "INV-1"],
    ["last", "INV-2"],
  ])("takes the %s on demand", async (prefer, number) => {
    expect(await merge({ sources: [MODEL, REGISTER], prefer })).toMatchObject({ values: { number } });
  });

  test("prefers a value to none", async () => {
    const late = { values: { date: "2026-01-01" }, confidence: 0.1 };
    expect(await merge({ sources: [MODEL, late] })).toMatchObject({ values: { date: "2026-01-01" }, conflicts: [] });
  });

  test.each(["confidence", "first", "last"])("never overwrites what a person has corrected (%s)", async (prefer) => {
    const locks = [{ total: 14.54, paid: null }, null, { number: "INV-3" }];
    const sure = { fields: { total: { value: 1454, confidence: 1 }, paid: { value: true, confidence: 1 } } };
    expect(await merge({ sources: [MODEL, REGISTER, sure], locks, prefer })).toMatchObject({
      fields: { total: { value: 14.54, confidence: 1, source: "lock", locked: true }, vendor: { locked: false } },
      values: { total: 14.54, number: "INV-3", paid: null },
      locks: { total: 14.54, number: "INV-3", paid: null },
      conflicts: [],
    });
  });

  test("locks what a person has corrected in a review, and nothing of one that was rejected", async () => {
    const data = { total: 14.54, number: "INV-1" };
    const reviews = [
      { decision: "approve", data, locks: ["total"] },
      null,
      { decision: "reject", data: { number: "no" }, locks: ["number"] },
    ];
    expect(await merge({ sources: [MODEL, REGISTER], reviews })).toMatchObject({
      fields: { total: { value: 14.54, locked: true }, number: { value: "INV-2", locked: false } },
      locks: { total: 14.54 },
    });
    const all = [{ decision: "approve", data }];
    expect(await merge({ sources: [MODEL], reviews: all, locks: { total: 1 } })).toMatchObject({ locks: data });
  });

  test("lets a later correction correct an earlier one", async () => {
    const locks = [{ total: 1 }, { total: 2 }];
    expect(await merge({ sources: [MODEL], locks })).toMatchObject({ values: { total: 2 } });
  });

  test("knows that two numbers written in one way are the same", async () => {
    const sources = [{ values: { a: { x: 1, y: 2 } } }, { values: { a: { y: 2, x: 1 } } }];
    expect(await merge({ sources })).toMatchObject({ conflicts: [] });
    expect(await merge({ sources: [{ values: {} }] })).toMatchObject({ values: {}, confidence: 0 });
  });
});
