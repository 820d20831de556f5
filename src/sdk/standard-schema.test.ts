import { describe, expect, test } from "vitest";
import { z } from "zod";
import { jsonSchema, parse, parseOrFail, type StandardSchema, toJsonSchema, type } from "./standard-schema.ts";

describe("a schema", () => {
  test("of Zod is written down as JSON Schema of what has to be sent", () => {
    const schema = z.object({ path: z.string(), least: z.number().default(1) });
    expect(toJsonSchema(schema)).toEqual({
      type: "object",
      properties: { path: { type: "string" }, least: { type: "number", default: 1 } },
      required: ["path"],
    });
  });

  test("with a part that JSON Schema cannot say keeps the rest", () => {
    const written = toJsonSchema(z.object({ on: z.coerce.date(), path: z.string() }));
    expect(written).toMatchObject({ type: "object", properties: { path: { type: "string" } } });
  });

  test("of a library that cannot write itself down has none", () => {
    expect(toJsonSchema(type<string>())).toBeUndefined();
    const broken: StandardSchema = {
      "~standard": {
        ...type()["~standard"],
        jsonSchema: {
          input: () => {
            throw new Error("no");
          },
        },
      },
    };
    expect(toJsonSchema(broken)).toBeUndefined();
  });

  test("gives the value as its reader wants it", async () => {
    const schema = z.object({ on: z.coerce.date(), least: z.number().default(1) });
    expect(await parse(schema, { on: "2030-01-01" })).toEqual({ value: { on: new Date("2030-01-01"), least: 1 } });
  });

  test("says what is wrong, and where", async () => {
    expect(await parse(z.object({ a: z.object({ b: z.number() }) }), { a: { b: "x" } })).toEqual({
      reason: expect.stringMatching(/^a\.b: .*number/) as string,
    });
    await expect(parseOrFail(z.number(), "x", "The input")).rejects.toMatchObject({
      code: "INPUT_INVALID",
      retryable: false,
      message: expect.stringContaining("The input does not fit its schema: ") as string,
    });
  });

  test("written as JSON Schema checks by it, and is written down as it is", async () => {
    const written = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
    const schema = jsonSchema<{ n: number }>(written);
    expect(await parse(schema, { n: 1 })).toEqual({ value: { n: 1 } });
    expect(await parse(schema, { n: "1" })).toEqual({ reason: "n: must be a number, not a string" });
    expect(toJsonSchema(schema)).toEqual(written);
    expect(() => jsonSchema({ type: "strange" })).toThrow(/This JSON Schema cannot be checked by/);
  });
});
