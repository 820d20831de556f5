import { expect, test } from "vitest";
import { readSettings } from "../settings/read-settings.ts";
import { nodeDefaults } from "./node-defaults.ts";

const limitOf = (env: Readonly<Record<string, string>>) =>
  nodeDefaults(readSettings({ env, flags: {} }).settings).limitOf;

test("models are limited where there are any", () => {
  const models = { llm: "openai", "llm.extract": "openai" };
  expect(limitOf({ OPENAI_API_KEY: "k" })).toEqual(models);
  expect(limitOf({ OPENAI_BASE_URL: "http://127.0.0.1:1/v1" })).toEqual(models);
  expect(limitOf({})).toBeUndefined();
  expect(limitOf({ OPENAI_API_KEY: "k", MILLRACE_MOCK: "true" })).toBeUndefined();
});
