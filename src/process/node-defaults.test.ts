import { expect, test } from "vitest";
import { readSettings } from "../settings/read-settings.ts";
import { nodeDefaults } from "./node-defaults.ts";

const defaults = (env: Readonly<Record<string, string>>) => nodeDefaults(readSettings({ env, flags: {} }).settings);
const limitOf = (env: Readonly<Record<string, string>>) => defaults(env).limitOf;

test("models are limited where there are any", () => {
  const models = { llm: "openai", "llm.extract": "openai" };
  expect(limitOf({ OPENAI_API_KEY: "k" })).toEqual(models);
  expect(limitOf({ OPENAI_BASE_URL: "http://127.0.0.1:1/v1" })).toEqual(models);
  expect(limitOf({})).toBeUndefined();
  expect(limitOf({ OPENAI_API_KEY: "k", MILLRACE_MOCK: "true" })).toBeUndefined();
});

test("results are kept by the model of the settings, where there is one", () => {
  const models = (model: string) => ({ llm: model, "llm.extract": model });
  expect(defaults({ OPENAI_API_KEY: "k" }).modelOf).toEqual(models("gpt-4o-mini"));
  expect(defaults({ OPENAI_API_KEY: "k", OPENAI_MODEL: "house" }).modelOf).toEqual(models("house"));
  expect(defaults({ OPENAI_MODEL: "house" }).modelOf).toBeUndefined();
});
